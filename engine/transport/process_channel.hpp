// SPDX-License-Identifier: MIT
// Private to transport: a program whose stdin and stdout are a channel and whose stderr is kept.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <envsync/result.hpp>

#include "channel/channel.hpp"
#include "os/process.hpp"

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

/// The destructor closes the stream and gives the child a second to end; a child that runs on is left alone, for an agent may be
/// in the middle of a commit, which it finishes without us, and an ssh may be the master of other connections. A thread drains
/// stderr.
class ProcessChannel final : public channel::Channel {
 public:
  enum class Wiring : u8 { pipes, socket };
  /// `own_group`: the terminal's signals do not reach it, and it cannot ask on the terminal.
  static Result<std::unique_ptr<ProcessChannel>> start(const std::vector<std::string>& argv, Wiring, bool own_group);
  ~ProcessChannel() override;

  Result<std::size_t> read(std::span<std::byte> out, Deadline deadline) override { return stream_->read(out, deadline); }
  Result<void> write(ByteView bytes, Deadline deadline) override { return stream_->write(bytes, deadline); }
  void close_write() override { stream_->close_write(); }
  void abort() noexcept override { stream_->abort(); }

  /// The program's exit status; it is killed where it does not end within `patience`, which gives nullopt. stderr_text() is
  /// complete after it.
  std::optional<int> finish(Seconds patience);
  std::shared_ptr<const BoundedText> stderr_log() const { return stderr_log_; }
  std::string stderr_text() const { return stderr_log_->text(); }

 private:
  ProcessChannel() : stderr_log_(std::make_shared<BoundedText>()) {}
  void drain();
  void stop_draining();

  os::Child child_;
  std::unique_ptr<channel::Channel> stream_;
  std::unique_ptr<channel::Channel> errors_;
  std::shared_ptr<BoundedText> stderr_log_;
  std::future<void> drained_;
  std::thread drainer_;
};

struct Captured { int status = 0; std::string out, err; };
/// Runs a program to its end with an empty stdin; out and err are cut at `limit` bytes each. An error where it does not start
/// or does not end by the deadline.
Result<Captured> capture(const std::vector<std::string>& argv, Seconds patience, std::size_t limit);

}  // namespace envsync::transport
