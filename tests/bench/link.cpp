// SPDX-License-Identifier: MIT
// A link before a server, for measuring: a rate and a round trip that all connections share, as one long line would have them.
//
//   bench_link TARGET_PORT [--rate MBIT] [--rtt MS] [--cut BYTES]
//
// Prints the port that it listens on, and at SIGTERM `up N down N`: bytes towards the server and back. After --cut bytes in all every
// connection is reset, once; new ones pass. Data waits here for its time, at most as much as the line is long and 50 ms more, so that a
// sender feels the rate.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Length = Clock::duration;

constexpr std::size_t kPiece = 256u << 10;
constexpr std::chrono::milliseconds kBuffer{50};

struct Options {
  int target_port = 0;
  double bytes_a_second = 0;  // 0: as fast as it goes
  Length rtt{};
  unsigned long long cut = 0;  // 0: never
};

/// One way of the line: who sends next, and when it is free.
class Line {
 public:
  explicit Line(double bytes_a_second) : rate_(bytes_a_second) {}
  /// When the last of so many bytes has left, sent from now on.
  Time send(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    free_ = std::max(free_, Clock::now());
    if (rate_ > 0) free_ += std::chrono::duration_cast<Length>(std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
    return free_;
  }
  unsigned long long bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  const double rate_;
  std::mutex mutex_;
  Time free_{};
  unsigned long long bytes_ = 0;
};

/// Connections that are open, so that a cut reaches them all.
class Open {
 public:
  void add(int fd) {
    const std::lock_guard lock(mutex_);
    fds_.insert(fd);
  }
  void close(int fd) {
    const std::lock_guard lock(mutex_);
    fds_.erase(fd);
    ::close(fd);
  }
  void reset_all() {
    const std::lock_guard lock(mutex_);
    for (const int fd : fds_) {
      const linger now{1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      ::shutdown(fd, SHUT_RDWR);
    }
  }

 private:
  std::mutex mutex_;
  std::set<int> fds_;
};

struct Link {
  explicit Link(const Options& o) : options(o), up(o.bytes_a_second), down(o.bytes_a_second) {}
  const Options options;
  Line up, down;
  Open open;
  std::atomic<bool> is_cut{false};
};

bool write_all(int fd, const std::vector<char>& data) {
  for (std::size_t at = 0; at < data.size();) {
    const ssize_t n = ::send(fd, data.data() + at, data.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

/// Bytes of one connection, one way, on their way.
class Way {
 public:
  Way(Link& link, Line& line, int from, int to) : link_(link), line_(line), from_(from), to_(to) {}
  void run() {
    std::jthread arriving([this] { arrive(); });
    leave();
  }

 private:
  struct Piece {
    Time due;
    std::vector<char> data;  // empty: the end
  };

  void leave() {
    for (;;) {
      std::vector<char> data(kPiece);
      const ssize_t n = ::recv(from_, data.data(), data.size(), 0);
      data.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      const Time sent = line_.send(data.size());
      const bool is_end = data.empty();
      {
        const std::lock_guard lock(mutex_);
        pieces_.push_back({sent + link_.options.rtt / 2, std::move(data)});
      }
      changed_.notify_one();
      if (is_end) return;
      if (link_.options.cut > 0 && link_.up.bytes() + link_.down.bytes() >= link_.options.cut && !link_.is_cut.exchange(true)) link_.open.reset_all();
      std::this_thread::sleep_until(sent - kBuffer);
    }
  }

  void arrive() {
    for (bool is_broken = false;;) {
      Piece piece;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !pieces_.empty(); });
        piece = std::move(pieces_.front());
        pieces_.pop_front();
      }
      if (piece.data.empty()) break;
      std::this_thread::sleep_until(piece.due);
      if (!is_broken && !write_all(to_, piece.data)) {
        is_broken = true;
        ::shutdown(from_, SHUT_RDWR);
      }
    }
    ::shutdown(to_, SHUT_WR);
  }

  Link& link_;
  Line& line_;
  const int from_, to_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
};

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

void carry(Link& link, int near) {
  const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = local(link.options.target_port);
  const int on = 1;
  for (const int fd : {near, far}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(far);
    ::close(near);
    return;
  }
  link.open.add(near);
  link.open.add(far);
  {
    Way up(link, link.up, near, far), down(link, link.down, far, near);
    std::jthread other([&] { down.run(); });
    up.run();
  }
  link.open.close(near);
  link.open.close(far);
}

Options parse(int argc, char** argv) {
  const auto usage = [] {
    std::fputs("usage: bench_link TARGET_PORT [--rate MBIT] [--rtt MS] [--cut BYTES]\n", stderr);
    std::exit(2);
  };
  Options options;
  if (argc < 2 || argc % 2 != 0) usage();
  options.target_port = std::atoi(argv[1]);
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (name == "--rate") options.bytes_a_second = value * 1e6 / 8;
    else if (name == "--rtt") options.rtt = std::chrono::duration_cast<Length>(std::chrono::duration<double>(value / 1e3));
    else if (name == "--cut") options.cut = static_cast<unsigned long long>(value);
    else usage();
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Link link(parse(argc, argv));
  sigset_t terminate;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = local(0);
  socklen_t size = sizeof address;
  if (::bind(server, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(server, 64) != 0 ||
      ::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("bench_link");
    return 1;
  }
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread([&] {
    for (;;)
      if (const int near = ::accept4(server, nullptr, nullptr, SOCK_CLOEXEC); near >= 0) std::thread(carry, std::ref(link), near).detach();
  }).detach();
  int signal = 0;
  ::sigwait(&terminate, &signal);
  std::printf("up %llu down %llu\n", link.up.bytes(), link.down.bytes());
  std::fflush(stdout);
  std::_Exit(0);
}
