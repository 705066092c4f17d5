// SPDX-License-Identifier: MIT
#include "transport/carrier.hpp"

#include <algorithm>
#include <array>

namespace envsync::transport {
namespace {

constexpr Seconds kLastWords{0.3};

}  // namespace

void BoundedText::append(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const std::size_t to_head = std::min(text.size(), kHeadBytes - head_.size());
  head_ += text.substr(0, to_head);
  tail_ += text.substr(to_head);
  if (tail_.size() <= kTailBytes) return;
  tail_.erase(0, tail_.size() - kTailBytes);
  is_cut_ = true;
}

std::string BoundedText::text() const {
  const std::lock_guard lock(mutex_);
  return is_cut_ ? head_ + "\n[...]\n" + tail_ : head_ + tail_;
}

Drain::Drain(os::Fd fd) : stream_(channel::make_fd_channel(std::move(fd), os::Fd())) {
  std::promise<void> done;
  done_ = done.get_future();
  thread_ = std::thread([this, done = std::move(done)]() mutable {
    std::array<std::byte, 4096> buffer;
    for (;;) {
      const auto got = stream_->read(buffer, kNoDeadline);
      if (!got || *got == 0) break;
      log_->append(as_text(std::span(buffer).first(*got)));
    }
    done.set_value();
  });
}

void Drain::stop() {
  if (!thread_.joinable()) return;
  // A process that a child left behind, as a persisting master of ssh, may hold the pipe open for ever.
  done_.wait_for(kLastWords);
  stream_->abort();
  thread_.join();
}

}  // namespace envsync::transport
