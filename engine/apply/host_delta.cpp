// SPDX-License-Identifier: MIT
// Which wanted contents go the road of changed files, and what comes whole after all.
#include <algorithm>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "delta/base_finder.hpp"
#include "delta/rsync.hpp"

namespace envsync::apply {

using format::PullItem;

namespace {

/// What of a content the items ask for, which are all of it or some of its segments.
std::vector<delta::Range> asked_for(std::span<const PullItem> items) {
  std::vector<delta::Range> out;
  for (const PullItem& item : items) {
    const u64 size = item.content.size;
    const u64 begin = item.first * content::kSegmentBytes;
    const u64 end = item.count == 0 ? size : std::min(size, begin + item.count * content::kSegmentBytes);
    delta::append(out, {begin, end - begin});
  }
  return out;
}

delta::Load load_of(const std::vector<Changed>& files) {
  delta::Load load;
  for (const Changed& file : files) {
    const bool is_large = file.item.content.size > delta::kRsyncFileMax || file.base_size > delta::kRsyncFileMax;
    (is_large ? load.large_bytes : load.small_bytes) += file.item.content.size;
    (is_large ? load.large_files : load.small_files) += 1;
    if (is_large) load.base_bytes += file.base_size;
  }
  return load;
}

}  // namespace

/// Moves those that go by deltas out of `items`.
std::unique_ptr<DeltaRoad> HostJob::choose_deltas(std::map<Source*, std::vector<PullItem>>& items, DeltaRoad::Deliver deliver) {
  const std::string force = run_->options->force_origin.value_or("");
  if (observed_.is_absent() || is_rollback() || (!force.empty() && force != "chunks")) return nullptr;
  const delta::BaseFinder finder(observed_);
  std::vector<Changed> changed;
  const auto entries = plan_->desired.entries();
  for (const auto& [place, list] : items) {
    for (std::size_t i = 0, end = 0; place != nullptr && i < list.size(); i = end) {
      while (end < list.size() && list[end].want == list[i].want) ++end;
      const tree::Entry* base = list[i].content.size > 0 ? finder.find(entries[list[i].want].path, list[i].content.size) : nullptr;
      if (base == nullptr) continue;
      PullItem whole{list[i].want, list[i].path, list[i].content, 0, 0};
      changed.push_back({std::move(whole), place, asked_for(std::span(list).subspan(i, end - i)), base->path, base->file()->size});
    }
  }
  const delta::Roads roads = force == "chunks" ? delta::forced() : delta::choose(load_of(changed), way());
  std::erase_if(changed, [&](const Changed& file) {
    const bool is_large = file.item.content.size > delta::kRsyncFileMax || file.base_size > delta::kRsyncFileMax;
    return is_large ? !roads.coarse : !roads.small;
  });
  if (changed.empty()) return nullptr;
  std::vector<bool> is_taken(entries.size(), false);
  for (const Changed& file : changed) is_taken[file.item.want] = true;
  for (auto& [place, list] : items) std::erase_if(list, [&](const PullItem& item) { return is_taken[item.want]; });
  std::erase_if(items, [](const auto& one) { return one.second.empty(); });
  return std::make_unique<DeltaRoad>(*run_, *session_->endpoint, roads, std::move(changed), [this] { return open_put(); }, std::move(deliver));
}

/// What was built, now or before a cut, may have become another content: of that all comes again, once. And what was lost with a
/// connection, as often as one is lost.
Result<void> HostJob::pull_lacking(Delivery& delivery) {
  constexpr int kRoundsMax = 3;  // what is left of it, all of it, and what then fails has told why
  for (int round = 0; round < kRoundsMax;) {
    TRY(const format::LackReply lack, session_->endpoint->lack(run_->stop));
    if (lack.wanted.empty()) return ok();
    TRY(const auto items, items_of(lack.wanted, lack.missing));
    delivery.put = open_put();
    delivery.arrived = Arrived::all;
    for (const auto& [place, list] : items) TRY_STATUS(place != nullptr ? pull_from(*place, list, delivery) : put_made(list, delivery));
    TRY(const Lanes::Put::Done written, delivery.put->finish());
    if (written.arrived == Arrived::all && delivery.arrived == Arrived::all) ++round;
  }
  return ok();
}

delta::Way HostJob::way() const { return {}; }

}  // namespace envsync::apply
