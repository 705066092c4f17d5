// SPDX-License-Identifier: MIT
#include "apply/ramp.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace envsync;
using envsync::apply::Ramp;

namespace {

constexpr double kMega = 1e6;

/// A transfer as a link would have it: `rate` says what so many lanes bring.
struct Link {
  Ramp ramp;
  Ramp::Sight now;
  double left = 4000 * kMega;
  unsigned lanes = 1;
  unsigned most = 8;     // that the server lets in
  double busy = 1;
  bool is_cpu_full = false;

  template <class Rate>
  unsigned run(double seconds, Rate rate) {
    for (double t = 0; t < seconds && left > 0; t += 0.1) {
      const double moved = rate(lanes) * kMega * 0.1;
      left -= moved;
      now.at += Seconds{0.1};
      now.wire_bytes += static_cast<u64>(moved);
      now.content_moved += static_cast<u64>(moved);
      now.content_left = left > 0 ? static_cast<u64>(left) : 0;
      now.lanes = lanes;
      now.busy = busy;
      now.is_cpu_full = is_cpu_full;
      lanes = std::min(most, lanes + ramp.more(now));
    }
    return lanes;
  }
};

double window_limited(unsigned lanes) { return lanes * 48.0 < 123 ? lanes * 48.0 : 123; }

}  // namespace

TEST_CASE("lanes are added while each brings a tenth, and one that brings nothing is the last") {
  Link link;
  CHECK(link.run(20, [](unsigned lanes) { return lanes < 4 ? 30 + 10.0 * lanes : 60.0; }) == 4);
  CHECK(link.ramp.has_settled());
}

TEST_CASE("where a lane brings as much as the first, their number doubles") {
  Link link;
  CHECK(link.run(1.1, window_limited) == 2);
  CHECK(link.run(1.1, window_limited) == 4);
  CHECK(link.run(20, window_limited) <= 5);
}

TEST_CASE("a link that one connection fills gets one more as a trial, and no third") {
  Link link;
  CHECK(link.run(20, [](unsigned) { return 100.0; }) == 2);
}

TEST_CASE("eight connections are the most") {
  Link link;
  link.left = 1e12;
  CHECK(link.run(60, [](unsigned lanes) { return 20.0 * lanes; }) == 8);
}

TEST_CASE("nothing is opened for what is over in two seconds") {
  Link link;
  link.left = 90 * kMega;
  CHECK(link.run(20, window_limited) == 1);
}

TEST_CASE("nothing is opened for a little on a slow link") {
  Link link;
  link.left = 20 * kMega;
  CHECK(link.run(60, [](unsigned) { return 0.5; }) == 1);
}

TEST_CASE("nothing is opened while this machine's processors are full") {
  Link link;
  link.is_cpu_full = true;
  CHECK(link.run(20, [](unsigned lanes) { return 100.0 * lanes; }) == 1);
}

TEST_CASE("nothing is opened to a host that is not the one waited for") {
  Link link;
  link.busy = 0.2;
  CHECK(link.run(20, window_limited) == 1);
  link.busy = 1;
  CHECK(link.run(20, window_limited) > 1);
}

TEST_CASE("a server that lets no more in leaves the one") {
  Link link;
  link.most = 1;
  CHECK(link.run(10, window_limited) == 1);
}
