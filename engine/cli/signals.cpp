// SPDX-License-Identifier: MIT
#include "cli/signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/try.hpp"

namespace envsync::cli {

namespace {

// A signal handler reaches nothing but what is static: the one exception to "no static state".
std::atomic<int> first_signal{0};
int wake_pipe[2] = {-1, -1};

// Handlers, not a blocked mask: a mask would be inherited by ssh, which could then not be interrupted.
extern "C" void on_signal(int number) {
  const int saved = errno;
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) {
    if (number == SIGINT) ::_exit(130);
  } else {
    const char byte = 's';
    [[maybe_unused]] const ssize_t written = ::write(wake_pipe[1], &byte, 1);
  }
  errno = saved;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ENVSYNC_CHECK(::sigaction(number, &action, nullptr) == 0);
}

}  // namespace

Signals::Signals() {
  ENVSYNC_CHECK(::pipe2(wake_pipe, O_CLOEXEC) == 0);
  thread_ = std::jthread([this] {
    char byte = 0;
    ssize_t count = 0;
    do count = ::read(wake_pipe[0], &byte, 1);
    while (count < 0 && errno == EINTR);
    if (count == 1 && byte == 's') source_.request_stop();
  });
  handle(SIGPIPE, SIG_IGN);
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  // Whoever started us with nohup wants SIGHUP ignored. A shell's background job has SIGINT ignored too, but there nobody chose it.
  struct sigaction before{};
  const bool is_ignored = ::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
  if (!is_ignored) handle(SIGHUP, on_signal);
}

Signals::~Signals() {
  const char byte = 'q';
  [[maybe_unused]] const ssize_t written = ::write(wake_pipe[1], &byte, 1);
}

int Signals::first() const { return first_signal.load(); }

}  // namespace envsync::cli
