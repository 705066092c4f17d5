// SPDX-License-Identifier: MIT
// A two-way byte stream. One reader thread and one writer thread at most; dead after an error.
#pragma once

#include <memory>
#include <string>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "os/fd.hpp"

namespace envsync::channel {

class Channel {
 public:
  virtual ~Channel() = default;
  /// At least one byte, or 0 at the end of the stream. ErrorCode::connection_lost on error or past the deadline.
  virtual Result<std::size_t> read(std::span<std::byte> out, Deadline deadline) = 0;
  /// All of it. Where the other side is gone, what it sent before can still be read: it may say why.
  virtual Result<void> write(ByteView bytes, Deadline deadline) = 0;
  virtual void close_write() = 0;
  /// Wakes both threads; they return errors. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// Over descriptors that are made non-blocking: one each (a child's pipes), or a socket for both ways, given as `read` with
/// `write` empty or as two descriptors of one socket. Never raises SIGPIPE. close_write() belongs to the writer thread.
std::unique_ptr<Channel> make_fd_channel(os::Fd read, os::Fd write);

}  // namespace envsync::channel
