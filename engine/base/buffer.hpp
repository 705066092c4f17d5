// SPDX-License-Identifier: MIT
// Bytes in bulk: made without being zeroed, moved and never copied.
#pragma once

#include <memory>

#include "base/bytes.hpp"

namespace envsync {

/// A block of bytes whose content is undefined until it is written. Converts to ByteView.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(size > 0 ? std::make_unique_for_overwrite<std::byte[]>(size) : nullptr), size_(size) {}
  Buffer(Buffer&& from) noexcept : data_(std::move(from.data_)), size_(std::exchange(from.size_, 0)) {}
  Buffer& operator=(Buffer&& from) noexcept {
    data_ = std::move(from.data_);
    size_ = std::exchange(from.size_, 0);
    return *this;
  }
  static Buffer copy_of(ByteView bytes) {
    Buffer out(bytes.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }
  std::byte operator[](std::size_t i) const { return data_[i]; }
  std::byte& operator[](std::size_t i) { return data_[i]; }

  /// Forgets what is behind `size`, which is at most what it was. The memory stays.
  void shorten(std::size_t size) {
    ENVSYNC_CHECK(size <= size_);
    size_ = size;
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

}  // namespace envsync
