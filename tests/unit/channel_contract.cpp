// SPDX-License-Identifier: MIT
// What every channel keeps, over a socket pair and over a child's pipes.
#include "channel/channel.hpp"

#include <thread>

#include <sys/socket.h>

#include <doctest/doctest.h>

#include "os/process.hpp"

using namespace envsync;
using channel::Channel;
using channel::make_fd_channel;

namespace {

constexpr Seconds kLong{30};

/// The other side: it gives back what it is given and ends when that ends; `mute`: it neither reads nor writes; `last_words`:
/// it says them and ends.
enum class Manner { echo, mute, last_words };
constexpr std::string_view kLastWords = "out of order\n";

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

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  u32 state = 1;
  for (auto& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

/// Until the end of the stream or an error.
Bytes read_all(Channel& channel) {
  Bytes all, buffer(100'000);
  for (;;) {
    const auto got = channel.read(buffer, deadline_in(kLong));
    if (!got || *got == 0) return all;
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*got));
  }
}

template <class T>
bool is_lost(const Result<T>& result) { return !result && result.error().code == ErrorCode::connection_lost; }

}  // namespace

TEST_CASE_TEMPLATE("a large write comes back whole while it is still being written", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::echo);
  const Bytes sent = pattern(5'000'001);
  std::thread writer([&] {
    CHECK(peer.channel().write(sent, deadline_in(kLong)));
    peer.channel().close_write();
  });
  const Bytes received = read_all(peer.channel());
  writer.join();
  CHECK(received == sent);
}

TEST_CASE_TEMPLATE("a closed write side ends the other's input and leaves the way back open", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::echo);
  REQUIRE(peer.channel().write(as_bytes("last words"), deadline_in(kLong)));
  peer.channel().close_write();
  peer.channel().close_write();
  CHECK(as_text(read_all(peer.channel())) == "last words");
  std::byte more[1];
  CHECK(peer.channel().read(more, deadline_in(kLong)).value() == 0);
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("abort wakes a blocked reader and a blocked writer", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::mute);
  std::thread reader([&] {
    std::byte out[1];
    CHECK(is_lost(peer.channel().read(out, kNoDeadline)));
  });
  std::thread writer([&] { CHECK(is_lost(peer.channel().write(pattern(50'000'000), kNoDeadline))); });
  peer.channel().abort();
  reader.join();
  writer.join();
}

TEST_CASE_TEMPLATE("after an abort nothing is read or written", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::echo);
  peer.channel().abort();
  peer.channel().abort();
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, kNoDeadline)));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), kNoDeadline)));
}

TEST_CASE_TEMPLATE("a read past its deadline is a lost connection, and stays lost", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::mute);
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, deadline_in(Seconds(0.01)))));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("a write that nobody takes ends at its deadline", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::mute);
  CHECK(is_lost(peer.channel().write(pattern(50'000'000), deadline_in(Seconds(0.01)))));
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("a write after the other's death is an error and no signal", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::mute);
  peer.die();
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("the other's death ends a read", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::echo);
  peer.die();
  CHECK(read_all(peer.channel()).empty());
}

TEST_CASE_TEMPLATE("what the other side said before it went can be read after a failed write", Peer, SocketPeer, ChildPeer) {
  Peer peer(Manner::last_words);
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
  CHECK(as_text(read_all(peer.channel())) == kLastWords);
}
