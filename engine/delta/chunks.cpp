// SPDX-License-Identifier: MIT
#include "delta/chunks.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/buffer.hpp"
#include "content/digest.hpp"

namespace envsync::delta {

namespace {

constexpr std::size_t kReadBytes = 4u << 20;
constexpr u64 kNameMask = (u64{1} << 48) - 1;

constexpr std::array<u64, 256> make_gear() {
  std::array<u64, 256> gear{};
  u64 state = 0x656e7673796e6331;
  for (u64& value : gear) {
    state += 0x9e3779b97f4a7c15;
    u64 z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    value = z ^ (z >> 31);
  }
  return gear;
}

constexpr std::array<u64, 256> kGear = make_gear();

constexpr u64 top_bits(int count) { return ~u64{0} << (64 - count); }

}  // namespace

CutSizes sizes_of(Grain grain) {
  switch (grain) {
    case Grain::coarse: return {16u << 10, 64u << 10, 256u << 10};
    case Grain::fine: return {256, 1024, 8192};
    case Grain::finest: break;
  }
  return {128, 512, 4096};
}

void append(std::vector<Range>& ranges, Range range) {
  if (range.length == 0) return;
  if (!ranges.empty() && ranges.back().end() == range.offset) ranges.back().length += range.length;
  else ranges.push_back(range);
}

u64 total(const std::vector<Range>& ranges) {
  u64 sum = 0;
  for (const Range& range : ranges) sum += range.length;
  return sum;
}

std::vector<Range> intersect(const std::vector<Range>& ranges, const std::vector<Range>& window) {
  std::vector<Range> out;
  for (std::size_t i = 0, j = 0; i < ranges.size() && j < window.size();) {
    const u64 begin = std::max(ranges[i].offset, window[j].offset), end = std::min(ranges[i].end(), window[j].end());
    if (begin < end) append(out, {begin, end - begin});
    if (ranges[i].end() < window[j].end()) ++i;
    else ++j;
  }
  return out;
}

std::vector<Range> without(const std::vector<Range>& ranges, const std::vector<Range>& others) {
  std::vector<Range> out;
  std::size_t j = 0;
  for (const Range& range : ranges) {
    u64 at = range.offset;
    while (j < others.size() && others[j].end() <= at) ++j;
    for (std::size_t k = j; k < others.size() && others[k].offset < range.end(); ++k) {
      if (others[k].offset > at) append(out, {at, others[k].offset - at});
      at = std::max(at, others[k].end());
    }
    if (at < range.end()) append(out, {at, range.end() - at});
  }
  return out;
}

u64 name_of(ByteView chunk) { return content::checksum_of(chunk) & kNameMask; }

std::size_t cut(ByteView bytes, Grain grain) {
  const CutSizes sizes = sizes_of(grain);
  if (bytes.size() <= sizes.min) return bytes.size();
  const int bits = std::bit_width(sizes.average) - 1;
  const u64 strict = top_bits(bits + 2), loose = top_bits(bits - 2);
  const std::size_t average = std::min<std::size_t>(sizes.average, bytes.size()), end = std::min<std::size_t>(sizes.max, bytes.size());
  const std::byte* data = bytes.data();
  u64 hash = 0;
  std::size_t i = sizes.min;
  for (; i < average; ++i) {
    hash = (hash << 1) + kGear[static_cast<u8>(data[i])];
    if ((hash & strict) == 0) return i + 1;
  }
  for (; i < end; ++i) {
    hash = (hash << 1) + kGear[static_cast<u8>(data[i])];
    if ((hash & loose) == 0) return i + 1;
  }
  return end;
}

namespace {

/// Cuts one range; false where the sink wants no more.
Result<bool> cut_range(const ReadAt& read, const Range& range, Grain grain, Buffer& buffer, const ChunkSink& sink) {
  const std::size_t max = sizes_of(grain).max;
  u64 at = range.offset;      // of the first byte in the buffer that is not cut yet
  std::size_t begin = 0, end = 0;
  bool is_end = false;
  for (;;) {
    if (!is_end && end - begin < max) {
      std::move(buffer.begin() + begin, buffer.begin() + end, buffer.begin());
      end -= begin;
      begin = 0;
      const u64 left = range.end() - (at + end);
      const auto wanted = static_cast<std::size_t>(std::min<u64>(left, buffer.size() - end));
      TRY(const std::size_t got, read(at + end, std::span(buffer.begin() + end, wanted)));
      end += got;
      is_end = got < wanted || got == left;
    }
    if (begin == end) return true;
    const ByteView left(buffer.begin() + begin, end - begin);
    const ByteView chunk = left.first(cut(left, grain));
    if (!sink(at, chunk)) return false;
    begin += chunk.size();
    at += chunk.size();
  }
}

}  // namespace

Result<void> for_each_chunk(const ReadAt& read, const std::vector<Range>& ranges, Grain grain, const ChunkSink& sink) {
  u64 longest = 0;
  for (const Range& range : ranges) longest = std::max(longest, range.length);
  Buffer buffer(static_cast<std::size_t>(std::clamp<u64>(longest, 1, kReadBytes)));
  for (const Range& range : ranges) {
    TRY(const bool goes_on, cut_range(read, range, grain, buffer, sink));
    if (!goes_on) break;
  }
  return ok();
}

}  // namespace envsync::delta
