// SPDX-License-Identifier: MIT
#include "delta/lists.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "content/pack.hpp"

namespace envsync::delta {

namespace {

constexpr int kLevel = 3;
constexpr std::size_t kNameBytes = 6;

Error damaged(std::string_view list, std::string_view why) {
  return Error(ErrorCode::protocol, fmt::format("a list of {} is damaged", list)).cause(std::string(why));
}

Result<Bytes> opened(ByteView bytes, std::string_view list) {
  auto plain = content::decompress(bytes, kListBytesMax);
  if (!plain) return damaged(list, plain.error().what);
  return plain;
}

/// A count of things of at least `least` bytes each.
std::optional<std::size_t> take_count(ByteView& in, std::size_t least, std::size_t max) {
  const auto count = take_varint(in);
  if (!count || *count > max || *count > in.size() / least) return std::nullopt;
  return static_cast<std::size_t>(*count);
}

u64 zigzag(i64 value) { return (static_cast<u64>(value) << 1) ^ static_cast<u64>(value >> 63); }
/// `before` plus a zigzag; nothing where it leaves [0, max].
std::optional<u64> take_near(ByteView& in, u64 before, u64 max) {
  const auto raw = take_varint(in);
  if (!raw) return std::nullopt;
  const u64 distance = (*raw >> 1) + (*raw & 1);
  if ((*raw & 1) != 0) return distance <= before ? std::optional(before - distance) : std::nullopt;
  const auto sum = checked_add(before, distance);
  return sum && *sum <= max ? sum : std::nullopt;
}

void put_path(Bytes& out, const tree::RelPath& path) { put_string(out, path.bytes()); }
std::optional<tree::RelPath> take_path(ByteView& in) {
  const auto text = take_string(in);
  auto path = text ? tree::RelPath::parse(std::string(*text)) : std::nullopt;
  return path && !path->is_root() ? path : std::nullopt;
}

void put_ranges(Bytes& out, const std::vector<Range>& ranges) {
  put_varint(out, ranges.size());
  u64 end = 0;
  for (const Range& range : ranges) {
    put_varint(out, range.offset - end);
    put_varint(out, range.length);
    end = range.end();
  }
}

constexpr u64 kOffsetMax = u64{1} << 62;

/// The next stretch behind `end`, which it moves.
std::optional<Range> take_range(ByteView& in, u64& end) {
  const auto gap = take_varint(in), length = take_varint(in);
  if (!gap || !length || *length == 0 || *gap > kOffsetMax || *length > kOffsetMax) return std::nullopt;
  const Range range{end + *gap, *length};
  if (range.end() > kOffsetMax) return std::nullopt;
  end = range.end();
  return range;
}

std::optional<std::vector<Range>> take_ranges(ByteView& in) {
  const auto count = take_count(in, 2, kNamesMax);
  if (!count) return std::nullopt;
  std::vector<Range> ranges;
  ranges.reserve(*count);
  u64 end = 0;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto range = take_range(in, end);
    if (!range) return std::nullopt;
    ranges.push_back(*range);
  }
  return ranges;
}

void put_name(Bytes& out, u64 name) {
  for (std::size_t i = 0; i < kNameBytes; ++i) out.push_back(static_cast<std::byte>((name >> (8 * i)) & 0xff));
}
/// The caller has checked that the bytes are there.
u64 take_name(ByteView& in) {
  u64 name = 0;
  for (std::size_t i = 0; i < kNameBytes; ++i) name |= static_cast<u64>(in[i]) << (8 * i);
  in = in.subspan(kNameBytes);
  return name;
}

}  // namespace

Bytes encode_files(const std::vector<FileRanges>& files) {
  Bytes out;
  put_varint(out, files.size());
  for (const FileRanges& file : files) {
    put_path(out, file.path);
    put_ranges(out, file.ranges);
  }
  return content::compress(out, kLevel);
}

Result<std::vector<FileRanges>> decode_files(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "files"));
  ByteView in = plain;
  const auto count = take_count(in, 3, kFilesMax);
  if (!count) return damaged("files", "the count is larger than the list");
  std::vector<FileRanges> files(*count);
  for (FileRanges& file : files) {
    auto path = take_path(in);
    auto ranges = path ? take_ranges(in) : std::nullopt;
    if (!ranges) return damaged("files", "a file is none");
    file = {std::move(*path), std::move(*ranges)};
  }
  if (!in.empty()) return damaged("files", "bytes follow the last one");
  return files;
}

Bytes encode_chunks(const std::vector<ChunkList>& lists, bool has_lengths) {
  Bytes out;
  put_varint(out, lists.size());
  for (const ChunkList& list : lists) {
    put_varint(out, list.size());
    for (const Chunk& chunk : list)
      if (has_lengths) put_varint(out, chunk.length);
    for (const Chunk& chunk : list) put_name(out, chunk.name);
  }
  return content::compress(out, 1);
}

Result<std::vector<ChunkList>> decode_chunks(ByteView bytes, bool has_lengths) {
  TRY(const Bytes plain, opened(bytes, "chunks"));
  ByteView in = plain;
  const auto count = take_count(in, 1, kFilesMax);
  if (!count) return damaged("chunks", "the count is larger than the list");
  std::vector<ChunkList> lists(*count);
  std::size_t left = kNamesMax;
  for (ChunkList& list : lists) {
    const auto size = take_count(in, kNameBytes + (has_lengths ? 1 : 0), left);
    if (!size) return damaged("chunks", "a count is larger than the list");
    left -= *size;
    list.resize(*size);
    for (Chunk& chunk : list) {
      if (!has_lengths) break;
      const auto length = take_varint(in);
      if (!length || *length == 0 || *length > sizes_of(Grain::coarse).max) return damaged("chunks", "a length that no chunk has");
      chunk.length = narrow<u32>(*length);
    }
    if (in.size() / kNameBytes < *size) return damaged("chunks", "the names are cut");
    for (Chunk& chunk : list) chunk.name = take_name(in);
  }
  if (!in.empty()) return damaged("chunks", "bytes follow the last one");
  return lists;
}

Bytes encode_questions(const std::vector<Question>& questions) {
  Bytes out;
  put_varint(out, questions.size());
  for (const Question& question : questions) {
    put_path(out, question.path);
    put_ranges(out, question.ranges);
    put_varint(out, question.names.size());
    for (const u64 name : question.names) put_name(out, name);
  }
  return content::compress(out, 1);
}

Result<std::vector<Question>> decode_questions(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "questions"));
  ByteView in = plain;
  const auto count = take_count(in, 4, kFilesMax);
  if (!count) return damaged("questions", "the count is larger than the list");
  std::vector<Question> questions(*count);
  std::size_t left = kNamesMax;
  for (Question& question : questions) {
    auto path = take_path(in);
    auto ranges = path ? take_ranges(in) : std::nullopt;
    const auto names = ranges ? take_count(in, kNameBytes, left) : std::nullopt;
    if (!names) return damaged("questions", "a question is none");
    left -= *names;
    question = {std::move(*path), std::move(*ranges), std::vector<u64>(*names)};
    for (u64& name : question.names) name = take_name(in);
  }
  if (!in.empty()) return damaged("questions", "bytes follow the last one");
  return questions;
}

Bytes encode_recipes(const std::vector<std::vector<Found>>& recipes) {
  Bytes out;
  put_varint(out, recipes.size());
  for (const auto& recipe : recipes) {
    put_varint(out, recipe.size());
    u64 end = 0;
    std::array<u64, 2> before{};
    for (const Found& found : recipe) {
      u64& last = before[found.is_own ? 1 : 0];
      put_varint(out, found.to - end);
      put_varint(out, found.length);
      put_varint(out, found.is_own ? 1 : 0);
      put_varint(out, zigzag(static_cast<i64>(found.from) - static_cast<i64>(last)));
      end = found.to + found.length;
      last = found.from;
    }
  }
  return content::compress(out, kLevel);
}

Result<std::vector<std::vector<Found>>> decode_recipes(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "recipes"));
  ByteView in = plain;
  const auto count = take_count(in, 1, kFilesMax);
  if (!count) return damaged("recipes", "the count is larger than the list");
  std::vector<std::vector<Found>> recipes(*count);
  std::size_t left = kNamesMax;
  for (auto& recipe : recipes) {
    const auto size = take_count(in, 4, left);
    if (!size) return damaged("recipes", "a count is larger than the list");
    left -= *size;
    recipe.reserve(*size);
    u64 end = 0;
    std::array<u64, 2> before{};
    for (std::size_t i = 0; i < *size; ++i) {
      const auto range = take_range(in, end);
      const auto kind = range ? take_varint(in) : std::nullopt;
      if (!kind || *kind > 1) return damaged("recipes", "a step is none");
      const auto from = take_near(in, before[*kind], *kind == 1 ? kOffsetMax : kNamesMax);
      if (!from) return damaged("recipes", "a step comes from nowhere");
      before[*kind] = *from;
      recipe.push_back({range->offset, range->length, *from, *kind == 1});
    }
  }
  if (!in.empty()) return damaged("recipes", "bytes follow the last one");
  return recipes;
}

Bytes encode_copies(const CopyPlan& plan) {
  Bytes out;
  put_varint(out, plan.bases.size());
  for (const tree::RelPath& base : plan.bases) put_path(out, base);
  put_varint(out, plan.files.size());
  std::vector<u64> ends(2 * plan.bases.size() + 1, 0);
  for (const FileCopies& file : plan.files) {
    put_varint(out, file.want);
    put_varint(out, file.copies.size());
    u64 end = 0;
    for (const Copy& copy : file.copies) {
      const std::size_t source = copy.base == Copy::kOwn ? 2 * plan.bases.size() : 2 * std::size_t{copy.base} + (copy.by_chunk ? 1 : 0);
      u64& before = ends[source];
      put_varint(out, copy.to - end);
      put_varint(out, copy.length);
      put_varint(out, source);
      put_varint(out, zigzag(static_cast<i64>(copy.from) - static_cast<i64>(before)));
      before = copy.by_chunk ? copy.from : copy.from + copy.length;
      end = copy.to + copy.length;
    }
  }
  return content::compress(out, kLevel);
}

namespace {

std::optional<Copy> take_copy(ByteView& in, u64& end, std::vector<u64>& ends) {
  const auto range = take_range(in, end);
  const auto source = range ? take_varint(in) : std::nullopt;
  if (!source || *source >= ends.size()) return std::nullopt;
  const bool by_chunk = (*source & 1) != 0;
  u64& before = ends[static_cast<std::size_t>(*source)];
  const auto from = take_near(in, before, by_chunk ? kNamesMax : kOffsetMax);
  if (!from) return std::nullopt;
  before = by_chunk ? *from : *from + range->length;
  const u32 base = *source + 1 == ends.size() ? Copy::kOwn : narrow<u32>(*source / 2);
  return Copy{range->offset, range->length, base, by_chunk, *from};
}

}  // namespace

Result<CopyPlan> decode_copies(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "copies"));
  ByteView in = plain;
  const auto bases = take_count(in, 2, kFilesMax);
  if (!bases) return damaged("copies", "more bases than bytes");
  CopyPlan plan;
  for (std::size_t i = 0; i < *bases; ++i) {
    auto path = take_path(in);
    if (!path) return damaged("copies", "a base is none");
    plan.bases.push_back(std::move(*path));
  }
  const auto count = take_count(in, 2, kFilesMax);
  if (!count) return damaged("copies", "the count is larger than the list");
  std::vector<u64> ends(2 * *bases + 1, 0);
  plan.files.resize(*count);
  std::size_t left = kNamesMax;
  for (FileCopies& file : plan.files) {
    const auto want = take_varint(in);
    const auto size = take_count(in, 4, left);
    if (!want || *want > std::numeric_limits<u32>::max() || !size) return damaged("copies", "a file is none");
    left -= *size;
    file.want = narrow<u32>(*want);
    file.copies.reserve(*size);
    u64 end = 0;
    for (std::size_t i = 0; i < *size; ++i) {
      const auto copy = take_copy(in, end, ends);
      if (!copy) return damaged("copies", "a copy is none");
      file.copies.push_back(*copy);
    }
  }
  if (!in.empty()) return damaged("copies", "bytes follow the last one");
  return plan;
}

Bytes encode_named(const std::vector<Named>& files, int level) {
  Bytes out;
  put_varint(out, files.size());
  for (const Named& file : files) {
    put_varint(out, file.number);
    put_path(out, file.path);
    put_string(out, as_text(file.bytes));
  }
  return content::compress(out, level);
}

Result<std::vector<Named>> decode_named(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "named files"));
  ByteView in = plain;
  const auto count = take_count(in, 4, kFilesMax);
  if (!count) return damaged("named files", "the count is larger than the list");
  std::vector<Named> files(*count);
  for (Named& file : files) {
    const auto number = take_varint(in);
    auto path = number ? take_path(in) : std::nullopt;
    const auto text = path ? take_string(in) : std::nullopt;
    if (!text || *number > std::numeric_limits<u32>::max()) return damaged("named files", "a file is none");
    const ByteView view = as_bytes(*text);
    file = {narrow<u32>(*number), std::move(*path), Bytes(view.begin(), view.end())};
  }
  if (!in.empty()) return damaged("named files", "bytes follow the last one");
  return files;
}

Bytes encode_strings(const std::vector<Bytes>& strings, int level) {
  Bytes out;
  put_varint(out, strings.size());
  for (const Bytes& bytes : strings) put_string(out, as_text(bytes));
  return content::compress(out, level);
}

Result<std::vector<Bytes>> decode_strings(ByteView bytes) {
  TRY(const Bytes plain, opened(bytes, "byte strings"));
  ByteView in = plain;
  const auto count = take_count(in, 1, kFilesMax);
  if (!count) return damaged("byte strings", "the count is larger than the list");
  std::vector<Bytes> strings;
  strings.reserve(*count);
  for (std::size_t i = 0; i < *count; ++i) {
    const auto text = take_string(in);
    if (!text) return damaged("byte strings", "one is cut");
    const ByteView view = as_bytes(*text);
    strings.emplace_back(view.begin(), view.end());
  }
  if (!in.empty()) return damaged("byte strings", "bytes follow the last one");
  return strings;
}

}  // namespace envsync::delta
