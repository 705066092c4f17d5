// SPDX-License-Identifier: MIT
// Bytes in bulk: made without being zeroed, moved and never copied. The memory of large ones is used again by the next: fresh pages
// cost as much as moving the bytes that come into them.
#pragma once

#include <algorithm>

#include "base/bytes.hpp"

namespace envsync {

/// A block of bytes whose content is undefined until it is written. Converts to ByteView.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(take(size)), size_(size), taken_(size) {}
  Buffer(Buffer&& from) noexcept
      : data_(std::exchange(from.data_, nullptr)), size_(std::exchange(from.size_, 0)), taken_(std::exchange(from.taken_, 0)) {}
  Buffer& operator=(Buffer&& from) noexcept {
    std::swap(data_, from.data_);
    std::swap(size_, from.size_);
    std::swap(taken_, from.taken_);
    return *this;
  }
  ~Buffer() { give(data_, taken_); }
  static Buffer copy_of(ByteView bytes) {
    Buffer out(bytes.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() { return data_; }
  std::byte* end() { return data_ + size_; }
  const std::byte* begin() const { return data_; }
  const std::byte* end() const { return data_ + size_; }
  std::byte operator[](std::size_t i) const { return data_[i]; }
  std::byte& operator[](std::size_t i) { return data_[i]; }

  /// Forgets what is behind `size`, which is at most what it was. The memory stays.
  void shorten(std::size_t size) {
    ENVSYNC_CHECK(size <= size_);
    size_ = size;
  }

 private:
  static std::byte* take(std::size_t size);
  static void give(std::byte* data, std::size_t size) noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0, taken_ = 0;
};

}  // namespace envsync
