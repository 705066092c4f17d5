// SPDX-License-Identifier: MIT
// The recovery table as a pure function: what the last journal record and the two places say decides what is done.
#pragma once

#include <envsync/types.hpp>

namespace envsync::store {

enum class Last : u8 { none, begin, prepared, committed, reverting, accepting, terminal };
enum class Holds : u8 { base, desired, absent, other };
enum class Action : u8 { leftover, abandon, finish_commit, finish_revert, revert, redo_accept, refuse, keep_all };

/// `base_absent`: the transaction began without anything at the path.
Action decide(Last last, bool base_absent, Holds in_new, Holds at_path);

}  // namespace envsync::store
