// SPDX-License-Identifier: MIT
// The digest of a whole tree. Integers are little-endian.
//
//   root    := XXH3-128, seed 2, of ( version:u8=1 policy:u8 entry* )      -- entries in byte order of path, the root as ""
//   entry   := type:u8(0 directory, 1 file, 2 link) path:bytes mode:u16 body owner? xattrs? mtime?
//   body    := (file) size:u64 digest:16 group:u32  |  (link) target:bytes  |  (directory) nothing
//   bytes   := length:u32 byte*
//   owner   := uid:u32 gid:u32
//   xattrs  := count:u32 ( name:bytes value:bytes )*
//   mtime   := i64
//
// owner, xattrs and mtime are there only where the policy compares them; mtime only of files. group is 1 + the index of the
// group's first entry, else 0, and always 0 where hard links are not compared. A directory's setgid bit comes from the folder it
// was made in, so it counts only where the owner does. The full digest has the same grammar, seed 3, with everything in it.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "tree/tree.hpp"

namespace envsync::tree {

namespace {

constexpr u8 kVersion = 1;
constexpr u64 kSeedOfRoot = 2, kSeedOfFull = 3;
constexpr u32 kSetgid = 02000;

/// Gathers small values, so that the hasher is called for every 32 KiB and not for every integer.
class Sink {
 public:
  explicit Sink(u64 seed) : hasher_(seed) {}
  template <std::unsigned_integral T>
  void integer(T value) {
    std::array<std::byte, sizeof(T)> wire;
    for (std::size_t i = 0; i < sizeof(T); ++i) wire[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
    raw(wire);
  }
  void text(std::string_view bytes) {
    integer(static_cast<u32>(bytes.size()));
    raw(as_bytes(bytes));
  }
  void raw(ByteView bytes) {
    if (bytes.size() > buffer_.size() - used_) flush();
    if (bytes.size() > buffer_.size()) { hasher_.update(bytes); return; }
    if (!bytes.empty()) std::memcpy(buffer_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }
  Digest finish() {
    flush();
    return hasher_.digest();
  }

 private:
  void flush() {
    hasher_.update(ByteView(buffer_.data(), used_));
    used_ = 0;
  }
  content::Hasher hasher_;
  std::size_t used_ = 0;
  std::array<std::byte, 32768> buffer_;
};

struct Counted { bool owner, mtime, xattrs, hardlinks, source_mtimes; };

void add(Sink& sink, const Entry& entry, const Counted& counted) {
  sink.integer(static_cast<u8>(entry.body.index()));
  sink.text(entry.path.bytes());
  const u32 mode = entry.is_dir() && !counted.owner ? entry.mode & ~kSetgid : entry.mode;
  sink.integer(static_cast<u16>(mode));
  if (const File* file = entry.file()) {
    sink.integer(file->size);
    sink.raw(file->digest.bytes);
    sink.integer(counted.hardlinks ? file->link_group : u32{0});
  } else if (const Symlink* link = entry.symlink()) {
    sink.text(link->target);
  }
  if (counted.owner) {
    sink.integer(entry.owner.uid);
    sink.integer(entry.owner.gid);
  }
  if (counted.xattrs) {
    sink.integer(static_cast<u32>(entry.xattrs.size()));
    for (const auto& [name, value] : entry.xattrs) {
      sink.text(name);
      sink.text(value);
    }
  }
  const bool is_source = counted.source_mtimes && entry.path.bytes().ends_with(".py");
  if (entry.file() && (counted.mtime || is_source)) sink.integer(static_cast<u64>(entry.mtime_ns));
}

Digest digest_entries(std::span<const Entry> entries, u64 seed, u8 policy, const Counted& counted) {
  if (entries.empty()) return Digest{};
  Sink sink(seed);
  sink.integer(kVersion);
  sink.integer(policy);
  for (const Entry& entry : entries) add(sink, entry, counted);
  return sink.finish();
}

}  // namespace

static_assert(std::is_same_v<std::variant_alternative_t<0, decltype(Entry::body)>, Dir> &&
              std::is_same_v<std::variant_alternative_t<1, decltype(Entry::body)>, File>, "the type byte is the index");

u8 ComparePolicy::bits() const {
  return static_cast<u8>((owner ? 1 : 0) | (mtime ? 2 : 0) | (xattrs ? 4 : 0) | (hardlinks ? 8 : 0) | (source_mtimes ? 16 : 0));
}

std::optional<ComparePolicy> ComparePolicy::from_bits(u8 bits) {
  if (bits > 31) return std::nullopt;
  return ComparePolicy{.owner = (bits & 1) != 0, .mtime = (bits & 2) != 0, .xattrs = (bits & 4) != 0,
                       .hardlinks = (bits & 8) != 0, .source_mtimes = (bits & 16) != 0};
}

Digest Tree::root(const ComparePolicy& p) const {
  return digest_entries(entries(), kSeedOfRoot, p.bits(), {p.owner, p.mtime, p.xattrs, p.hardlinks, p.source_mtimes});
}

Digest Tree::full() const {
  if (!data_) return Digest{};
  std::call_once(data_->is_full_known, [this] { data_->full = digest_entries(entries(), kSeedOfFull, 0xff, {true, true, true, true, true}); });
  return data_->full;
}

}  // namespace envsync::tree
