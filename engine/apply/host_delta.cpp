// SPDX-License-Identifier: MIT
// Which wanted contents go the road of changed files, and what comes whole after all.
#include <algorithm>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "apply/ways.hpp"
#include "delta/base_finder.hpp"

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

/// Bytes of the wanted files of one kind, and of their bases.
std::pair<u64, u64> bytes_of(const std::vector<Changed>& files, bool of_large) {
  std::pair<u64, u64> bytes;
  for (const Changed& file : files) {
    if (is_large(file.item.content.size, file.base_size) != of_large) continue;
    bytes.first += delta::total(file.missing);
    bytes.second += file.base_size;
  }
  return bytes;
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
  DeltaChoice choice{way(), force == "chunks"};
  const auto [large, bases] = bytes_of(changed, true);
  const u64 small = bytes_of(changed, false).first;
  constexpr u64 kWorthAsking = 16u << 20;
  if (choice.way.rate == 0 && !choice.is_forced && large + small >= kWorthAsking) {
    const auto asked = std::chrono::steady_clock::now();
    if (open_put()->finish()) choice.way.round_trip = Seconds(std::chrono::steady_clock::now() - asked).count();  // of nothing
  }
  const delta::Choice by_chunks = delta::choose_coarse(large, bases, choice.way), by_sums = delta::choose_small(small, choice.way);
  explain_choice("large", large, choice.is_forced, by_chunks);
  explain_choice("small", small, choice.is_forced, by_sums);
  std::erase_if(changed, [&](const Changed& file) {
    return !choice.is_forced && !(is_large(file.item.content.size, file.base_size) ? by_chunks : by_sums).is_taken;
  });
  if (changed.empty()) return nullptr;
  std::vector<bool> is_taken(entries.size(), false);
  for (const Changed& file : changed) is_taken[file.item.want] = true;
  for (auto& [place, list] : items) std::erase_if(list, [&](const PullItem& item) { return is_taken[item.want]; });
  std::erase_if(items, [](const auto& one) { return one.second.empty(); });
  return std::make_unique<DeltaRoad>(*run_, *session_->endpoint, choice, std::move(changed), [this](u64 content_bytes) {
    session_->lanes->expect(content_bytes);
    return open_put();
  }, std::move(deliver));
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

/// By the names of both ends: what is between them is what was measured.
std::string HostJob::way_label() const { return fmt::format("{} {}", goal_.source != nullptr ? goal_.source->place().host.name : "", target_->name); }

delta::Way HostJob::way() const {
  delta::Way way = load_way(way_label());
  way.round_trip = session_->endpoint->round_trip();
  if (goal_.source != nullptr) way.round_trip += goal_.source->session().endpoint->round_trip();
  return way;
}

void HostJob::note_rate(double rate) {
  if (rate > 0) keep_way(*run_->files, way_label(), {rate, session_->endpoint->round_trip()});
}

void HostJob::explain(std::string what) const {
  if (run_->options->explain) run_->dispatcher->on(FindingEvent{target_->name, {"travels", Severity::note, "", std::move(what)}});
}

void HostJob::explain_choice(std::string_view kind, u64 bytes, bool is_forced, const delta::Choice& choice) const {
  if (bytes == 0) return;
  const std::string_view how = kind == "large" ? "as chunks" : "as differences";
  explain(fmt::format("{} of changed {} files with an older version on {}: {} ({})", human_bytes(bytes), kind, target_->name,
                      is_forced || choice.is_taken ? how : "whole", is_forced ? "asked for" : choice.why));
}

void HostJob::explain_deltas(const DeltaCounts& counts) const {
  if (counts.files > 0) {
    explain(fmt::format("large files ({}, {}): {} by chunks of 64 KiB, {} by chunks of {}, {} repeated, {} sent", counts.files, human_bytes(counts.bytes),
                        human_bytes(counts.copied_coarse), human_bytes(counts.copied_fine),
                        !counts.grain ? "no smaller size" : *counts.grain == delta::Grain::fine ? "1 KiB" : "512 B", human_bytes(counts.repeated), human_bytes(counts.literal)));
    explain(fmt::format("smaller chunks: {} ({})", counts.grain ? "used" : "not used", counts.why_fine));
  }
  if (counts.small_files > 0)
    explain(fmt::format("small files ({}, {}): differences of {} sent", counts.small_files, human_bytes(counts.small_bytes), human_bytes(counts.small_sent)));
}

}  // namespace envsync::apply
