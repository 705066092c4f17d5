// SPDX-License-Identifier: MIT
// The pool: contents that kept records name and the live tree no longer has, one file each, named by content. And the records
// that say what is kept. Private to store.
//
// Invariant: every digest in a kept record is in the pool, or in the live tree as last verified.
#pragma once

#include <map>
#include <unordered_set>
#include <vector>

#include "store/state.hpp"

namespace envsync::store {

using content::ContentId;
using Contents = std::unordered_set<ContentId, content::ContentIdHash>;

/// What lies in the pool. Names that are no contents are left out, and left alone.
Result<std::vector<ContentId>> list_pool(int state);
void erase_named(const tree::Tree& tree, Contents& from);
void erase_named(const Record& record, Contents& from);

/// The numbers that pruning to `keep` beside the current and 0 deletes; `numbers` ascend, the last is the current.
std::vector<u32> beyond_keep(const std::vector<u32>& numbers, u32 keep);

struct Swept { u64 contents = 0, bytes = 0; };
/// Trees of records that are at hand, and so need not be read.
using KnownTrees = std::map<u32, std::vector<const tree::Tree*>>;
/// Takes away what any of the records names, everything where one does not decode; reads no more of them than it must.
Result<void> erase_named(const State& state, const std::vector<u32>& records, const KnownTrees& known, Contents& from);
/// Deletes the records, syncs, then deletes the contents that no record left names.
Result<Swept> delete_records(State& state, const std::vector<u32>& gone, const KnownTrees& known);

}  // namespace envsync::store
