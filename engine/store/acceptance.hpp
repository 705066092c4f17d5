// SPDX-License-Identifier: MIT
// The end of a transaction: what follows the exchange, the same for the process that made it and for a later one that finds it
// unfinished. Every step may be done again. Private to store.
#pragma once

#include <string>
#include <vector>

#include "store/discard.hpp"
#include "store/journal.hpp"
#include "store/state_impl.hpp"
#include "store/transaction.hpp"

namespace envsync::store {

/// A name and the open folder that it lies in.
struct Spot {
  os::Fd held;                 // where the folder had to be opened
  int at = -1;
  std::string name;
};
/// The commit root in the live tree. Its folder is absent: an error with ENOENT.
Result<Spot> live_spot(const Place& place, const tree::RelPath& commit_root);

/// Whether moving a folder of this mode needs its owner's write bit first: root does not.
bool must_loosen(u32 mode);
/// Gives the commit root at `spot` its mode back, where moving it had needed another one.
Result<void> restore_mode(os::Files& files, int at, const std::string& name, u32 mode);
/// DURABILITY: the exchange itself, and what stood before it: both folders that it changed.
Result<void> sync_parents(os::Files& files, const Spot& live, int tx);

struct Acceptance {
  State& state;
  int tx_fd;
  const std::string& tx;
  Journal& journal;
  const Terms& terms;
  const tree::Tree* base;      // null: nothing was there, or its record is gone already
  const tree::Tree& desired;
  const tree::Tree* ground;    // of the desired tree's record; null: none
  CacheMoves& moves;
  scan::StatCache* cache;              // null: in recovery, where none is at hand
  const std::vector<u32>& made;        // indexes in desired of the files that were written
  std::vector<std::string> warnings{};
  bool is_deferred = false;            // somebody stands in the displaced tree: a later run deletes it
};

/// From `accepting` to `accepted`. An error leaves the rest to a later run; the desired tree stays at the path.
Result<void> finish_accept(Acceptance& acceptance, const StepSink& sink);

}  // namespace envsync::store
