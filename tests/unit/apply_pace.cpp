// SPDX-License-Identifier: MIT
#include "apply/pace.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::apply;

TEST_CASE("a pace gives each piece the time that the rate leaves, whoever sends it") {
  Pace pace(1000);
  const Deadline start = std::chrono::steady_clock::now();
  const auto after = [&](double seconds) { return start + std::chrono::duration_cast<Deadline::duration>(Seconds{seconds}); };
  CHECK(pace.next(500, start) == start);
  CHECK(pace.next(500, start) == after(0.5));
  CHECK(pace.next(250, start) == after(1));
  CHECK(pace.next(1, after(1)) == after(1.25));
}

TEST_CASE("a pace saves nothing up while nobody sends") {
  Pace pace(1000);
  const Deadline start = std::chrono::steady_clock::now();
  (void)pace.next(1000, start);
  const Deadline later = start + std::chrono::seconds(60);
  CHECK(pace.next(1000, later) == later);
  CHECK(pace.next(1000, later) == later + std::chrono::seconds(1));
}

TEST_CASE("a pace is left at once at a stop") {
  Pace pace(1);
  std::stop_source stop;
  stop.request_stop();
  pace.take(1'000'000, stop.get_token());
  pace.take(1'000'000, stop.get_token());
}
