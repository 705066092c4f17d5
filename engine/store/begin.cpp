// SPDX-License-Identifier: MIT
// The first step of a transaction: everything that this host can give is in the staged tree when it ends.
#include <fmt/format.h>

#include "os/process.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kProcessesMax = 20;
constexpr u64 kManyLinks = 1000;

}  // namespace

Result<void> Transaction::Impl::build(const StepSink& sink) {
  TRY_STATUS(open_staging());
  TRY_STATUS(make_folders());
  TRY_STATUS(check_project());
  if (live) {
    TRY(const Spot spot, live_spot(state->place(), begin.commit_root));
    TRY(const auto marker, marker_of(spot.at, spot.name));
    if (marker) terms.base = *marker;
  }
  TRY(const auto marker, marker_of(dir.get(), kNew));
  if (marker) terms.staged = *marker;
  TRY_STATUS(journal.append(Entry::begin, encode_terms(terms)));
  TRY_STATUS(keep_entries(sink));
  TRY_STATUS(link_unmanaged());
  settle_ctimes();
  // Our links moved the ctimes of live files: a run that is killed while it receives must not make the next one read them all.
  if (files_linked > kManyLinks) static_cast<void>(state->save_cache(*cache));
  return find_contents(sink);
}

Result<Transaction> Transaction::begin(State& state, const Lock&, Begin request, scan::Scan observed, scan::StatCache& cache,
                                       const StepSink& sink) {
  ENVSYNC_CHECK(state.exists());
  auto impl = std::make_unique<Impl>();
  Impl& t = *impl;
  t.state = &state;
  t.files = &state.files();
  t.cache = &cache;
  t.begin = std::move(request);
  t.observed = std::move(observed);
  t.dropped = Dropped(t.begin.drop_unmanaged);
  TRY(t.rules.exclude, tree::Exclude::parse(t.begin.head.exclude));
  t.rules.bytecode = t.begin.head.bytecode;
  TRY(t.plan, plan_build(t.begin, t.observed.tree));
  TRY_STATUS(t.open_place());
  TRY_STATUS(t.check_entries());
  TRY_STATUS(t.choose_numbers());
  t.expected = t.observed.stats;
  const std::size_t count = t.desired().size();
  t.staged.assign(count, {});
  t.folder_modes.assign(count, 0);
  t.folder_gids.assign(count, kNoIndex);
  t.folder_changed.assign(count, false);
  TRY_STATUS(t.build(sink));
  t.needs.guarantee = Guarantee::atomic;
  t.needs.linked = t.files_linked;
  t.needs.copied = t.files_copied;
  t.needs.bytes_read = t.bytes_read;
  t.needs.bytes_written = t.bytes_written;
  if (t.live && t.begin.find_users) t.needs.in_use = os::processes_using(state.place().path, kProcessesMax);
  return Transaction(std::move(impl));
}

}  // namespace envsync::store
