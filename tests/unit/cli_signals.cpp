// SPDX-License-Identifier: MIT
#include "cli/signals.hpp"

#include <csignal>
#include <future>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

using envsync::cli::Signals;

namespace {

/// Runs `body` in a process of its own and gives its wait status: signal handlers are the process's.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // a hang ends in SIGALRM, which no case expects
    ::_exit(body());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

void wait_for_stop(const std::stop_token& stop) {
  std::promise<void> stopped;
  const std::stop_callback callback(stop, [&] { stopped.set_value(); });
  stopped.get_future().wait();
}

}  // namespace

TEST_CASE("the first signal asks the run to stop and is remembered") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = in_child([&] {
      const Signals signals;
      ::raise(number);
      wait_for_stop(signals.stop());
      return signals.first() == number ? 7 : 8;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
  }
}

TEST_CASE("a second SIGINT ends the process at once with 130, a second SIGTERM does not") {
  const int interrupted = in_child([] {
    const Signals signals;
    ::raise(SIGINT);
    ::raise(SIGINT);
    return 7;
  });
  CHECK(WEXITSTATUS(interrupted) == 130);
  const int terminated = in_child([] {
    const Signals signals;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    return 7;
  });
  CHECK(WEXITSTATUS(terminated) == 7);
}

TEST_CASE("writing to a reader that went away is an error, not the end") {
  const int status = in_child([] {
    const Signals signals;
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    ::close(ends[0]);
    return ::write(ends[1], "x", 1) < 0 ? 7 : 8;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("a SIGHUP that nohup ignored stays ignored") {
  const int status = in_child([] {
    std::signal(SIGHUP, SIG_IGN);
    const Signals signals;
    ::raise(SIGHUP);
    return signals.first() == 0 ? 7 : 8;
  });
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("without a signal nothing stops and the object goes away") {
  const int status = in_child([] {
    { const Signals signals; if (signals.stop().stop_requested()) return 8; }
    return 7;
  });
  CHECK(WEXITSTATUS(status) == 7);
}
