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

/// What could go by deltas.
struct Load {
  u64 large_bytes = 0, base_bytes = 0;  // files that are cut into chunks, and their bases
  u64 small_bytes = 0;
  std::size_t large_files = 0, small_files = 0;
};

struct Roads {
  bool coarse = false;
  bool fine = false;      // after coarse, over what it leaves
  Grain grain = Grain::fine;
  bool small = false;
  std::string why_large, why_small;  // for a person
};

/// By time. `unknown` rates are taken for those of a link of 1 Gbit/s.
Roads choose(const Load& load, const Way& way);
/// Every file that has a base, whatever it costs.
Roads forced();

}  // namespace envsync::delta
