// SPDX-License-Identifier: MIT
// Private to transport: a program whose stdin and stdout are a channel and whose stderr is kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "os/process.hpp"
#include "transport/carrier.hpp"

namespace envsync::transport {

/// The destructor closes the stream and gives the child a second to end; a child that runs on is left alone, for an agent may be
/// in the middle of a commit, which it finishes without us, and an ssh may be the master of other connections. A thread drains
/// stderr.
class ProcessChannel final : public Carrier {
 public:
  enum class Wiring : u8 { pipes, socket };
  /// `own_group`: the terminal's signals do not reach it, and it cannot ask on the terminal.
  static Result<std::unique_ptr<ProcessChannel>> start(const std::vector<std::string>& argv, Wiring, bool own_group);
  ~ProcessChannel() override;

  Result<std::size_t> read(std::span<std::byte> out, Deadline deadline) override { return stream_->read(out, deadline); }
  Result<void> write(ByteView bytes, Deadline deadline) override { return stream_->write(bytes, deadline); }
  void close_write() override { stream_->close_write(); }
  void abort() noexcept override { stream_->abort(); }

  /// The program is killed where it does not end.
  std::optional<int> finish(Seconds patience) override;
  std::shared_ptr<const BoundedText> stderr_log() const override { return stderr_->log(); }

 private:
  ProcessChannel() = default;

  os::Child child_;
  std::unique_ptr<channel::Channel> stream_;
  std::unique_ptr<Drain> stderr_;
};

struct Captured { int status = 0; std::string out, err; };
/// Runs a program to its end with an empty stdin; out and err are cut at `limit` bytes each. An error where it does not start
/// or does not end by the deadline.
Result<Captured> capture(const std::vector<std::string>& argv, Seconds patience, std::size_t limit);

}  // namespace envsync::transport
