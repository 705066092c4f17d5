// SPDX-License-Identifier: MIT
// Which road costs less time, from what is known of this link and of the processors.
#pragma once

#include <optional>
#include <string>

#include "delta/chunks.hpp"

namespace envsync::delta {

/// What was measured of the way from a source to a target.
struct Way {
  double rate = 0;        // bytes of content a second, packed as they travel whole; 0: not known
  double round_trip = 0;  // seconds
};
/// From bytes that came in so many seconds, and what they were on the wire: what packs well says little of what packs usually.
double rate_from(u64 content, u64 wire, double seconds);
/// A rate in any case: where none is known, what is usual for links of that round trip.
double rate_of(const Way& way);
/// Below it compression is hardly ever what is waited for.
bool is_slow(const Way& way);
/// Of compression, to begin with on a slow way.
inline constexpr int kSlowLevel = 3;

/// A decision, and what it was made from, for a person.
struct Choice {
  bool is_taken = false;
  std::string why;
};

/// Cutting `bytes` of wanted files and `base_bytes` of their bases into coarse chunks.
Choice choose_coarse(u64 bytes, u64 base_bytes, const Way& way);
/// Cutting what the coarse ones left: `rest` of the wanted files and `unused` of the bases.
Choice choose_fine(u64 rest, u64 unused, const Way& way);
/// The finer the slower the link.
Grain fine_grain(const Way& way);
/// Differences of small files of so many bytes.
Choice choose_small(u64 bytes, const Way& way);

}  // namespace envsync::delta
