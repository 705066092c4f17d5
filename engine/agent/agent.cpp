// SPDX-License-Identifier: MIT
#include "agent/agent.hpp"

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <thread>

#include <malloc.h>

#include <envsync/engine.hpp>

#include "agent/joins.hpp"
#include "agent/old_agents.hpp"
#include "agent/session.hpp"
#include "content/digest.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"

namespace envsync::agent {

namespace {

constexpr u32 kFirstRequest = 1;
constexpr std::size_t kHandlersMax = 64;  // LIMIT: requests at work for one controller

/// Digest of the program that runs, so that the controller knows that it is its own build.
std::string own_digest() {
  content::Hasher hasher;
  auto fd = os::open_self();
  if (!fd) return {};
  Bytes buffer(1u << 20);
  for (u64 at = 0;;) {
    const auto n = os::read_at(fd->get(), at, buffer, "the agent");
    if (!n) return {};
    if (*n == 0) return hasher.digest().hex();
    hasher.update(ByteView(buffer).first(*n));
    at += *n;
  }
}

std::string own_hello() { return std::string(as_text(format::encode(format::Hello{std::string(version()), own_digest(), static_cast<u64>(::getpid())}))); }

/// Threads of the requests at work.
class Handlers {
 public:
  template <class Work>
  void run(Work work) {
    const std::lock_guard lock(mutex_);
    if (running_ >= kHandlersMax) return;  // the peer is not ours: no controller asks so much at once
    ++running_;
    std::thread([this, work = std::move(work)]() mutable {
      {
        // With it goes what it holds: whoever waits for idleness may destroy that.
        auto own = std::move(work);
        own();
      }
      const std::lock_guard done(mutex_);
      --running_;
      idle_.notify_all();
    }).detach();
  }
  void wait_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t running_ = 0;
};

class EndSignal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

/// SIGTERM ends the session as a cut of its connection does: an agent of the same run that comes after this one asks for it.
class EndBySignal {
 public:
  explicit EndBySignal(std::function<void()> end) {
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &terminate_, &before);  // for the thread, which inherits it
    thread_ = std::jthread([this, end = std::move(end)](const std::stop_token& stop) {
      int signal = 0;
      if (::sigwait(&terminate_, &signal) == 0 && !stop.stop_requested()) end();
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~EndBySignal() {
    thread_.request_stop();
    ::pthread_kill(thread_.native_handle(), SIGTERM);  // to the thread alone, which waits for it
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;

  /// Before any thread is made.
  static void block() {
    const sigset_t terminate = terminate_set();
    ::pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
  }

 private:
  static sigset_t terminate_set() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTERM);
    return set;
  }
  const sigset_t terminate_ = terminate_set();
  std::jthread thread_;
};

}  // namespace

int serve(std::unique_ptr<channel::Channel> channel, ByteView first, os::Files& files) {
  EndSignal end;  // before the connection, which calls back until it is destroyed
  const std::string hello = own_hello();
  Handlers handlers;
  Session* served = nullptr;
  Joins joins(hello, [&](std::shared_ptr<protocol::Connection> joined, protocol::Frame frame) {
    handlers.run([served, joined = std::move(joined), frame = std::move(frame)] { served->handle({joined.get(), frame.request, true}, frame.payload); });
  });
  Session session(files, &joins);
  served = &session;
  protocol::Connection connection(std::move(channel));
  connection.open(kFirstRequest);
  if (!connection.send(protocol::FrameType::hello, kFirstRequest, as_bytes(hello))) return 1;
  if (first.empty()) connection.close(kFirstRequest);
  else handlers.run([&, payload = Bytes(first.begin(), first.end())] { session.handle({&connection, kFirstRequest}, payload); });
  connection.start(
      [&](protocol::Frame frame) {
        handlers.run([&, frame = std::move(frame)] { session.handle({&connection, frame.request}, frame.payload); });
      },
      [&] { end.set(); });
  const EndBySignal by_signal([&] { connection.abort(); });
  end.wait();
  // The control connection is the session. A commit that was asked for is finished here, controller or not.
  joins.close();
  handlers.wait_idle();
  session.finish();
  drop_old_agents(files);
  return 0;
}

int main(int argc, char** argv, os::Files& files) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "--version") {
    std::printf("envsync-agent %s\n", std::string(version()).c_str());
    return 0;
  }
  if (verb != "serve" || argc > 3) {
    std::fputs("envsync-agent is started by envsync; by itself it does nothing\nusage: envsync-agent serve [REQUEST]\n", stderr);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  EndBySignal::block();
  os::raise_fd_limit();
  os::set_usual_umask();  // folders above a new environment are made as mkdir would
  // LIMIT: an agent stays near 96 MB. Handlers are threads that come and go: with an arena each, what they freed would stay with them.
  // A pack's block goes back to the system when it is freed; left to itself the C library would soon keep such blocks in its heap.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  Bytes first;
  if (argc == 3) {
    auto decoded = from_base64(argv[2]);
    if (!decoded) {
      std::fputs("envsync-agent: the request does not decode\n", stderr);
      return 2;
    }
    first = std::move(*decoded);
  }
  const auto request = first.empty() ? Result<format::Request>(format::RecordsRequest{}) : format::decode_request(first);
  if (const auto* join = request ? std::get_if<format::JoinRequest>(&*request) : nullptr) return hand_over(join->name, own_hello(), os::Fd(0), os::Fd(1));
  return serve(channel::make_fd_channel(os::Fd(0), os::Fd(1)), first, files);
}

}  // namespace envsync::agent
