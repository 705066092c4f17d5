// SPDX-License-Identifier: MIT
// A channel over descriptors. Every wait is a poll that also listens to an eventfd, which abort() makes readable for good.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "channel/channel.hpp"

namespace envsync::channel {
namespace {

Error lost(std::string what) { return Error(ErrorCode::connection_lost, std::move(what)); }

Error lost(int saved_errno, std::string_view direction) {
  Error error = lost(fmt::format("cannot {} the connection", direction));
  const char* text = ::strerrordesc_np(saved_errno);
  error.causes.push_back(text ? text : fmt::format("error {}", saved_errno));
  error.sys_errno = saved_errno;
  return error;
}

bool is_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

void set_non_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/// write() to a pipe without SIGPIPE: the signal is blocked in this thread, and taken off again if the write raised it.
ssize_t write_quietly(int fd, ByteView bytes) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t done = ::write(fd, bytes.data(), bytes.size());
  const int saved = errno;
  if (done < 0 && saved == EPIPE && !was_pending) {
    const struct timespec now = {};
    while (::sigtimedwait(&pipe_signal, nullptr, &now) < 0 && errno == EINTR) {}
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
  return done;
}

/// More room between the two processes of a pipe or a socket pair: fewer times that one wakes the other, which is a good part of what
/// moving bytes costs. What the system does not give is not needed.
void widen(int fd) {
  constexpr int kRoom = 1 << 20;
  if (::fcntl(fd, F_SETPIPE_SZ, kRoom) >= 0) return;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kRoom, sizeof kRoom);
}

class FdChannel final : public Channel {
 public:
  FdChannel(os::Fd read, os::Fd write) : read_(std::move(read)), write_(std::move(write)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ENVSYNC_CHECK(wake_.get() >= 0);
    write_fd_ = write_ ? write_.get() : read_.get();
    writes_socket_ = is_socket(write_fd_);
    set_non_blocking(read_.get());
    set_non_blocking(write_fd_);
    widen(read_.get());
    if (write_) widen(write_.get());
  }

  Result<std::size_t> read(std::span<std::byte> out, Deadline deadline) override {
    ENVSYNC_CHECK(!out.empty());
    for (;;) {
      if (is_dead_) return lost("the connection was closed on this side");
      const ssize_t got = ::read(read_.get(), out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return die(lost(errno, "read from"));
      TRY_STATUS(await(read_.get(), POLLIN, deadline, "nothing came in the time allowed"));
    }
  }

  Result<void> write(ByteView bytes, Deadline deadline) override {
    while (!bytes.empty()) {
      if (is_peer_gone_) return lost(EPIPE, "write to");
      if (is_dead_ || write_fd_ < 0) return lost("the connection was closed on this side");
      const ssize_t done = writes_socket_ ? ::send(write_fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) : write_quietly(write_fd_, bytes);
      if (done >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(done));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno == EPIPE || errno == ECONNRESET) {
        is_peer_gone_ = true;
        return lost(EPIPE, "write to");
      }
      if (errno != EAGAIN) return die(lost(errno, "write to"));
      TRY_STATUS(await(write_fd_, POLLOUT, deadline, "the other side took nothing in the time allowed"));
    }
    return ok();
  }

  void close_write() override {
    if (write_fd_ < 0) return;
    if (writes_socket_) ::shutdown(write_fd_, SHUT_WR);
    write_.reset();
    write_fd_ = -1;
  }

  void abort() noexcept override {
    is_dead_ = true;
    const u64 one = 1;
    // It fails only where the counter is full, which wakes as well.
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }

 private:
  Error die(Error error) {
    abort();
    return error;
  }

  Result<void> await(int fd, short events, Deadline deadline, const char* timeout_text) {
    int timeout_ms = -1;
    if (deadline != kNoDeadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      if (left <= 0) return die(lost(timeout_text));
      timeout_ms = static_cast<int>(std::min<i64>(left, std::numeric_limits<int>::max()));
    }
    struct pollfd wait_for[2] = {{.fd = fd, .events = events, .revents = 0}, {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(wait_for, 2, timeout_ms) < 0 && errno != EINTR) return die(lost(errno, "wait for"));
    return ok();  // the caller tries again and sees what it was
  }

  os::Fd read_;
  os::Fd write_;  // empty where read_ is for both ways
  os::Fd wake_;   // readable once aborted
  int write_fd_ = -1;
  bool writes_socket_ = false;
  bool is_peer_gone_ = false;  // of the writer thread
  std::atomic<bool> is_dead_ = false;
};

}  // namespace

std::unique_ptr<Channel> make_fd_channel(os::Fd read, os::Fd write) {
  return std::make_unique<FdChannel>(std::move(read), std::move(write));
}

}  // namespace envsync::channel
