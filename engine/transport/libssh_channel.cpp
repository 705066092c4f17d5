// SPDX-License-Identifier: MIT
#include "transport/libssh_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <fmt/format.h>
#include <libssh/callbacks.h>

namespace envsync::transport {
namespace {

constexpr std::size_t kWindowMax = 8u << 20, kWindowsInAll = 128u << 20;
constexpr std::size_t kPieceMax = 1u << 20;  // encrypted in one go, while nothing else is read
constexpr Seconds kGoodbye{1};
std::atomic<std::size_t> channels_open = 0;

/// A fair part of what all channels of this process together may have on their way to us.
std::size_t fair_window() {
  const std::size_t open = ++channels_open;
  return std::min(kWindowMax, kWindowsInAll / open);
}

/// Signals are for other threads; none interrupts a wait of this one.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

Error lost(std::string why) {
  Error error(ErrorCode::connection_lost, "the connection broke");
  error.causes.push_back(std::move(why));
  return error;
}

}  // namespace

struct LibsshChannel::Callbacks {
  struct ssh_channel_callbacks_struct table = {};
};

LibsshChannel::LibsshChannel(std::unique_ptr<LibsshLink> link) : link_(std::move(link)), window_(fair_window()), scratch_(new std::byte[window_]) {}

Result<std::unique_ptr<LibsshChannel>> LibsshChannel::start(std::unique_ptr<LibsshLink> link, const Host& host, const std::string& command, const std::stop_token& stop) {
  std::unique_ptr<LibsshChannel> started(new LibsshChannel(std::move(link)));
  {
    const std::stop_callback on_stop(stop, [&] { started->link_->wake(); });
    TRY_STATUS(started->open(host, command));
  }
  const char* const cipher = ssh_get_cipher_out(started->link_->session());
  started->cipher_ = cipher ? cipher : "";
  started->thread_ = std::thread([self = started.get()] { self->serve(); });
  return started;
}

Result<void> LibsshChannel::open(const Host& host, const std::string& command) {
  const auto failed = [&](std::string_view what, Result<int> status) {
    if (!status && status.error().code == ErrorCode::interrupted) return std::move(status).error();
    Error error(ErrorCode::connect_failed, fmt::format("cannot start the agent on '{}': {}", host.name, what));
    error.causes.push_back(status ? printable(ssh_get_error(link_->session())) : status.error().what);
    return error;
  };
  channel_ = ssh_channel_new(link_->session());
  ENVSYNC_CHECK(channel_);
  callbacks_ = std::make_unique<Callbacks>();
  auto& table = callbacks_->table;
  ssh_callbacks_init(&table);
  table.userdata = this;
  table.channel_data_function = [](ssh_session, ssh_channel, void* data, u32 size, int is_stderr, void* self) -> int {
    auto& me = *static_cast<LibsshChannel*>(self);
    const std::string_view bytes(static_cast<const char*>(data), size);
    if (!is_stderr) return static_cast<int>(me.receive(bytes));
    me.link_->words()->append(bytes);
    return static_cast<int>(size);
  };
  table.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
    auto& me = *static_cast<LibsshChannel*>(self);
    const std::lock_guard lock(me.mutex_);
    me.is_ended_ = true;
    me.changed_.notify_all();
  };
  table.channel_close_function = [](ssh_session, ssh_channel, void* self) {
    auto& me = *static_cast<LibsshChannel*>(self);
    const std::lock_guard lock(me.mutex_);
    me.is_ended_ = me.is_closed_ = true;
    me.changed_.notify_all();
  };
  table.channel_exit_status_function = [](ssh_session, ssh_channel, int status, void* self) {
    auto& me = *static_cast<LibsshChannel*>(self);
    const std::lock_guard lock(me.mutex_);
    me.status_ = status;
  };
  table.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* name, int, const char*, const char*, void* self) {
    auto& me = *static_cast<LibsshChannel*>(self);
    me.link_->words()->append(fmt::format("the command was ended by signal {}\n", printable(name ? name : "?")));
    const std::lock_guard lock(me.mutex_);
    me.status_ = 128;
  };
  if (ssh_set_channel_callbacks(channel_, &table) != SSH_OK) return failed("libssh takes no callbacks", SSH_ERROR);
  if (auto status = link_->drive([this] { return ssh_channel_open_session(channel_); }); !status || *status != SSH_OK)
    return failed("the server opens no session", std::move(status));
  if (auto status = link_->drive([&] { return ssh_channel_request_exec(channel_, command.c_str()); }); !status || *status != SSH_OK)
    return failed("the server runs no command", std::move(status));
  return ok();
}

LibsshChannel::~LibsshChannel() {
  if (thread_.joinable()) {
    {
      std::unique_lock lock(mutex_);
      wants_end_ = true;
      if (!is_dead_) {
        link_->wake();
        // What it still says is nobody's any more, but it must not be held up by it.
        changed_.wait_until(lock, deadline_in(kGoodbye), [this] {
          arrived_.clear();
          if (is_refusing_) link_->wake();
          return is_closed_ || !lost_.empty();
        });
      }
    }
    stop();
  }
  if (channel_) ssh_channel_free(channel_);
  --channels_open;
}

void LibsshChannel::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    must_stop_ = true;
  }
  link_->wake();
  thread_.join();
}

std::optional<int> LibsshChannel::finish(Seconds patience) {
  std::optional<int> status;
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline_in(patience), [this] { return is_closed_ || !lost_.empty(); }) && is_closed_) status = status_.value_or(128);
  }
  stop();
  return status;
}

// --- the session's thread

void LibsshChannel::serve() {
  block_signals();
  const ssh_session session = link_->session();
  const int fd = ssh_get_fd(session);
  // libssh sets it back after connecting; it writes only what the kernel said it would take, and copes with less.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const ssh_event event = ssh_event_new();
  ENVSYNC_CHECK(event);
  const auto on_wake = [](socket_t wake, int, void*) -> int {
    u64 count = 0;
    static_cast<void>(!::read(wake, &count, sizeof count));
    return 0;
  };
  if (ssh_event_add_session(event, session) != SSH_OK || ssh_event_add_fd(event, link_->wake_fd(), POLLIN, on_wake, nullptr) != SSH_OK) note_end("libssh cannot wait");
  received_ = window_;  // asked for at once
  for (;;) {
    take_refused();
    top_up_window();
    send();
    {
      const std::lock_guard lock(mutex_);
      if (must_stop_ || !lost_.empty() || (is_closed_ && !is_refusing_)) break;
    }
    if (ssh_event_dopoll(event, -1) == SSH_ERROR) note_end(printable(ssh_get_error(session)));
    else if (!ssh_is_connected(session)) note_end("the server closed the connection");
  }
  ssh_event_remove_fd(event, link_->wake_fd());
  ssh_event_remove_session(event, session);
  ssh_event_free(event);
}

void LibsshChannel::note_end(std::string why) {
  const std::lock_guard lock(mutex_);
  is_ended_ = true;
  // Where the command had ended before, all is well.
  if (!is_closed_ && lost_.empty()) lost_ = why.empty() ? "the connection is gone" : std::move(why);
  changed_.notify_all();
}

/// From inside libssh: it keeps what is not taken.
std::size_t LibsshChannel::receive(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t room = is_topping_up_ ? bytes.size() : window_ - std::min(window_, arrived_.size());
  const std::size_t taken = std::min(bytes.size(), room);
  const auto part = as_bytes(bytes.substr(0, taken));
  arrived_.insert(arrived_.end(), part.begin(), part.end());
  received_ += taken;
  is_refusing_ = taken < bytes.size();
  if (taken > 0) changed_.notify_all();
  return taken;
}

void LibsshChannel::take_refused() {
  std::size_t room = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!is_refusing_) return;
    room = window_ - std::min(window_, arrived_.size());
    // Wait until it is worth while.
    if (room < window_ / 2) return;
  }
  const int got = ssh_channel_read_nonblocking(channel_, scratch_.get(), static_cast<u32>(room), 0);
  const std::lock_guard lock(mutex_);
  if (got > 0) {
    arrived_.insert(arrived_.end(), scratch_.get(), scratch_.get() + got);
    received_ += static_cast<std::size_t>(got);
  }
  is_refusing_ = got == static_cast<int>(room);
  changed_.notify_all();
}

/// Before 0.11 libssh's own window is 64,000 bytes, then 1.28 MB, which a long way leaves half empty: the count that a read asks for
/// sets it. From 0.11 on it is 2 MiB and this asks for nothing more.
void LibsshChannel::top_up_window() {
  if (received_ < window_ / 2) return;
  {
    const std::lock_guard lock(mutex_);
    if (is_refusing_ || is_ended_ || arrived_.size() > window_ / 2) return;
  }
  received_ = 0;
  is_topping_up_ = true;
  const int got = ssh_channel_read_timeout(channel_, scratch_.get(), static_cast<u32>(window_), 0, 0);
  is_topping_up_ = false;
  if (got > 0) receive({reinterpret_cast<const char*>(scratch_.get()), static_cast<std::size_t>(got)});
}

void LibsshChannel::send() {
  for (;;) {
    ByteView piece;
    bool must_end = false;
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_ || !lost_.empty()) return;
      must_end = outgoing_.empty() && std::exchange(wants_end_, wants_end_ && !outgoing_.empty());
      piece = outgoing_.first(std::min<std::size_t>({outgoing_.size(), ssh_channel_window_size(channel_), kPieceMax}));
      is_sending_ = !piece.empty();
    }
    // Not under the mutex: libssh calls back from inside.
    if (must_end) ssh_channel_send_eof(channel_);
    if (piece.empty()) return;
    const int sent = ssh_channel_write(channel_, piece.data(), static_cast<u32>(piece.size()));
    if (sent < 0 && !ssh_channel_is_closed(channel_)) note_end(printable(ssh_get_error(link_->session())));
    const std::lock_guard lock(mutex_);
    is_sending_ = false;
    if (sent > 0) outgoing_ = outgoing_.subspan(std::min(outgoing_.size(), static_cast<std::size_t>(sent)));
    changed_.notify_all();
    if (sent < 0 || static_cast<std::size_t>(sent) < piece.size()) return;
  }
}

// --- the reader, the writer, anybody

Error LibsshChannel::lost_or_closed() {
  if (is_dead_) return Error(ErrorCode::connection_lost, "the connection was closed on this side");
  return lost(lost_);
}

Result<std::size_t> LibsshChannel::read(std::span<std::byte> out, Deadline deadline) {
  ENVSYNC_CHECK(!out.empty());
  if (at_ == current_.size()) {
    std::unique_lock lock(mutex_);
    const auto is_ready = [this] { return is_dead_ || !arrived_.empty() || (is_ended_ && !is_refusing_) || must_stop_; };
    if (deadline == kNoDeadline) changed_.wait(lock, is_ready);
    else if (!changed_.wait_until(lock, deadline, is_ready)) {
      lock.unlock();
      abort();
      return Error(ErrorCode::connection_lost, "nothing came in the time allowed");
    }
    if (is_dead_) return lost_or_closed();
    current_.clear();
    at_ = 0;
    std::swap(current_, arrived_);
    if (is_refusing_) link_->wake();
    if (current_.empty()) {
      if (!lost_.empty()) return lost_or_closed();
      return std::size_t{0};
    }
  }
  if (is_dead_) return lost_or_closed();
  const std::size_t taken = std::min(out.size(), current_.size() - at_);
  std::ranges::copy(std::span(current_).subspan(at_, taken), out.begin());
  at_ += taken;
  return taken;
}

Result<void> LibsshChannel::write(ByteView bytes, Deadline deadline) {
  if (is_write_closed_) return Error(ErrorCode::connection_lost, "the connection was closed on this side");
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return is_dead_ || is_closed_ || !lost_.empty() || must_stop_; };
  if (!is_over()) {
    outgoing_ = bytes;
    link_->wake();
    const auto is_done = [&] { return outgoing_.empty() || is_over(); };
    bool in_time = true;
    if (deadline == kNoDeadline) changed_.wait(lock, is_done);
    else in_time = changed_.wait_until(lock, deadline, is_done);
    // The bytes are the caller's: libssh must have let go of them.
    changed_.wait(lock, [this] { return !is_sending_; });
    const bool is_sent = outgoing_.empty();
    outgoing_ = {};
    if (is_sent && !is_dead_) return ok();
    if (!in_time && !is_over()) {
      lock.unlock();
      abort();
      return Error(ErrorCode::connection_lost, "the other side took nothing in the time allowed");
    }
  }
  if (is_dead_ || !lost_.empty()) return lost_or_closed();
  return Error(ErrorCode::connection_lost, "cannot write to the connection").cause("the command on the other side has ended");
}

void LibsshChannel::close_write() {
  is_write_closed_ = true;
  {
    const std::lock_guard lock(mutex_);
    wants_end_ = true;
  }
  link_->wake();
}

void LibsshChannel::abort() noexcept {
  is_dead_ = true;
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  link_->wake();
}

}  // namespace envsync::transport
