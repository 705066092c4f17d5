// SPDX-License-Identifier: MIT
#include "delta/cost.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace envsync::delta {

namespace {

// Bytes a second of one end, which has two cores or is shared; measured on real libraries.
constexpr double kCutCoarse = 0.9e9;  // read, cut, name; and what is found is read again and written
constexpr double kCutFine = 0.5e9;
constexpr double kSum = 0.16e9;
// What is usually found of a new version in its old one: releases of torch and sglang have more.
constexpr double kFoundCoarse = 0.4, kFoundFine = 0.35, kFoundSmall = 0.55;
constexpr double kSlow = 80e6;        // of content; some 240 Mbit/s on the wire

double seconds(double bytes, double rate) { return bytes / rate; }

Choice decide(double whole, double share, double cost, double rate) {
  return {cost < share * whole, fmt::format("whole {:.2f} s at {:.0f} MB/s; it saves about {:.2f} s and costs {:.2f} s", whole, rate / 1e6, share * whole, cost)};
}

}  // namespace

double rate_from(u64 content, u64 wire, double seconds) {
  constexpr double kUsualRatio = 2.7;  // of an environment under zstd -3
  return std::min(static_cast<double>(content), kUsualRatio * static_cast<double>(wire)) / std::max(seconds, 1e-3);
}

double rate_of(const Way& way) {
  // A long way is a slow one, more often than not. On loopback and in a rack it is the processors that are waited for.
  constexpr double kBytesAWay = 1e6, kLeast = 30e6, kMost = 250e6, kUsual = 200e6;
  if (way.rate > 0) return way.rate;
  return way.round_trip > 0 ? std::clamp(kBytesAWay / way.round_trip, kLeast, kMost) : kUsual;
}

bool is_slow(const Way& way) { return rate_of(way) < kSlow; }

Choice choose_coarse(u64 bytes, u64 base_bytes, const Way& way) {
  const double rate = rate_of(way);
  // Both ends cut at the same time.
  const double cost = seconds(static_cast<double>(std::max(bytes, base_bytes)), kCutCoarse) + 2 * way.round_trip;
  return decide(seconds(static_cast<double>(bytes), rate), kFoundCoarse, cost, rate);
}

Choice choose_fine(u64 rest, u64 unused, const Way& way) {
  const double rate = rate_of(way);
  // One end after the other.
  const double cost = seconds(static_cast<double>(rest) + static_cast<double>(unused), kCutFine) + 2 * way.round_trip;
  const double findable = static_cast<double>(std::min(rest, 2 * unused));
  return decide(seconds(findable, rate), kFoundFine, cost, rate);
}

Grain fine_grain(const Way& way) { return is_slow(way) ? Grain::finest : Grain::fine; }

Choice choose_small(u64 bytes, const Way& way) {
  const double rate = rate_of(way);
  const double cost = seconds(static_cast<double>(bytes), kSum) + 3 * way.round_trip;
  return decide(seconds(static_cast<double>(bytes), rate), kFoundSmall, cost, rate);
}

}  // namespace envsync::delta
