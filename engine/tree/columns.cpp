// SPDX-License-Identifier: MIT
// Numbers are LEB128 varints, `text` is a varint length and the bytes, `z` a signed number in zigzag.
//
//   columns := count  paths  type:u8*count  mode*count  file_columns  target:text*links  owners  xattrs
//   paths   := ( shared rest:text )*count          -- shared: bytes in common with the path before
//   file_columns := size*files  digest:16*files  group*files  mtime:z*files   -- mtime as the difference to the file before
//   owners  := ( 0 | 1 uid gid )*count             -- 0: as of the entry before; before the first: 0, 0
//   xattrs  := ( n (name:text value:text)*n )*count
#include "tree/columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tree/validate.hpp"

namespace envsync::tree {

namespace {

/// LIMIT: prefix compression can turn few bytes into long paths; a tree of 80,000 files has 8 MB of them.
constexpr std::size_t kPathBytesTotalMax = 256u << 20;
/// Every entry costs at least shared, rest, type, mode, owner flag and attribute count.
constexpr std::size_t kEntryCostMin = 6, kPathCostMin = 2;

u64 zigzag(u64 difference) { return (difference << 1) ^ (difference >> 63 ? ~u64{0} : 0); }
u64 unzigzag(u64 coded) { return (coded >> 1) ^ (coded & 1 ? ~u64{0} : 0); }

Error bad(std::string_view why) { return Error(ErrorCode::corrupt, fmt::format("an encoded tree that is not valid: {}", why)); }

void put_path(Bytes& out, std::string_view before, std::string_view path) {
  const auto [end, _] = std::ranges::mismatch(before, path);
  const auto shared = static_cast<std::size_t>(end - before.begin());
  put_varint(out, shared);
  put_string(out, path.substr(shared));
}

class PathReader {
 public:
  Result<RelPath> take(ByteView& in) {
    const auto shared = take_varint(in);
    const auto rest = take_string(in);
    if (!shared || !rest || *shared > before_.size()) return bad("a path cut short");
    const std::size_t length = static_cast<std::size_t>(*shared) + rest->size();
    if (length > kPathBytesMax) return bad("a path that is too long");
    total_ += length;
    if (total_ > kPathBytesTotalMax) return bad("more bytes of paths than a tree may have");
    before_.replace(static_cast<std::size_t>(*shared), std::string::npos, *rest);
    auto path = RelPath::parse(before_);
    if (!path) return bad("a path that is none");
    return std::move(*path);
  }

 private:
  std::string before_;
  std::size_t total_ = 0;
};

/// The count at the front, if so many things of `cost` bytes each can follow.
Result<std::size_t> take_count(ByteView& in, std::size_t cost) {
  const auto count = take_varint(in);
  if (!count || *count > kEntriesMax || *count > in.size() / cost) return bad("a count beyond its bytes");
  return static_cast<std::size_t>(*count);
}

Result<u64> take_number(ByteView& in, u64 max) {
  const auto value = take_varint(in);
  if (!value || *value > max) return bad("a number cut short or too large");
  return *value;
}

template <class Visit>
void for_each_file(std::span<const Entry> entries, Visit visit) {
  for (const Entry& entry : entries)
    if (const File* file = entry.file()) visit(entry, *file);
}

Result<void> take_types_and_modes(ByteView& in, std::vector<Entry>& entries) {
  if (in.size() < entries.size()) return bad("types cut short");
  for (std::size_t i = 0; i < entries.size(); ++i) switch (static_cast<u8>(in[i])) {
    case 0: entries[i].body = Dir{}; break;
    case 1: entries[i].body = File{}; break;
    case 2: entries[i].body = Symlink{}; break;
    default: return bad("an entry of no known type");
  }
  in = in.subspan(entries.size());
  for (Entry& entry : entries) {
    TRY(const u64 mode, take_number(in, 07777));
    entry.mode = static_cast<u32>(mode);
  }
  return ok();
}

Result<void> take_files(ByteView& in, std::vector<Entry>& entries) {
  std::vector<Entry*> with_file;
  for (Entry& entry : entries)
    if (entry.file()) with_file.push_back(&entry);
  const auto file_of = [](Entry* entry) -> File& { return std::get<File>(entry->body); };
  for (Entry* entry : with_file) {
    TRY(file_of(entry).size, take_number(in, ~u64{0}));
  }
  for (Entry* entry : with_file) {
    Digest& digest = file_of(entry).digest;
    if (in.size() < digest.bytes.size()) return bad("digests cut short");
    std::ranges::copy(in.first(digest.bytes.size()), digest.bytes.begin());
    in = in.subspan(digest.bytes.size());
  }
  for (Entry* entry : with_file) {
    TRY(const u64 group, take_number(in, kEntriesMax));
    file_of(entry).link_group = static_cast<u32>(group);
  }
  u64 before = 0;
  for (Entry* entry : with_file) {
    TRY(const u64 coded, take_number(in, ~u64{0}));
    before += unzigzag(coded);
    entry->mtime_ns = static_cast<i64>(before);
  }
  return ok();
}

Result<void> take_owners(ByteView& in, std::vector<Entry>& entries) {
  Owner before;
  for (Entry& entry : entries) {
    TRY(const u64 differs, take_number(in, 1));
    if (differs != 0) {
      TRY(const u64 uid, take_number(in, ~u32{0}));
      TRY(const u64 gid, take_number(in, ~u32{0}));
      before = {static_cast<u32>(uid), static_cast<u32>(gid)};
    }
    entry.owner = before;
  }
  return ok();
}

Result<void> take_xattrs(ByteView& in, std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    TRY(const u64 count, take_number(in, std::min(kXattrsMax, in.size() / 2)));
    entry.xattrs.reserve(static_cast<std::size_t>(count));
    for (u64 i = 0; i < count; ++i) {
      const auto name = take_string(in);
      const auto value = take_string(in);
      if (!name || !value) return bad("an attribute cut short");
      entry.xattrs.emplace_back(*name, *value);
    }
  }
  return ok();
}

void put_owners(Bytes& out, std::span<const Entry> entries) {
  Owner before;
  for (const Entry& entry : entries) {
    const bool differs = entry.owner != before;
    put_varint(out, differs ? 1 : 0);
    if (!differs) continue;
    put_varint(out, entry.owner.uid);
    put_varint(out, entry.owner.gid);
    before = entry.owner;
  }
}

void put_xattrs(Bytes& out, std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    put_varint(out, entry.xattrs.size());
    for (const auto& [name, value] : entry.xattrs) {
      put_string(out, name);
      put_string(out, value);
    }
  }
}

}  // namespace

void put_columns(Bytes& out, std::span<const Entry> entries) {
  put_varint(out, entries.size());
  std::string_view before;
  for (const Entry& entry : entries) {
    put_path(out, before, entry.path.bytes());
    before = entry.path.bytes();
  }
  for (const Entry& entry : entries) out.push_back(static_cast<std::byte>(entry.body.index()));
  for (const Entry& entry : entries) put_varint(out, entry.mode);
  for_each_file(entries, [&](const Entry&, const File& file) { put_varint(out, file.size); });
  for_each_file(entries, [&](const Entry&, const File& file) { out.insert(out.end(), file.digest.bytes.begin(), file.digest.bytes.end()); });
  for_each_file(entries, [&](const Entry&, const File& file) { put_varint(out, file.link_group); });
  u64 mtime_before = 0;
  for_each_file(entries, [&](const Entry& entry, const File&) {
    put_varint(out, zigzag(static_cast<u64>(entry.mtime_ns) - mtime_before));
    mtime_before = static_cast<u64>(entry.mtime_ns);
  });
  for (const Entry& entry : entries)
    if (const Symlink* link = entry.symlink()) put_string(out, link->target);
  put_owners(out, entries);
  put_xattrs(out, entries);
}

Result<std::vector<Entry>> take_columns(ByteView& in) {
  TRY(const std::size_t count, take_count(in, kEntryCostMin));
  std::vector<Entry> entries(count);
  PathReader paths;
  for (Entry& entry : entries) {
    TRY(entry.path, paths.take(in));
  }
  TRY_STATUS(take_types_and_modes(in, entries));
  TRY_STATUS(take_files(in, entries));
  for (Entry& entry : entries) {
    if (!entry.symlink()) continue;
    const auto target = take_string(in);
    if (!target) return bad("a link target cut short");
    std::get<Symlink>(entry.body).target = *target;
  }
  TRY_STATUS(take_owners(in, entries));
  TRY_STATUS(take_xattrs(in, entries));
  for (const Entry& entry : entries)
    if (const auto wrong = wrong_with(entry)) return bad_tree(entry.path, *wrong);
  return entries;
}

void put_paths(Bytes& out, std::span<const RelPath> paths) {
  put_varint(out, paths.size());
  std::string_view before;
  for (const RelPath& path : paths) {
    put_path(out, before, path.bytes());
    before = path.bytes();
  }
}

Result<std::vector<RelPath>> take_paths(ByteView& in) {
  TRY(const std::size_t count, take_count(in, kPathCostMin));
  std::vector<RelPath> paths;
  paths.reserve(count);
  PathReader reader;
  for (std::size_t i = 0; i < count; ++i) {
    TRY(RelPath path, reader.take(in));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace envsync::tree
