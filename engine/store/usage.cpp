// SPDX-License-Identifier: MIT
// What a state takes on disk and what recovery would do with it: looks only.
#include <algorithm>
#include <unordered_map>

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

Result<std::vector<State::Holding>> State::holdings(const tree::Tree& live) const {
  std::vector<Holding> holdings;
  if (!exists()) return holdings;
  TRY(const auto pool, list_pool(fd()));
  TRY(const auto numbers, record_numbers(fd()));
  Contents living;
  for (const tree::Entry& entry : live.entries())
    if (const tree::File* file = entry.file()) living.insert(file->content());
  constexpr std::size_t kShared = ~std::size_t{0};
  std::unordered_map<ContentId, std::size_t, content::ContentIdHash> holder;  // of a pooled content: the only holding that names it
  const Contents pooled(pool.begin(), pool.end());
  bool has_damaged = false;
  for (const u32 number : numbers) {
    const auto record = load(number);
    if (!record && record.error().code != ErrorCode::corrupt) return record.error();
    has_damaged = has_damaged || !record;
    if (!record) continue;
    const std::size_t index = holdings.size();
    Holding& holding = holdings.emplace_back(Holding{number});
    Contents seen;
    const auto look = [&](const tree::Tree& tree, bool counts_missing) {
      for (const tree::Entry& entry : tree.entries()) {
        const tree::File* file = entry.file();
        if (file == nullptr || !seen.insert(file->content()).second) continue;
        if (pooled.contains(file->content())) {
          const auto [at, is_first] = holder.try_emplace(file->content(), index);
          if (!is_first) at->second = kShared;
        } else if (counts_missing && !living.contains(file->content())) {
          ++holding.missing;
        }
      }
    };
    look(record->tree, true);
    if (record->ground) look(*record->ground, false);  // it can be restored without what overlays would be laid onto
  }
  // What a damaged record names is not known: nothing is then only another one's.
  if (has_damaged) return holdings;
  for (const auto& [content, index] : holder)
    if (index != kShared) holdings[index].exclusive_bytes += content.size;
  return holdings;
}

Result<State::Moment> State::moment() const {
  Moment moment;
  if (place().parent) {
    TRY(const auto stat, os::stat_if_exists(place().parent.get(), place().name));
    if (stat) moment.environment = stat->ino;
  }
  if (!exists()) return moment;
  TRY(const auto numbers, record_numbers(fd()));
  if (!numbers.empty()) moment.current = numbers.back();
  TRY(const auto transactions, staging_names(fd()));
  // Without a holder an interrupted run lies there as it will until somebody recovers.
  if (transactions.empty() || lock_holder().empty()) return moment;
  for (const std::string& tx : transactions) {
    const auto dir = os::open_dir(fd(), staging_path(tx));
    if (!dir) continue;
    const auto parsed = Journal::peek(dir->get());
    if (!parsed || !parsed->terms) continue;
    const bool has_record = std::ranges::binary_search(numbers, parsed->terms->number);
    moment.committing = moment.committing || parsed->last == Last::prepared || parsed->last == Last::committed || parsed->last == Last::reverting ||
                        (parsed->last == Last::accepting && !has_record);
  }
  return moment;
}

}  // namespace envsync::store
