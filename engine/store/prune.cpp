// SPDX-License-Identifier: MIT
// Generations that are asked to go, contents that only they name, and what earlier runs left behind.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "store/discard.hpp"
#include "store/journal.hpp"
#include "store/pool.hpp"
#include "store/record.hpp"
#include "store/standing.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {
namespace {

Result<std::vector<u32>> chosen(const State& state, const PruneRequest& request, const std::vector<u32>& numbers) {
  std::vector<u32> gone;
  if (request.keep) gone = beyond_keep(numbers, *request.keep);
  for (const u32 number : request.drop) {
    if (!std::ranges::binary_search(numbers, number))
      return Error(ErrorCode::no_generation, fmt::format("generation {} of '{}' is not kept", number, printable(state.place().path)));
    if (number == numbers.back())
      return Error(ErrorCode::usage, fmt::format("generation {} is the current one of '{}'", number, printable(state.place().path)))
          .hint("`envsync prune --all` forgets all generations and leaves the environment as it is");
    gone.push_back(number);
  }
  std::ranges::sort(gone);
  gone.erase(std::ranges::unique(gone).begin(), gone.end());
  return gone;
}

Result<u64> record_bytes(const State& state, const std::vector<u32>& numbers) {
  u64 bytes = 0;
  for (const u32 number : numbers) {
    TRY(const auto stat, os::stat_if_exists(state.fd(), record_path(number)));
    if (stat) bytes += stat->size;
  }
  return bytes;
}

/// Leftovers go; a displaced tree in which somebody stands stays for a later run.
Result<void> delete_leftovers(State& state) {
  TRY(const auto names, staging_names(state.fd()));
  CacheMoves none(nullptr);  // recovery has taken the links of live files away
  for (const std::string& name : names)
    if (standing_in(staging_path(name)).empty()) TRY_STATUS(discard_tree(state.files(), state.fd(), staging_path(name), {}, none));
  return ok();
}

Result<void> check_unused(const State& state) {
  TRY(const auto names, staging_names(state.fd()));
  for (const std::string& name : names) {
    const auto users = standing_in(staging_path(name));
    if (!users.empty())
      return Error(ErrorCode::in_use, fmt::format("the tree before of '{}' cannot be deleted", printable(state.place().path))).cause(users.front());
  }
  return ok();
}

/// The folder of this environment, and the one above it if it was the last in there.
Result<void> delete_state(State& state) {
  const Place& place = state.place();
  os::Files& files = state.files();
  const std::string rel = fmt::format("{}/{}", place.state_name, place.name);
  TRY_STATUS(os::remove_tree(files, place.parent.get(), rel));
  auto outer = files.rmdir(place.parent.get(), place.state_name);
  if (!outer && outer.error().sys_errno != ENOTEMPTY && outer.error().sys_errno != EEXIST) return outer;
  return ok();
}

}  // namespace

Result<Pruned> prune(State& state, Lock lock, const PruneRequest& request) {
  Pruned pruned;
  if (!state.exists()) return pruned;
  TRY_STATUS(recover(state, lock));
  TRY(const auto numbers, record_numbers(state.fd()));
  TRY(const auto usage, state.usage());
  if (request.all) {
    TRY_STATUS(check_unused(state));
    TRY(const u64 records, record_bytes(state, numbers));
    TRY(const auto pool, list_pool(state.fd()));
    TRY_STATUS(delete_state(state));
    pruned = {numbers, pool.size(), usage.pool_bytes + usage.leftover_bytes + records};
    return pruned;
  }
  TRY(pruned.generations, chosen(state, request, numbers));
  TRY(pruned.bytes_freed, record_bytes(state, pruned.generations));
  TRY_STATUS(delete_leftovers(state));
  TRY(const auto after, state.usage());
  TRY(const Swept swept, delete_records(state, pruned.generations, {}));
  pruned.contents = swept.contents;
  pruned.bytes_freed += swept.bytes + (usage.leftover_bytes - std::min(usage.leftover_bytes, after.leftover_bytes));
  return pruned;
}

Result<u32> adopt(State& state, const Lock&, RecordHead head, const tree::Tree& observed, const tree::Tree* ground) {
  ENVSYNC_CHECK(state.exists());
  if (observed.is_absent())
    return Error(ErrorCode::protocol, fmt::format("there is nothing at '{}' to record", printable(state.place().path)));
  TRY(const auto numbers, record_numbers(state.fd()));
  head.number = numbers.empty() ? 0 : numbers.back() + 1;
  head.adopted = true;
  head.root = observed.root(head.policy);
  head.full = observed.full();
  if (ground != nullptr && ground->full() == head.full) ground = nullptr;
  head.ground = ground != nullptr ? ground->full() : content::Digest{};
  head.files = observed.file_count();
  head.bytes = observed.content_bytes();
  // Through a name of its own, so that no reader meets half a record among the others.
  os::Files& files = state.files();
  const std::string temporary = fmt::format("{}.new", kRecordsDir);
  auto gone = files.unlink(state.fd(), temporary);
  if (!gone && gone.error().sys_errno != ENOENT) return std::move(gone).error();
  TRY_STATUS(write_record(files, state.fd(), temporary, head, observed, ground));
  TRY_STATUS(files.rename(state.fd(), temporary, state.fd(), record_path(head.number)));
  TRY(const os::Fd dir, os::open_dir(state.fd(), kRecordsDir));
  // DURABILITY: the number is told to the user.
  TRY_STATUS(files.fsync(dir.get(), kRecordsDir));
  return head.number;
}

}  // namespace envsync::store
