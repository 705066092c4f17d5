// SPDX-License-Identifier: MIT
// What a source is asked to read, in columns, so that 80,000 files cost little more than their digests.
//
//   items   := zstd( count:varint wants sizes digests paths ranges parts? )
//   wants   := numbers, as in format/wire.hpp
//   sizes   := ( size:varint )*
//   digests := ( digest[16] )*
//   paths   := path column, as in format/wire.hpp
//   ranges  := count:varint ( item:varint first:varint count:varint )*count     -- of items sent in part; ascending by item
//   parts   := count:varint ( item:varint count:varint ( gap:varint length:varint )*count )*count      -- of items of which some bytes are
//              sent; gap: to the end of the part before. Absent where there are none
//
// LIMIT: kEntriesMax items; kPartsMax parts; kItemBytesMax decompressed; the paths of all items together kPathColumnMax.
#include "format/messages.hpp"

#include "content/pack.hpp"
#include "format/wire.hpp"

#include <algorithm>
#include <limits>

namespace envsync::format {
namespace {

constexpr int kItemsLevel = 1;
constexpr std::size_t kPartsMax = 8'000'000;
constexpr std::size_t kItemBytesMax = 512u << 20;
// One byte of want, of size, of both lengths of a path, and the digest.
constexpr std::size_t kItemBytesMin = 4 + sizeof(Digest::bytes);

Error damaged(std::string_view why) { return no_message("a list of files", why); }

Result<void> take_numbers(ByteView& in, std::vector<PullItem>& items) {
  i64 before = 0;
  for (PullItem& item : items) {
    const auto want = take_number(in, before);
    if (!want || *want >= kEntriesMax) return damaged("a number is no entry of a tree");
    item.want = *want;
  }
  for (PullItem& item : items) {
    const auto size = take_varint(in);
    if (!size) return damaged("a size is cut");
    item.content.size = *size;
  }
  return ok();
}

Result<void> take_digests(ByteView& in, std::vector<PullItem>& items) {
  constexpr std::size_t kSize = sizeof(Digest::bytes);
  if (in.size() / kSize < items.size()) return damaged("the digests are cut");
  for (PullItem& item : items) {
    std::ranges::copy(in.first(kSize), item.content.digest.bytes.begin());
    in = in.subspan(kSize);
  }
  return ok();
}

Result<void> take_paths(ByteView& in, std::vector<PullItem>& items) {
  std::size_t budget = kPathColumnMax;
  std::string_view before;
  for (PullItem& item : items) {
    auto bytes = take_path(in, before, budget);
    auto path = bytes ? tree::RelPath::parse(*std::move(bytes)) : std::nullopt;
    if (!path || path->is_root()) return damaged("a path is none");
    item.path = *std::move(path);
    before = item.path.bytes();
  }
  return ok();
}

Result<void> take_ranges(ByteView& in, std::vector<PullItem>& items) {
  const auto count = take_varint(in);
  if (!count || *count > items.size()) return damaged("more ranges than files");
  u64 next = 0;
  for (u64 i = 0; i < *count; ++i) {
    const auto index = take_varint(in), first = take_varint(in), segments = take_varint(in);
    if (!index || !first || !segments || *index < next || *index >= items.size()) return damaged("a range of no file");
    next = *index + 1;
    PullItem& item = items[static_cast<std::size_t>(*index)];
    const u64 all = (item.content.size + content::kSegmentBytes - 1) / content::kSegmentBytes;
    const bool fits = all > 1 && *segments > 0 && *first < all && *segments <= all - *first && all <= std::numeric_limits<u32>::max();
    if (!fits) return damaged("a range that the file does not have");
    item.first = narrow<u32>(*first);
    item.count = narrow<u32>(*segments);
  }
  return ok();
}

Result<void> take_parts_of(ByteView& in, PullItem& item, u64& left) {
  const auto count = take_varint(in);
  if (!count || *count == 0 || *count > left || *count > in.size() / 2) return damaged("a count of parts is larger than the list");
  left -= *count;
  item.ranges.reserve(static_cast<std::size_t>(*count));
  u64 end = 0;
  for (u64 i = 0; i < *count; ++i) {
    const auto gap = take_varint(in), length = take_varint(in);
    const u64 size = item.content.size;
    if (!gap || !length || *length == 0 || *gap > size - end || *length > size - end - *gap) return damaged("a part that the file does not have");
    item.ranges.push_back({end + *gap, *length});
    end += *gap + *length;
  }
  return ok();
}

Result<void> take_parts(ByteView& in, std::vector<PullItem>& items) {
  if (in.empty()) return ok();
  const auto count = take_varint(in);
  if (!count || *count == 0 || *count > items.size()) return damaged("bytes follow the last range");
  u64 next = 0, left = kPartsMax;
  for (u64 i = 0; i < *count; ++i) {
    const auto index = take_varint(in);
    if (!index || *index < next || *index >= items.size()) return damaged("parts of no file");
    next = *index + 1;
    PullItem& item = items[static_cast<std::size_t>(*index)];
    if (item.count > 0) return damaged("a file in segments and in parts");
    TRY_STATUS(take_parts_of(in, item, left));
  }
  return ok();
}

void put_parts(Bytes& out, const std::vector<PullItem>& items) {
  const auto count = std::ranges::count_if(items, [](const PullItem& item) { return !item.ranges.empty(); });
  if (count == 0) return;
  put_varint(out, static_cast<u64>(count));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].ranges.empty()) continue;
    put_varint(out, i);
    put_varint(out, items[i].ranges.size());
    u64 end = 0;
    for (const ByteRange& part : items[i].ranges) {
      put_varint(out, part.offset - end);
      put_varint(out, part.length);
      end = part.offset + part.length;
    }
  }
}

}  // namespace

Bytes encode_pull_items(const std::vector<PullItem>& items) {
  Bytes out;
  put_varint(out, items.size());
  i64 before = 0;
  for (const PullItem& item : items) put_number(out, before, item.want);
  for (const PullItem& item : items) put_varint(out, item.content.size);
  for (const PullItem& item : items) out.insert(out.end(), item.content.digest.bytes.begin(), item.content.digest.bytes.end());
  std::string_view path;
  for (const PullItem& item : items) {
    put_path(out, path, item.path.bytes());
    path = item.path.bytes();
  }
  put_varint(out, static_cast<u64>(std::ranges::count_if(items, [](const PullItem& item) { return item.count > 0; })));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].count == 0) continue;
    put_varint(out, i);
    put_varint(out, items[i].first);
    put_varint(out, items[i].count);
  }
  put_parts(out, items);
  return content::compress(out, kItemsLevel);
}

Result<std::vector<PullItem>> decode_pull_items(ByteView compressed) {
  const auto columns = content::decompress(compressed, kItemBytesMax);
  if (!columns) return damaged(columns.error().what);
  ByteView in = *columns;
  const auto count = take_varint(in);
  if (!count || *count > kEntriesMax || *count > in.size() / kItemBytesMin) return damaged("the count is larger than the list");
  std::vector<PullItem> items(static_cast<std::size_t>(*count));
  TRY_STATUS(take_numbers(in, items));
  TRY_STATUS(take_digests(in, items));
  TRY_STATUS(take_paths(in, items));
  TRY_STATUS(take_ranges(in, items));
  TRY_STATUS(take_parts(in, items));
  if (!in.empty()) return damaged("bytes follow the last part");
  return items;
}

}  // namespace envsync::format
