// SPDX-License-Identifier: MIT
// What an interrupted transaction's folder says, and what is left of one that has ended. Private to store.
#pragma once

#include <string>

#include "store/discard.hpp"
#include "store/journal.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {

/// Read from the journal and from the two places that an exchange swaps.
struct Situation {
  Last last = Last::none;
  Terms terms;                 // where last is not none
  Holds in_new = Holds::absent, at_path = Holds::absent;
  Action action = Action::leftover;
};
/// `parsed` is of an undamaged journal.
Result<Situation> read_situation(const Place& place, int tx, const Parsed& parsed);
/// One clause for `status`; empty: nothing is to be done.
std::string what_recovery_does(const Place& place, int tx);

/// Of a transaction that has ended or never got far: contents that were received stay as leftovers, links of live files go, and
/// so does a displaced tree in which nobody stands any more.
Result<void> settle_leftover(State& state, const std::string& tx, const Parsed& parsed, CacheMoves& moves);

}  // namespace envsync::store
