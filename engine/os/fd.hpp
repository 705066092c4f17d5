// SPDX-License-Identifier: MIT
// An owned file descriptor and an owned child process.
#pragma once

#include <utility>

#include <unistd.h>

namespace envsync::os {

class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) { reset(); fd_ = std::exchange(other.fd_, -1); }
    return *this;
  }
  ~Fd() { reset(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  /// For descriptors that were only read: an error of close() after a write must be asked for with fsync.
  void reset() noexcept { if (fd_ >= 0) ::close(std::exchange(fd_, -1)); }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace envsync::os
