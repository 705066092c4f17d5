// SPDX-License-Identifier: MIT
// A pack is the unit of bulk on the wire: pieces of files, compressed together, bounded and checksummed. It is made at the
// source's agent, opened at the target's; a relay passes it on unopened.
//
//   pack    := magic:"EP1\n" codec:u8(0 raw, 1 zstd) reserved:u8[3]=0 raw_size:u32le piece_count:u32le checksum:u64le body
//   body    := codec applied to ( piece_count * piece , then the bytes of the pieces in order )
//   piece   := want:u32le offset:u64le length:u32le         -- 16 bytes
//   checksum := XXH3-64 of the uncompressed body
//
// `want` numbers an entry of the list that source and target were both given. LIMIT: a body is at most kPackRawMax
// uncompressed, so that a hostile header cannot ask for memory.
#pragma once

#include <vector>

#include <envsync/result.hpp>

#include "base/buffer.hpp"
#include "content/digest.hpp"

namespace envsync::content {

inline constexpr std::size_t kPackRawMax = (8u << 20) + (1u << 20);  // a segment, or small files and their pieces
inline constexpr std::size_t kPackTarget = 4u << 20;                 // small files are gathered up to this
inline constexpr u32 kPackPiecesMax = 32768;

struct Piece {
  u32 want = 0;
  u64 offset = 0;
  u32 length = 0;
};

/// Level that means: do not compress.
inline constexpr int kRawLevel = -1000;

/// A pack being filled, in one block: its header and pieces lie before the content, so that a raw one is sent without a copy.
class PackBuilder {
 public:
  /// Room for exactly so many pieces and bytes of content.
  PackBuilder(std::size_t piece_count, std::size_t content_bytes);
  /// The place of a piece's content, to be filled before finish().
  std::span<std::byte> add(const Piece& piece);
  /// Every piece and byte was added. At a zstd level, or kRawLevel. Stays raw where compressing does not pay: less than about 3 %
  /// saved on a sample or on the whole.
  Buffer finish(int level) &&;

 private:
  Buffer bytes_;
  std::size_t piece_count_, pieces_ = 0, at_;
};

/// Uncompressed bytes of a pack, by its header, which nobody has checked yet.
u64 raw_bytes_of(ByteView pack);

/// Pieces and their content in order: `bytes` from `front`.
struct OpenPack {
  std::vector<Piece> pieces;
  Buffer bytes;
  std::size_t front = 0;

  ByteView content() const { return ByteView(bytes).subspan(front); }
};
/// Decodes and checks everything that the pack itself can tell: bounds, counts, checksum, lengths that add up. Thread-safe.
Result<OpenPack> decode_pack(Buffer encoded);

/// zstd for records and trees: one frame with its content size; `limit` bounds what decompress may allocate.
Bytes compress(ByteView bytes, int level);
Result<Bytes> decompress(ByteView bytes, std::size_t limit);

}  // namespace envsync::content
