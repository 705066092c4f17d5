// SPDX-License-Identifier: MIT
// What a state takes on disk and what recovery would do with it: looks only.
#include <fmt/format.h>

#include "store/journal.hpp"
#include "store/pool.hpp"
#include "store/record.hpp"
#include "store/settle.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {
namespace {

/// Bytes on disk that only this folder holds.
Result<u64> bytes_below(int at, const std::string& rel) {
  u64 total = 0;
  std::vector<std::string> folders{rel};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    TRY(const os::Fd dir, os::open_dir(at, folder));
    TRY(const auto entries, os::list(dir.get(), folder));
    for (const auto& entry : entries) {
      TRY(const auto stat, os::stat_if_exists(dir.get(), entry.name));
      if (!stat) continue;
      if (stat->kind == os::Kind::directory) folders.push_back(folder + "/" + entry.name);
      else if (stat->nlink <= 1) total += stat->blocks * 512;
    }
  }
  return total;
}

std::string journal_state(const State& state, const std::vector<std::string>& transactions) {
  for (const std::string& tx : transactions) {
    auto dir = os::open_dir(state.fd(), staging_path(tx));
    if (!dir) continue;
    const auto text = what_recovery_does(state.place(), dir->get());
    if (!text.empty()) return text;
  }
  return "clean";
}

}  // namespace

Result<State::Usage> State::usage() const {
  Usage usage;
  usage.journal_state = "clean";
  if (!exists()) return usage;
  TRY(const auto pool, list_pool(fd()));
  for (const ContentId& id : pool) usage.pool_bytes += id.size;
  TRY(const auto transactions, staging_names(fd()));
  for (const std::string& tx : transactions) {
    TRY(const u64 bytes, bytes_below(fd(), staging_path(tx)));
    usage.leftover_bytes += bytes;
  }
  usage.journal_state = journal_state(*this, transactions);
  return usage;
}

Result<u64> State::exclusive_bytes(u32 number) const {
  if (!exists()) return u64{0};
  TRY(const auto pool, list_pool(fd()));
  if (pool.empty()) return u64{0};
  TRY(auto numbers, record_numbers(fd()));
  TRY(const Record record, load(number));
  Contents theirs(pool.begin(), pool.end()), ours;
  erase_named(record.tree, theirs);
  for (const ContentId& id : pool)
    if (!theirs.contains(id)) ours.insert(id);
  std::erase(numbers, number);
  TRY_STATUS(erase_named(*this, numbers, {}, ours));
  u64 bytes = 0;
  for (const ContentId& id : ours) bytes += id.size;
  return bytes;
}

}  // namespace envsync::store
