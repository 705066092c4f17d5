// SPDX-License-Identifier: MIT
// Content-defined chunks: a file is cut where its own bytes say so, so that an insertion moves boundaries only near itself.
//
//   gear     G[i] = the i-th output of SplitMix64 from seed 0x656e7673796e6331 ("envsync1")
//   hash     h := (h << 1) + G[byte], from 0 at min bytes after the chunk's begin
//   cut      behind the first byte with (h & mask) == 0, or at max; mask has log2(average) + 2 ones below average and log2(average) - 2 from there
//            on (they are the topmost bits), which keeps lengths near the average
//   grains   coarse 16/64/256 KiB; fine 256/1024/8192 B; finest 128/512/4096 B  (min/average/max)
//   name     the low 48 bits of XXH3-64 of the chunk: a wrong match is found by the file's digest
//
// Both sides cut alike, so none of this may change without the lists that travel: both ends are one build.
#pragma once

#include <functional>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"

namespace envsync::delta {

enum class Grain : u8 { coarse, fine, finest };
struct CutSizes { u32 min = 0, average = 0, max = 0; };
CutSizes sizes_of(Grain grain);

struct Range {
  u64 offset = 0, length = 0;
  u64 end() const { return offset + length; }
  bool operator==(const Range&) const = default;
};
/// Appends a range, or lengthens the last one where it goes on.
void append(std::vector<Range>& ranges, Range range);
u64 total(const std::vector<Range>& ranges);
/// What of `ranges` lies in `window`. Both ascending and without overlap.
std::vector<Range> intersect(const std::vector<Range>& ranges, const std::vector<Range>& window);
/// What of `ranges` does not lie in `others`. Both ascending and without overlap.
std::vector<Range> without(const std::vector<Range>& ranges, const std::vector<Range>& others);

struct Chunk {
  u64 name = 0;  // 48 bits
  u32 length = 0;
  bool operator==(const Chunk&) const = default;
};
using ChunkList = std::vector<Chunk>;

u64 name_of(ByteView chunk);
/// Length of the chunk that `bytes` begin with; they go on for at least the grain's max, or to where the content ends.
std::size_t cut(ByteView bytes, Grain grain);

/// Fills as much as there is; less only at the end of the file.
using ReadAt = std::function<Result<std::size_t>(u64 offset, std::span<std::byte> into)>;
/// False: no more chunks are wanted.
using ChunkSink = std::function<bool(u64 offset, ByteView bytes)>;
/// Cuts each range by itself. A file that is shorter than its ranges gives fewer chunks.
Result<void> for_each_chunk(const ReadAt& read, const std::vector<Range>& ranges, Grain grain, const ChunkSink& sink);

}  // namespace envsync::delta
