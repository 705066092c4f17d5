// SPDX-License-Identifier: MIT
#include "transport/process_channel.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <fcntl.h>

#include <fmt/format.h>

namespace envsync::transport {
namespace {

constexpr Seconds kGoodbye{1};

struct Wires { os::Fd child_in, child_out; std::unique_ptr<channel::Channel> near; };

Result<Wires> make_wires(ProcessChannel::Wiring wiring) {
  Wires wires;
  if (wiring == ProcessChannel::Wiring::socket) {
    TRY(auto ends, os::make_socket_pair());
    wires.near = channel::make_fd_channel(std::move(ends.first), os::Fd());
    wires.child_in = std::move(ends.second);
    return wires;
  }
  TRY(auto in, os::make_pipe());
  TRY(auto out, os::make_pipe());
  wires.child_in = std::move(in.read);
  wires.child_out = std::move(out.write);
  wires.near = channel::make_fd_channel(std::move(out.read), std::move(in.write));
  return wires;
}

}  // namespace

Result<std::unique_ptr<ProcessChannel>> ProcessChannel::start(const std::vector<std::string>& argv, Wiring wiring, bool own_group) {
  TRY(Wires wires, make_wires(wiring));
  TRY(auto errors, os::make_pipe());
  const int out = wires.child_out ? wires.child_out.get() : wires.child_in.get();
  std::unique_ptr<ProcessChannel> started(new ProcessChannel);
  TRY(started->child_, os::spawn(argv, {.in = wires.child_in.get(), .out = out, .err = errors.write.get()}, own_group));
  started->stream_ = std::move(wires.near);
  started->stderr_ = std::make_unique<Drain>(std::move(errors.read));
  return started;
}

ProcessChannel::~ProcessChannel() {
  stream_.reset();
  if (!child_.wait(deadline_in(kGoodbye))) child_.release();
}

std::optional<int> ProcessChannel::finish(Seconds patience) {
  const auto status = child_.wait(deadline_in(patience));
  if (!status) {
    child_.kill_now();
    child_.wait(kNoDeadline);
  }
  stderr_->stop();
  return status;
}

Result<Captured> capture(const std::vector<std::string>& argv, Seconds patience, std::size_t limit) {
  const Deadline deadline = deadline_in(patience);
  const os::Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  TRY(auto out, os::make_pipe());
  TRY(auto err, os::make_pipe());
  TRY(os::Child child, os::spawn(argv, {.in = nothing.get(), .out = out.write.get(), .err = err.write.get()}, true));
  out.write.reset();
  err.write.reset();
  const auto read_all = [&](os::Fd fd, std::string& text) {
    const auto stream = channel::make_fd_channel(std::move(fd), os::Fd());
    std::array<std::byte, 4096> buffer;
    for (;;) {
      const auto got = stream->read(buffer, deadline);
      if (!got || *got == 0) return;
      text += as_text(std::span(buffer).first(std::min(*got, limit - std::min(limit, text.size()))));
    }
  };
  Captured captured;
  std::thread errors([&] { read_all(std::move(err.read), captured.err); });
  read_all(std::move(out.read), captured.out);
  errors.join();
  const auto status = child.wait(deadline);
  if (!status) return Error(ErrorCode::failed, fmt::format("'{}' did not end within {:.0f} s", argv[0], patience.count()));
  captured.status = *status;
  return captured;
}

}  // namespace envsync::transport
