// SPDX-License-Identifier: MIT
#include "delta/cost.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace envsync::delta {

namespace {

// Bytes a second of one core, measured on real libraries; two ends work at the same time.
constexpr double kCutCoarse = 0.8e9;  // read, cut, name, and copy what is found
constexpr double kCutFine = 0.25e9;
constexpr double kRsync = 0.06e9;
// What is usually found of a new version in an old one: on torch and sglang releases one finds more.
constexpr double kFoundCoarse = 0.4, kFoundFine = 0.25, kFoundSmall = 0.55;
constexpr double kUnknownRate = 200e6;
constexpr double kSlowRate = 65e6;    // of content; some 200 Mbit/s on the wire

double seconds(u64 bytes, double rate) { return static_cast<double>(bytes) / rate; }

}  // namespace

Roads forced() { return {.coarse = true, .fine = true, .grain = Grain::finest, .small = true, .why_large = "asked for", .why_small = "asked for"}; }

Roads choose(const Load& load, const Way& way) {
  Roads roads;
  const double rate = way.rate > 0 ? way.rate : kUnknownRate;
  const double whole = seconds(load.large_bytes, rate);
  const double cutting = seconds(load.large_bytes + load.base_bytes, 2 * kCutCoarse) + 2 * way.round_trip;
  roads.coarse = load.large_files > 0 && cutting < kFoundCoarse * whole;
  roads.why_large = fmt::format("whole {:.1f} s, chunks save about {:.1f} s and cost {:.1f} s", whole, kFoundCoarse * whole, cutting);
  const double left = (1 - kFoundCoarse) * static_cast<double>(load.large_bytes);
  roads.fine = roads.coarse && 2 * left / (2 * kCutFine) + 2 * way.round_trip < kFoundFine * left / rate;
  roads.grain = rate < kSlowRate ? Grain::finest : Grain::fine;
  const double small = seconds(load.small_bytes, rate);
  const double summing = seconds(load.small_bytes, 2 * kRsync) + 3 * way.round_trip;
  roads.small = load.small_files > 0 && summing < kFoundSmall * small;
  roads.why_small = fmt::format("whole {:.2f} s, differences save about {:.2f} s and cost {:.2f} s", small, kFoundSmall * small, summing);
  return roads;
}

}  // namespace envsync::delta
