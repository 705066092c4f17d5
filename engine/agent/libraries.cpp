// SPDX-License-Identifier: MIT
#include "agent/libraries.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.hpp"
#include "os/files.hpp"

namespace envsync::agent {

namespace {

// LIMIT: what any linker writes; a file that claims more is damaged, or hostile.
constexpr std::size_t kSegmentsMax = 256, kDynamicMax = 1u << 20, kNamesMax = 4096, kNameBytesMax = 4096, kSearchBytesMax = 64u << 10;
constexpr std::size_t kHeaderBytes = 64, kSegmentBytes = 56, kDynamicBytes = 16;
constexpr u32 kLoad = 1, kDynamic = 2;
constexpr u64 kNeeded = 1, kStrings = 5, kStringsSize = 10, kSoname = 14, kRpath = 15, kRunpath = 29;

/// An integer at an offset of bytes that are long enough.
template <class T>
T at(ByteView bytes, std::size_t offset) {
  ByteView rest = bytes.subspan(offset);
  return *take_le<T>(rest);
}

constexpr u64 kOffsetMax = u64{1} << 62;  // of a file at all

std::optional<Bytes> read(int fd, u64 offset, std::size_t size) {
  if (offset > kOffsetMax) return std::nullopt;
  Bytes bytes(size);
  const auto got = os::read_at(fd, offset, bytes, "a library");
  if (!got || *got != size) return std::nullopt;
  return bytes;
}

struct Segment { u32 type = 0; u64 offset = 0, address = 0, size = 0; };

std::optional<std::vector<Segment>> read_segments(int fd) {
  const auto header = read(fd, 0, kHeaderBytes);
  constexpr std::array<unsigned char, 6> kMagic{0x7f, 'E', 'L', 'F', 2, 1};  // 64 bits, little-endian
  if (!header || std::memcmp(header->data(), kMagic.data(), kMagic.size()) != 0) return std::nullopt;
  const u64 offset = at<u64>(*header, 32);
  const u16 size = at<u16>(*header, 54), count = at<u16>(*header, 56);
  if (size != kSegmentBytes || count == 0 || count > kSegmentsMax) return std::nullopt;
  const auto table = read(fd, offset, std::size_t{count} * kSegmentBytes);
  if (!table) return std::nullopt;
  std::vector<Segment> out;
  for (std::size_t i = 0; i < count; ++i) {
    const ByteView one = ByteView(*table).subspan(i * kSegmentBytes, kSegmentBytes);
    out.push_back({at<u32>(one, 0), at<u64>(one, 8), at<u64>(one, 16), at<u64>(one, 32)});
  }
  return out;
}

class Strings {
 public:
  Strings(int fd, u64 offset, u64 size) : fd_(fd), offset_(offset), size_(size) {}
  std::string get(u64 index, std::size_t limit) const {
    const auto at = checked_add(offset_, index);
    if (index >= size_ || !at || *at > kOffsetMax) return {};
    Bytes bytes(static_cast<std::size_t>(std::min<u64>(limit, size_ - index)));
    const auto got = os::read_at(fd_, *at, bytes, "a library");
    if (!got) return {};
    const std::string_view text = as_text(ByteView(bytes).first(*got));
    const std::size_t end = text.find('\0');
    return end == std::string_view::npos ? std::string{} : std::string(text.substr(0, end));
  }

 private:
  int fd_;
  u64 offset_, size_;
};

/// Where an address of memory lies in the file.
std::optional<u64> offset_of(const std::vector<Segment>& segments, u64 address) {
  for (const Segment& one : segments)
    if (one.type == kLoad && address >= one.address && address - one.address < one.size) return checked_add(one.offset, address - one.address);
  return std::nullopt;
}

}  // namespace

std::optional<LibraryFacts> read_library(int fd) {
  const auto segments = read_segments(fd);
  if (!segments) return std::nullopt;
  const auto dynamic = std::ranges::find(*segments, kDynamic, &Segment::type);
  if (dynamic == segments->end()) return LibraryFacts{};  // linked statically
  if (dynamic->size > kDynamicMax) return std::nullopt;
  const auto table = read(fd, dynamic->offset, static_cast<std::size_t>(dynamic->size));
  if (!table) return std::nullopt;
  std::vector<std::pair<u64, u64>> entries;
  u64 strings = 0, strings_size = 0;
  for (std::size_t i = 0; i + kDynamicBytes <= table->size(); i += kDynamicBytes) {
    const u64 tag = at<u64>(*table, i), value = at<u64>(*table, i + 8);
    if (tag == 0) break;
    if (tag == kStrings) strings = value;
    else if (tag == kStringsSize) strings_size = value;
    else if (tag == kNeeded || tag == kSoname || tag == kRpath || tag == kRunpath) entries.emplace_back(tag, value);
    if (entries.size() > kNamesMax) return std::nullopt;
  }
  const auto offset = offset_of(*segments, strings);
  if (!offset) return std::nullopt;
  const Strings names(fd, *offset, strings_size);
  LibraryFacts out;
  bool has_runpath = false;
  for (const auto& [tag, value] : entries) {
    if (tag == kNeeded) out.needed.push_back(names.get(value, kNameBytesMax));
    else if (tag == kSoname) out.soname = names.get(value, kNameBytesMax);
    else if (tag == kRunpath || !has_runpath) out.search = names.get(value, kSearchBytesMax);
    has_runpath = has_runpath || tag == kRunpath;
  }
  return out;
}

std::vector<std::string> absent_sonames(const std::vector<std::string>& names) {
  constexpr std::size_t kCacheMax = 64u << 20;
  constexpr std::array<const char*, 6> kFolders{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"};
  std::string cache;
  if (auto etc = os::open_dir_absolute("/etc"))
    if (auto text = os::read_small(etc->get(), "ld.so.cache", kCacheMax)) cache = std::move(*text);
  const auto is_there = [&](const std::string& name) {
    // Names stand in the cache between NULs.
    if (cache.find('\0' + name + '\0') != std::string::npos) return true;
    return std::ranges::any_of(kFolders, [&](const char* folder) {
      const auto dir = os::open_dir_absolute(folder);
      const auto st = dir ? os::stat_if_exists(dir->get(), name) : Result<std::optional<os::Stat>>(std::nullopt);
      return st && st->has_value();
    });
  };
  std::vector<std::string> out;
  for (const std::string& name : names)
    if (name.find('/') == std::string::npos && !is_there(name)) out.push_back(name);
  return out;
}

}  // namespace envsync::agent
