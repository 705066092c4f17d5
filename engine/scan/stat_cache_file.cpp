// SPDX-License-Identifier: MIT
// The stat cache as a file. Numbers are LEB128 varints, `text` is a varint length and the bytes, `z` a signed number in zigzag.
//
//   file    := sealed file "ESTC", version 1 (format/messages.hpp), of ( count entry* )
//   entry   := flags:u8 dev:z ino:z size mtime:z since:z digest:16? xattrs?      -- ascending by dev, ino, mtime, ctime
//   flags   := 1 digest follows (else it is zero: a folder) | 2 attributes are known | 4 attributes follow
//   dev, ino, mtime: difference to the entry before; since: ctime - mtime
//   xattrs  := n ( name:text value:text )*n
#include <algorithm>
#include <tuple>

#include "format/messages.hpp"
#include "scan/stat_cache.hpp"
#include "scan/stat_cache_state.hpp"

namespace envsync::scan {

namespace {

constexpr std::string_view kMagic = "ESTC";
constexpr u32 kVersion = 1;
constexpr std::size_t kFileBytesMax = 512u << 20;  // LIMIT: some 10 million entries
constexpr std::size_t kEntryCostMin = 6;
constexpr u8 kHasDigest = 1, kKnowsXattrs = 2, kHasXattrs = 4;

void put_difference(Bytes& out, u64 value, u64 before) {
  const u64 difference = value - before;
  put_varint(out, (difference << 1) ^ (difference >> 63 ? ~u64{0} : 0));
}

bool take_difference(ByteView& in, u64 before, u64& value) {
  const auto coded = take_varint(in);
  if (!coded) return false;
  value = before + ((*coded >> 1) ^ (*coded & 1 ? ~u64{0} : 0));
  return true;
}

bool take_times(ByteView& in, i64& mtime_before, StatKey& key) {
  u64 mtime = 0, ctime = 0;
  if (!take_difference(in, static_cast<u64>(mtime_before), mtime) || !take_difference(in, mtime, ctime)) return false;
  key.mtime_ns = mtime_before = static_cast<i64>(mtime);
  key.ctime_ns = static_cast<i64>(ctime);
  return true;
}

bool take_xattrs(ByteView& in, tree::Xattrs& xattrs) {
  const auto count = take_varint(in);
  if (!count || *count > in.size() / 2) return false;
  for (u64 i = 0; i < *count; ++i) {
    const auto name = take_string(in);
    const auto value = take_string(in);
    if (!name || !value) return false;
    xattrs.emplace_back(*name, *value);
  }
  return true;
}

/// The entry at the front; `before` is the key of the one before it and becomes this one's.
bool take_entry(ByteView& in, StatKey& before, Cached& cached) {
  const auto flags = take_le<u8>(in);
  if (!flags || *flags > 7) return false;
  if (!take_difference(in, before.dev, before.dev) || !take_difference(in, before.ino, before.ino)) return false;
  const auto size = take_varint(in);
  if (!size || !take_times(in, before.mtime_ns, before)) return false;
  before.size = *size;
  if (*flags & kHasDigest) {
    if (in.size() < cached.digest.bytes.size()) return false;
    std::ranges::copy(in.first(cached.digest.bytes.size()), cached.digest.bytes.begin());
    in = in.subspan(cached.digest.bytes.size());
  }
  cached.has_xattrs = (*flags & kKnowsXattrs) != 0;
  return (*flags & kHasXattrs) == 0 || take_xattrs(in, cached.xattrs);
}

}  // namespace

Bytes StatCache::encode() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<const State::Slot*> used;
  used.reserve(state_->loaded.slots.size() + state_->added.slots.size());
  for (const State::Table* table : {&state_->loaded, &state_->added})
    for (const State::Slot& slot : table->slots)
      if (slot.is_used && !slot.is_passed_over) used.push_back(&slot);
  const auto order = [](const State::Slot* s) { return std::tie(s->key.dev, s->key.ino, s->key.mtime_ns, s->key.ctime_ns, s->key.size); };
  std::ranges::sort(used, {}, order);
  Bytes out;
  out.reserve(16 + used.size() * 48);
  put_varint(out, used.size());
  StatKey before;
  for (const State::Slot* slot : used) {
    const StatKey& key = slot->key;
    const bool has_digest = !slot->digest.is_zero();
    out.push_back(static_cast<std::byte>((has_digest ? kHasDigest : 0) | (slot->has_xattrs ? kKnowsXattrs : 0) | (slot->xattrs ? kHasXattrs : 0)));
    put_difference(out, key.dev, before.dev);
    put_difference(out, key.ino, before.ino);
    put_varint(out, key.size);
    put_difference(out, static_cast<u64>(key.mtime_ns), static_cast<u64>(before.mtime_ns));
    put_difference(out, static_cast<u64>(key.ctime_ns), static_cast<u64>(key.mtime_ns));
    if (has_digest) out.insert(out.end(), slot->digest.bytes.begin(), slot->digest.bytes.end());
    if (slot->xattrs) {
      put_varint(out, slot->xattrs->size());
      for (const auto& [name, value] : *slot->xattrs) {
        put_string(out, name);
        put_string(out, value);
      }
    }
    before = key;
  }
  return format::seal_file(kMagic, kVersion, out);
}

StatCache StatCache::decode(ByteView bytes) {
  StatCache cache;
  const auto payload = format::open_file(kMagic, kVersion, bytes);
  if (!payload) return cache;
  ByteView in = *payload;
  const auto count = take_varint(in);
  if (!count || *count > State::kEntriesMax || *count > in.size() / kEntryCostMin) return cache;
  State::Table& table = cache.state_->loaded;
  table.slots.reserve(static_cast<std::size_t>(*count));
  table.reserve(static_cast<std::size_t>(*count));
  StatKey key;
  for (u64 i = 0; i < *count; ++i) {
    Cached cached;
    // Never believed in part: where one entry does not decode, none is used.
    if (!take_entry(in, key, cached)) return StatCache();
    table.insert(key, cached, false);
  }
  if (!in.empty()) return StatCache();
  return cache;
}

StatCache StatCache::load(int at, const std::string& rel) {
  const auto file = os::read_small(at, rel, kFileBytesMax);
  return file ? decode(as_bytes(*file)) : StatCache();
}

Result<void> StatCache::save(os::Files& files, int at, const std::string& rel) const {
  return os::replace_cache_file(files, at, rel, encode());
}

}  // namespace envsync::scan
