// SPDX-License-Identifier: MIT
// What every channel keeps, over a socket pair and over a child's pipes.
#include "channel/channel.hpp"

#include <sys/socket.h>

#include "os/process.hpp"
#include "support/channel_contract.hpp"

using namespace envsync;
using namespace envsync::testing;
using channel::make_fd_channel;

namespace {

class SocketPeer {
 public:
  explicit SocketPeer(Manner manner) {
    auto ends = os::make_socket_pair().value();
    near_ = make_fd_channel(std::move(ends.first), os::Fd());
    far_ = std::move(ends.second);
    if (manner == Manner::last_words) {
      REQUIRE(::send(far_.get(), kLastWords.data(), kLastWords.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kLastWords.size()));
      die();
    }
    if (manner == Manner::echo) thread_ = std::thread([fd = far_.get()] { echo(fd); });
  }
  ~SocketPeer() { die(); }
  Channel& channel() { return *near_; }
  void die() {
    if (!far_) return;
    ::shutdown(far_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    far_.reset();
  }

 private:
  static void echo(int fd) {
    std::vector<std::byte> buffer(65536);
    for (;;) {
      const ssize_t got = ::read(fd, buffer.data(), buffer.size());
      if (got <= 0) break;
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t done = ::send(fd, buffer.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
        if (done <= 0) return;
        sent += done;
      }
    }
    ::shutdown(fd, SHUT_WR);
  }
  std::unique_ptr<Channel> near_;
  os::Fd far_;
  std::thread thread_;
};

class ChildPeer {
 public:
  explicit ChildPeer(Manner manner) {
    auto to_child = os::make_pipe().value(), from_child = os::make_pipe().value();
    std::vector<std::string> argv = {"cat"};
    if (manner == Manner::mute) argv = {"sleep", "1000"};
    if (manner == Manner::last_words) argv = {"echo", std::string(kLastWords.substr(0, kLastWords.size() - 1))};
    child_ = os::spawn(argv, {.in = to_child.read.get(), .out = from_child.write.get()}).value();
    if (manner == Manner::last_words) child_.wait(deadline_in(kLong));
    near_ = make_fd_channel(std::move(from_child.read), std::move(to_child.write));
  }
  Channel& channel() { return *near_; }
  void die() {
    child_.kill_now();
    child_.wait(kNoDeadline);
  }

 private:
  os::Child child_;
  std::unique_ptr<Channel> near_;
};

}  // namespace

#define ENVSYNC_CHANNEL_PEERS SocketPeer, ChildPeer
#include "support/channel_contract_cases.hpp"
