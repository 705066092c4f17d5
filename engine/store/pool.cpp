// SPDX-License-Identifier: MIT
#include "store/pool.hpp"

#include <algorithm>
#include <cerrno>

#include "store/record.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {

Result<std::vector<ContentId>> list_pool(int state) {
  std::vector<ContentId> contents;
  TRY(const auto stat, os::stat_if_exists(state, kContentsDir));
  if (!stat) return contents;
  TRY(const os::Fd dir, os::open_dir(state, kContentsDir));
  TRY(const auto entries, os::list(dir.get(), kContentsDir));
  for (const auto& entry : entries)
    if (const auto id = ContentId::parse(entry.name)) contents.push_back(*id);
  std::ranges::sort(contents);
  return contents;
}

void erase_named(const tree::Tree& tree, Contents& from) {
  for (const tree::Entry& entry : tree.entries()) {
    if (from.empty()) return;
    if (const tree::File* file = entry.file()) from.erase(file->content());
  }
}

void erase_named(const Record& record, Contents& from) {
  erase_named(record.tree, from);
  if (record.ground) erase_named(*record.ground, from);
}

Result<void> erase_named(const State& state, const std::vector<u32>& records, const KnownTrees& known, Contents& from) {
  for (const u32 number : records)
    if (const auto at_hand = known.find(number); at_hand != known.end())
      for (const tree::Tree* tree : at_hand->second) erase_named(*tree, from);
  for (const u32 number : records) {
    if (from.empty()) return ok();
    if (known.contains(number)) continue;
    const auto record = state.load(number);
    if (!record && record.error().code != ErrorCode::corrupt) return record.error();
    // What a damaged record names is not known: it may be any of them.
    if (!record) from.clear();
    else erase_named(*record, from);
  }
  return ok();
}

std::vector<u32> beyond_keep(const std::vector<u32>& numbers, u32 keep) {
  std::vector<u32> gone;
  if (numbers.empty()) return gone;
  std::size_t kept = 0;
  for (auto number = numbers.rbegin() + 1; number != numbers.rend(); ++number)
    if (*number != 0 && ++kept > keep) gone.push_back(*number);
  std::ranges::reverse(gone);
  return gone;
}

Result<Swept> delete_records(State& state, const std::vector<u32>& gone, const KnownTrees& known) {
  Swept swept;
  os::Files& files = state.files();
  for (const u32 number : gone) {
    auto deleted = files.unlink(state.fd(), record_path(number));
    if (!deleted && deleted.error().sys_errno != ENOENT) return std::move(deleted).error();
  }
  TRY(const os::Fd records, os::open_dir(state.fd(), kRecordsDir));
  // DURABILITY: before any content goes, else a power cut could bring back a record whose contents are gone.
  TRY_STATUS(files.fsync(records.get(), kRecordsDir));
  TRY(const auto pool, list_pool(state.fd()));
  if (pool.empty()) return swept;
  TRY(const auto numbers, record_numbers(state.fd()));
  Contents unnamed(pool.begin(), pool.end());
  TRY_STATUS(erase_named(state, numbers, known, unnamed));
  for (const ContentId& id : unnamed) {
    TRY_STATUS(files.unlink(state.fd(), content_path(id)));
    ++swept.contents;
    swept.bytes += id.size;
  }
  return swept;
}

}  // namespace envsync::store
