// SPDX-License-Identifier: MIT
#include "store/receiving.hpp"

#include "base/buffer.hpp"

namespace envsync::store {

using content::ContentId;
using content::Digest;
using content::kSegmentBytes;

namespace {

constexpr std::size_t kChecked = 4 + sizeof(Digest::bytes), kRecord = kChecked + 4;

constexpr std::size_t kListBytesMax = 64u << 20;  // LIMIT: 2.8 million segments, some 22 TB

u32 check_of(ByteView record) { return static_cast<u32>(content::checksum_of(record.first(kChecked))); }

std::shared_ptr<Receiving> empty(const ContentId& content) {
  auto made = std::make_shared<Receiving>();
  made->content = content;
  const std::size_t segments = static_cast<std::size_t>((content.size + kSegmentBytes - 1) / kSegmentBytes);
  made->written.assign(segments, 0);
  made->digests.assign(segments, std::nullopt);
  made->segments_left = segments;
  return made;
}

}  // namespace

/// False where a byte of it was there before.
bool reserve(std::map<u64, u64>& ranges, u64 begin, u64 end) {
  const auto next = ranges.lower_bound(begin);
  if (next != ranges.end() && next->first < end) return false;
  if (next != ranges.begin() && std::prev(next)->second > begin) return false;
  u64 from = begin, to = end;
  if (next != ranges.end() && next->first == end) {
    to = next->second;
    ranges.erase(next);
  }
  if (const auto after = ranges.lower_bound(begin); after != ranges.begin() && std::prev(after)->second == begin) {
    from = std::prev(after)->first;
    ranges.erase(std::prev(after));
  }
  ranges[from] = to;
  return true;
}

Result<std::shared_ptr<Receiving>> Receiving::make(os::Files& files, int dir, const ContentId& content) {
  const auto made = empty(content);
  TRY(made->fd, files.create(dir, partial_path(content), 0600));
  TRY(made->list, files.create(dir, segments_path(content), 0600));
  TRY_STATUS(files.allocate(made->fd.get(), content.size));
  return made;
}

Result<std::shared_ptr<Receiving>> Receiving::take_over(os::Files& files, int dir, int from, const ContentId& content, bool may_trust,
                                                        std::atomic<u64>& bytes_read) {
  const std::string bytes = partial_path(content), list = segments_path(content);
  TRY(const auto found, os::stat_if_exists(from, bytes));
  TRY(const auto found_list, os::stat_if_exists(from, list));
  const auto usable = [](const std::optional<os::Stat>& stat) { return stat && stat->kind == os::Kind::file && stat->nlink == 1; };
  if (!usable(found) || !usable(found_list) || found->size > content.size) return std::shared_ptr<Receiving>();
  const auto made = empty(content);
  TRY_STATUS(files.rename_noreplace(from, bytes, dir, bytes));
  TRY_STATUS(files.rename_noreplace(from, list, dir, list));
  TRY(made->fd, files.open_write(dir, bytes));
  TRY(made->list, files.open_write(dir, list));
  TRY_STATUS(made->read_list(dir, may_trust, bytes_read));
  return made;
}

/// Reads as far as records are whole; what follows is written over.
Result<void> Receiving::read_list(int dir, bool may_trust, std::atomic<u64>& bytes_read) {
  const std::string name = segments_path(content);
  TRY(const std::string text, os::read_small(dir, name, kListBytesMax));
  ByteView in = as_bytes(text);
  Buffer whole;
  while (in.size() >= kRecord) {
    const ByteView record = in.first(kRecord);
    in = in.subspan(kRecord);
    ByteView fields = record;
    const u32 segment = *take_le<u32>(fields);
    Digest digest;
    std::copy_n(fields.begin(), digest.bytes.size(), digest.bytes.begin());
    fields = fields.subspan(digest.bytes.size());
    if (*take_le<u32>(fields) != check_of(record) || segment >= digests.size()) break;
    listed += kRecord;
    if (digests[segment]) continue;
    if (!may_trust) {
      if (whole.empty()) whole = Buffer(static_cast<std::size_t>(kSegmentBytes));
      const std::span<std::byte> place(whole.data(), static_cast<std::size_t>(segment_size(segment)));
      TRY(const std::size_t got, os::read_at(fd.get(), segment * kSegmentBytes, place, name));
      bytes_read += got;
      if (content::digest_of(ByteView(place).first(got)) != digest) continue;  // comes again, and is listed again
    }
    note(segment, digest);
  }
  return ok();
}

void Receiving::note(std::size_t segment, const Digest& digest) {
  const u64 begin = segment * kSegmentBytes;
  written[segment] = segment_size(segment);
  digests[segment] = digest;
  --segments_left;
  reserve(ranges, begin, begin + segment_size(segment));
}

void Receiving::give_back(std::size_t segment) {
  digests[segment].reset();
  ++segments_left;
  forget_unfinished();
}

void Receiving::forget_unfinished() {
  ranges.clear();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (digests[i]) reserve(ranges, i * kSegmentBytes, i * kSegmentBytes + segment_size(i));
    else written[i] = 0;
  }
}

u64 list_missing(u32 index, const Receiving& into, std::vector<MissingSegments>& missing) {
  u64 there = 0;
  for (std::size_t at = 0; at < into.digests.size(); ++at) {
    if (into.digests[at]) {
      there += into.segment_size(at);
      continue;
    }
    const bool goes_on = !missing.empty() && missing.back().want == index && missing.back().first + missing.back().count == at;
    if (goes_on) ++missing.back().count;
    else missing.push_back({index, narrow<u32>(at), 1});
  }
  return there;
}

Result<void> Receiving::add(os::Files& files, std::size_t segment, const Digest& digest) {
  Bytes record;
  put_le(record, narrow<u32>(segment));
  record.insert(record.end(), digest.bytes.begin(), digest.bytes.end());
  put_le(record, check_of(record));
  TRY_STATUS(files.write_at(list.get(), listed, record, segments_path(content)));
  listed += kRecord;
  digests[segment] = digest;
  --segments_left;
  return ok();
}

}  // namespace envsync::store
