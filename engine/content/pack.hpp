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

#include <optional>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
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

/// Pieces and their bytes before compression. `bytes` holds the pieces' content in order.
struct OpenPack {
  std::vector<Piece> pieces;
  Bytes bytes;
};

/// Encodes at a zstd level (kRawLevel: raw). Stores raw where compressing does not pay: less than about 3 % saved
/// on a sample or on the whole. Works in the pack's buffer: room for 16 bytes a piece there saves a copy. Thread-safe.
Bytes encode_pack(OpenPack pack, int level);
/// Decodes and checks everything that the pack itself can tell: bounds, counts, checksum, lengths that add up.
Result<OpenPack> decode_pack(ByteView encoded);

/// zstd for records and trees: one frame with its content size; `limit` bounds what decompress may allocate.
Bytes compress(ByteView bytes, int level);
Result<Bytes> decompress(ByteView bytes, std::size_t limit);

/// Chooses the level of the next pack from how full the send queue is: an empty queue means that the sender waits
/// for the compressor (faster, in the end raw), a full one that there is time to compress harder.
class LevelGovernor {
 public:
  explicit LevelGovernor(std::optional<int> fixed = std::nullopt);
  /// `queued`, `capacity`: packs that are ready to send, and how many may be. `wire_bytes_per_second`: what leaves at present,
  /// 0 where not known yet; levels above 1 are for slow links only.
  int next(std::size_t queued, std::size_t capacity, double wire_bytes_per_second);

 private:
  std::optional<int> fixed_;
  std::size_t step_ = 0, calls_ = 0;
  int trend_ = 0;  // packs in a row that found the queue full (above zero) or empty (below)
  bool is_primed_ = false;
};

}  // namespace envsync::content
