// SPDX-License-Identifier: MIT
#include "store/recovery.hpp"

#include "base/try.hpp"

namespace envsync::store {
namespace {

/// What happened is read from `new`, which is ours alone: as long as the staged tree lies there, nothing was exchanged.
Action decide_prepared(bool base_absent, Holds in_new, Holds at_path) {
  if (in_new == Holds::desired) return Action::abandon;
  const Holds displaced = base_absent ? Holds::absent : Holds::base;
  return in_new == displaced && at_path == Holds::desired ? Action::finish_commit : Action::refuse;
}

/// As prepared, but success may have been reported: a staged tree in `new` means that the disk lost the exchange.
Action decide_committed(bool base_absent, Holds in_new, Holds at_path) {
  if (in_new != Holds::desired) return decide_prepared(base_absent, in_new, at_path);
  return at_path == (base_absent ? Holds::absent : Holds::base) ? Action::abandon : Action::refuse;
}

Action decide_reverting(bool base_absent, Holds in_new, Holds at_path) {
  const Holds before = base_absent ? Holds::absent : Holds::base;
  if (in_new == Holds::desired && at_path == before) return Action::finish_revert;
  if (in_new == before && at_path == Holds::desired) return Action::revert;
  return Action::refuse;
}

}  // namespace

Action decide(Last last, bool base_absent, Holds in_new, Holds at_path) {
  switch (last) {
    case Last::none:
    case Last::begin:
    case Last::terminal: return Action::leftover;
    case Last::prepared: return decide_prepared(base_absent, in_new, at_path);
    case Last::committed: return decide_committed(base_absent, in_new, at_path);
    case Last::reverting: return decide_reverting(base_absent, in_new, at_path);
    // Contents have begun to move: nothing exchanges back, and nothing is deleted unless the path holds the new tree.
    case Last::accepting: return at_path == Holds::desired ? Action::redo_accept : Action::keep_all;
  }
  ENVSYNC_CHECK(false);
}

}  // namespace envsync::store
