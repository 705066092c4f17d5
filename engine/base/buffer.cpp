// SPDX-License-Identifier: MIT
#include "base/buffer.hpp"

#include <array>
#include <mutex>
#include <new>

namespace envsync {

namespace {

constexpr std::size_t kLarge = 1u << 20;       // from here on blocks are kept when they are given back
constexpr std::size_t kStep = 3u << 20;        // of sizes: packs of about one size fit into each other's blocks
constexpr std::size_t kKeptMax = 2;            // LIMIT: blocks, some 20 MB at most

std::size_t whole_size(std::size_t size) { return (size + kStep - 1) / kStep * kStep; }

struct Block {
  std::byte* data = nullptr;
  std::size_t size = 0;
};

struct Kept {
  std::mutex mutex;  // all below
  std::array<Block, kKeptMax> blocks;
  std::size_t count = 0, next = 0;
};

/// Never destroyed: a thread that outlives main may give a block back.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

std::byte* Buffer::take(std::size_t size) {
  if (size == 0) return nullptr;
  if (size < kLarge) return static_cast<std::byte*>(::operator new(size));
  const std::size_t whole = whole_size(size);
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    for (std::size_t i = 0; i < all.count; ++i) {
      if (all.blocks[i].size != whole) continue;
      std::byte* data = all.blocks[i].data;
      all.blocks[i] = all.blocks[--all.count];
      return data;
    }
  }
  return static_cast<std::byte*>(::operator new(whole));
}

void Buffer::give(std::byte* data, std::size_t size) noexcept {
  if (data == nullptr) return;
  if (size < kLarge) return ::operator delete(data);
  Block out{data, whole_size(size)};
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    if (all.count < kKeptMax) {
      all.blocks[all.count++] = out;
      return;
    }
    std::swap(out, all.blocks[all.next++ % kKeptMax]);  // what is given back last is used next, so the others make room in turn
  }
  ::operator delete(out.data);
}

}  // namespace envsync
