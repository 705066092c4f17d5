// SPDX-License-Identifier: MIT
// Private to transport: a channel to a host's shell, whatever carries it, with what the far side writes to stderr.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "channel/channel.hpp"

namespace envsync::transport {

/// The first and the last bytes of a text without end. Thread-safe.
class BoundedText {
 public:
  void append(std::string_view text);
  std::string text() const;

 private:
  static constexpr std::size_t kHeadBytes = 8u << 10, kTailBytes = 16u << 10;
  mutable std::mutex mutex_;  // guards both
  std::string head_, tail_;
  bool is_cut_ = false;
};

/// A thread that reads a descriptor to its end.
class Drain {
 public:
  explicit Drain(os::Fd fd);
  ~Drain() { stop(); }
  /// Takes the last words that are on their way, then ends the thread.
  void stop();
  std::shared_ptr<const BoundedText> log() const { return log_; }

 private:
  std::shared_ptr<BoundedText> log_ = std::make_shared<BoundedText>();
  std::unique_ptr<channel::Channel> stream_;
  std::future<void> done_;
  std::thread thread_;
};

class Carrier : public channel::Channel {
 public:
  /// The exit status of what was started, as the shell gives it; nullopt where it did not end within `patience`: it is cut off then.
  /// stderr_log() is complete after it.
  virtual std::optional<int> finish(Seconds patience) = 0;
  virtual std::shared_ptr<const BoundedText> stderr_log() const = 0;
  std::string stderr_text() const { return stderr_log()->text(); }
};

}  // namespace envsync::transport
