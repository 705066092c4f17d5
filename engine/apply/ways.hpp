// SPDX-License-Identifier: MIT
//   way file := format::seal_file("EWAY", 1, rate:u64 round_trip_ns:u64)     in the cache folder, by the label's digest
// What runs measured of the way between two hosts, so that the next one knows before it has moved a byte. A guess, never more.
#pragma once

#include "delta/cost.hpp"
#include "os/files.hpp"

namespace envsync::apply {

/// Unknown where there is none, or a damaged one.
delta::Way load_way(const std::string& label);
/// The newest measure weighs as much as all before it.
void keep_way(os::Files& files, const std::string& label, const delta::Way& measured);

}  // namespace envsync::apply
