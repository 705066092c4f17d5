// SPDX-License-Identifier: MIT
// What the sides of a delta tell each other, as bytes. Each list is zstd( count:varint item * ); a decoder checks counts against the bytes
// that are left before it allocates.
//
//   ranges    := count:varint ( gap:varint length:varint )*              gap: to the end of the range before, the first from 0; length > 0
//   files     := ( path:text ranges )*
//   chunks    := ( count:varint length:varint *count name:u48 *count )*  of each file; without lengths where the side that cut keeps them
//   questions := ( path:text ranges count:varint name:u48 *count )*      of each file: what of it is asked for, and the names at hand
//   recipes   := ( count:varint ( gap:varint length:varint kind:varint from:z )*count )*   of each question: what lies there. kind 0: from which
//                chunk on; 1: where in the same file; from: to the one before of that kind
//   copies    := bases:( count:varint path:text * ) ( want:varint count:varint ( gap:varint length:varint source:varint from:z )*count )*
//                source: twice the base's index, plus 1 where `from` counts chunks; the index behind the last base is the file itself;
//                from: to where the copy before of that source ended
//   named     := ( number:varint path:text bytes:text )*
//   strings   := bytes:text *
//
// LIMIT: kListBytesMax decompressed; kFilesMax files.
#pragma once

#include <string>
#include <vector>

#include "delta/chunks.hpp"
#include "tree/path.hpp"

namespace envsync::delta {

inline constexpr std::size_t kListBytesMax = 96u << 20;
inline constexpr std::size_t kFilesMax = 1'000'000;
inline constexpr std::size_t kNamesMax = 4'000'000;  // LIMIT: names, steps or copies of one list; what goes beyond is not matched

struct FileRanges {
  tree::RelPath path;
  std::vector<Range> ranges;
  bool operator==(const FileRanges&) const = default;
};
Bytes encode_files(const std::vector<FileRanges>& files);
Result<std::vector<FileRanges>> decode_files(ByteView bytes);

Bytes encode_chunks(const std::vector<ChunkList>& lists, bool has_lengths);
Result<std::vector<ChunkList>> decode_chunks(ByteView bytes, bool has_lengths);

struct Question {
  tree::RelPath path;
  std::vector<Range> ranges;
  std::vector<u64> names;
  bool operator==(const Question&) const = default;
};
Bytes encode_questions(const std::vector<Question>& questions);
Result<std::vector<Question>> decode_questions(ByteView bytes);

/// `length` bytes at `to` are the chunks from number `from` on; or, of the file's own, those at `from`, which nothing else gives.
struct Found {
  u64 to = 0, length = 0;
  u64 from = 0;
  bool is_own = false;
  bool operator==(const Found&) const = default;
};
Bytes encode_recipes(const std::vector<std::vector<Found>>& recipes);
Result<std::vector<std::vector<Found>>> decode_recipes(ByteView bytes);

/// `length` bytes at `to` of a file are those at `from` of a base, or of its chunks from number `from` on. Base kOwn: of the file itself.
struct Copy {
  static constexpr u32 kOwn = ~u32{0};
  u64 to = 0, length = 0;
  u32 base = 0;
  bool by_chunk = false;
  u64 from = 0;
  bool operator==(const Copy&) const = default;
};
struct FileCopies {
  u32 want = 0;
  std::vector<Copy> copies;  // ascending by `to`, without overlap
  bool operator==(const FileCopies&) const = default;
};
struct CopyPlan {
  std::vector<tree::RelPath> bases;
  std::vector<FileCopies> files;
  bool operator==(const CopyPlan&) const = default;
};
Bytes encode_copies(const CopyPlan& plan);
Result<CopyPlan> decode_copies(ByteView bytes);

struct Named {
  u32 number = 0;
  tree::RelPath path;
  Bytes bytes;
  bool operator==(const Named&) const = default;
};
Bytes encode_named(const std::vector<Named>& files, int level);
Result<std::vector<Named>> decode_named(ByteView bytes);

/// Byte strings, for signatures and differences; those of an exchange together are bounded by the list's limit.
Bytes encode_strings(const std::vector<Bytes>& strings, int level);
Result<std::vector<Bytes>> decode_strings(ByteView bytes);

}  // namespace envsync::delta
