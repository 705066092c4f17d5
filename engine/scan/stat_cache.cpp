// SPDX-License-Identifier: MIT
#include "scan/stat_cache.hpp"

#include <algorithm>

#include "scan/stat_cache_state.hpp"

namespace envsync::scan {

namespace {

constexpr i64 kSettledNs = 20'000'000, kSettledNetworkNs = 3'000'000'000;

/// splitmix64: inode numbers are close together, and so are times.
u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::size_t hash_of(const StatKey& key) { return static_cast<std::size_t>(mix(key.ino ^ mix(key.dev ^ static_cast<u64>(key.ctime_ns)))); }

}  // namespace

StatKey key_of(const os::Stat& stat) {
  return {.dev = stat.dev, .ino = stat.ino, .size = stat.size, .mtime_ns = stat.mtime_ns, .ctime_ns = stat.ctime_ns};
}

StatCache::State::Slot* StatCache::State::Table::find(const StatKey& key) {
  if (index.empty()) return nullptr;
  for (std::size_t at = hash_of(key) & (index.size() - 1);; at = (at + 1) & (index.size() - 1)) {
    if (index[at] == 0) return nullptr;
    Slot& slot = slots[index[at] - 1];
    if (slot.key == key) return &slot;
  }
}

void StatCache::State::Table::reserve(std::size_t count) {
  std::size_t size = 1024;
  while (size < count * 2) size *= 2;
  if (size <= index.size()) return;
  index.assign(size, 0);
  for (std::size_t i = 0; i < slots.size(); ++i) place(i);
}

void StatCache::State::Table::place(std::size_t slot) {
  std::size_t at = hash_of(slots[slot].key) & (index.size() - 1);
  while (index[at] != 0) at = (at + 1) & (index.size() - 1);
  index[at] = narrow<u32>(slot + 1);
}

void StatCache::State::Table::insert(const StatKey& key, const Cached& cached, bool is_used) {
  if (slots.size() >= kEntriesMax) return;
  reserve(slots.size() + 1);
  Slot& slot = slots.emplace_back();
  slot.key = key;
  slot.assign(cached);
  slot.is_used = is_used;
  place(slots.size() - 1);
}

StatCache::State::Slot* StatCache::State::find_loaded(const StatKey& key) {
  Slot* slot = loaded.find(key);
  return slot != nullptr && !std::atomic_ref(slot->is_passed_over).load(std::memory_order_relaxed) ? slot : nullptr;
}

StatCache::State::Slot* StatCache::State::find(const StatKey& key) {
  Slot* slot = find_loaded(key);
  return slot != nullptr ? slot : added.find(key);
}

void StatCache::State::replace(const StatKey& key, const Cached& cached) {
  if (Slot* old = find_loaded(key)) std::atomic_ref(old->is_passed_over).store(true, std::memory_order_relaxed);
  if (Slot* slot = added.find(key)) {
    slot->assign(cached);
    slot->is_used = true;
  } else {
    added.insert(key, cached, true);
  }
}

StatCache::StatCache() : state_(std::make_shared<State>()) {}
StatCache::StatCache(StatCache&& other) noexcept = default;
StatCache& StatCache::operator=(StatCache&& other) noexcept = default;

std::optional<Cached> StatCache::find(const StatKey& key) const {
  if (State::Slot* slot = state_->find_loaded(key)) {
    std::atomic_ref(slot->is_used).store(true, std::memory_order_relaxed);
    return slot->cached();
  }
  const std::lock_guard lock(state_->mutex);
  State::Slot* slot = state_->added.find(key);
  if (slot == nullptr) return std::nullopt;
  slot->is_used = true;
  return slot->cached();
}

void StatCache::put(const StatKey& key, const Cached& cached, i64 clock_ns, bool network) {
  // RACE: a file may be written again within one tick of the clock that stamps it, which no stat shows. So only what had
  // settled before the stat is believed; what is younger is read again next time.
  const i64 settled = clock_ns - (network ? kSettledNetworkNs : kSettledNs);
  if (key.mtime_ns >= settled || key.ctime_ns >= settled) return;
  const std::lock_guard lock(state_->mutex);
  if (State::Slot* slot = state_->find(key)) {
    std::atomic_ref(slot->is_used).store(true, std::memory_order_relaxed);
    if (slot->equals(cached)) return;
  }
  state_->replace(key, cached);
  state_->is_changed = true;
}

void StatCache::moved(const StatKey& from, const StatKey& to) {
  // Links and unlinks move the ctime and nothing else; where more differs it is another content.
  StatKey expected = from;
  expected.ctime_ns = to.ctime_ns;
  if (from == to || expected != to) return;
  const std::lock_guard lock(state_->mutex);
  State::Slot* slot = state_->find(from);
  if (slot == nullptr) return;
  std::atomic_ref(slot->is_used).store(false, std::memory_order_relaxed);
  state_->replace(to, slot->cached());
  state_->is_changed = true;
}

std::size_t StatCache::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->loaded.slots.size() + state_->added.slots.size();
}

bool StatCache::changed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_changed;
}

}  // namespace envsync::scan
