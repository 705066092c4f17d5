// SPDX-License-Identifier: MIT
#include "apply/delta_road.hpp"

#include <algorithm>
#include <future>

#include "content/pack.hpp"
#include "delta/rsync.hpp"

namespace envsync::apply {

using delta::Grain;
using format::DeltaStep;

namespace {

constexpr u64 kRoundBytes = 64u << 20;  // LIMIT: content of one exchange about small files

Error odd_answer() { return {ErrorCode::protocol, "an agent answered for other files than it was asked about"}; }

bool is_large(const Changed& file) { return apply::is_large(file.item.content.size, file.base_size); }

u8 grain_of(Grain grain) { return static_cast<u8>(grain); }

}  // namespace

bool is_large(u64 size, u64 base_size) { return size > delta::kRsyncFileMax || base_size > delta::kRsyncFileMax; }

/// What the copies give and what is left, within what is missing.
void DeltaRoad::Plan::settle() {
  const u64 size = file->item.content.size;
  // A file that changed since it was scanned has other chunks than it has bytes.
  while (!copies.empty() && copies.back().to + copies.back().length > size) copies.pop_back();
  const std::vector<delta::Range> open = delta::left_over(copies, size);
  copies = delta::intersect(copies, missing);
  rest = delta::intersect(open, missing);
}

Result<DeltaCounts> DeltaRoad::run() {
  // Small ones go beside: while cores cut, the link would be idle.
  auto small = std::async(std::launch::async, [this] { return run_small(); });
  auto large = run_large();
  auto small_done = small.get();
  TRY_STATUS(large);
  TRY_STATUS(small_done);
  return counts_;
}

Result<void> DeltaRoad::run_large() {
  std::map<std::string, u32> numbers;
  for (const Changed& file : files_) {
    if (!is_large(file)) continue;
    const auto [at, is_new] = numbers.try_emplace(file.base.bytes(), narrow<u32>(bases_.size()));
    if (is_new) {
      bases_.push_back(file.base);
      base_sizes_.push_back(file.base_size);
    }
    plans_.push_back({&file, {}, {}, file.missing, at->second});
    ++counts_.files;
    counts_.bytes += delta::total(file.missing);
  }
  if (plans_.empty()) return ok();
  TRY_STATUS(match_coarse());
  if (choice_.way.rate == 0 && !choice_.is_forced) TRY_STATUS(probe());
  if (choose_fine()) TRY_STATUS(match_fine());
  auto copied = std::async(std::launch::async, [this] { return copy(Of::bases); });
  const auto began = std::chrono::steady_clock::now();
  auto pulled = pull(~u64{0});
  TRY_STATUS(copied.get());
  TRY_STATUS(pulled);
  constexpr u64 kTelling = 16u << 20;
  if (pulled->content >= kTelling) counts_.rate = delta::rate_from(pulled->content, pulled->wire, Seconds(std::chrono::steady_clock::now() - began).count());
  return copy(Of::itself);  // of what the packs brought
}

Result<std::vector<delta::ChunkList>> DeltaRoad::base_chunks() {
  std::vector<delta::FileRanges> asked;
  for (std::size_t i = 0; i < bases_.size(); ++i) asked.push_back({bases_[i], {{0, base_sizes_[i]}}});
  TRY(const Bytes answer, target_->delta({DeltaStep::chunks, grain_of(Grain::coarse)}, delta::encode_files(asked), run_->stop));
  TRY(auto lists, delta::decode_chunks(answer, true));
  if (lists.size() != bases_.size()) return odd_answer();
  return lists;
}

Result<std::map<const Changed*, delta::ChunkList>> DeltaRoad::wanted_chunks() {
  std::map<Source*, std::vector<const Changed*>> by_place;
  for (const Plan& plan : plans_) by_place[plan.file->place].push_back(plan.file);
  std::map<const Changed*, delta::ChunkList> out;
  for (const auto& [place, files] : by_place) {
    std::vector<delta::FileRanges> asked;
    for (const Changed* file : files) asked.push_back({file->item.path, {{0, file->item.content.size}}});
    TRY(const Bytes answer, place->session().endpoint->delta({DeltaStep::chunks, grain_of(Grain::coarse)}, delta::encode_files(asked), run_->stop));
    TRY(auto lists, delta::decode_chunks(answer, true));
    if (lists.size() != files.size()) return odd_answer();
    for (std::size_t i = 0; i < files.size(); ++i) out[files[i]] = std::move(lists[i]);
  }
  return out;
}

Result<void> DeltaRoad::match_coarse() {
  auto asked_bases = std::async(std::launch::async, [this] { return base_chunks(); });
  auto wanted = wanted_chunks();
  auto bases = asked_bases.get();
  TRY_STATUS(wanted);
  TRY_STATUS(bases);
  delta::BaseIndex index(*bases);
  for (Plan& plan : plans_) {
    plan.copies = index.find(wanted->at(plan.file), plan.base);
    plan.settle();
    for (const delta::Copy& copy : plan.copies) counts_.copied_coarse += copy.length;
  }
  for (u32 base = 0; base < bases_.size(); ++base) unused_.push_back(index.unused(base));
  return ok();
}

/// Some of the rest, to know the link by.
Result<void> DeltaRoad::probe() {
  constexpr u64 kProbeBytes = 8u << 20;
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  TRY(const Pulled pulled, pull(kProbeBytes));
  const double took = Seconds(Clock::now() - began).count();
  if (pulled.content == kProbeBytes) choice_.way.rate = delta::rate_from(pulled.content, pulled.wire, std::max(took - choice_.way.round_trip, took / 2));
  return ok();
}

bool DeltaRoad::choose_fine() {
  u64 rest = 0, unused = 0;
  for (const Plan& plan : plans_) rest += delta::total(plan.rest);
  for (const auto& ranges : unused_) unused += delta::total(ranges);
  const delta::Choice choice = delta::choose_fine(rest, unused, choice_.way);
  const bool is_taken = choice_.is_forced || choice.is_taken;
  counts_.why_fine = choice_.is_forced ? "asked for" : choice.why;
  grain_ = choice_.is_forced ? Grain::finest : delta::fine_grain(choice_.way);
  if (is_taken) counts_.grain = grain_;
  return is_taken;
}

/// In batches: an agent holds the names of one.
Result<void> DeltaRoad::match_fine() {
  const u64 bytes_max = u64{delta::kNamesMax} / 4 * delta::sizes_of(grain_).average;
  std::vector<Plan*> batch;
  u64 bytes = 0;
  for (Plan& plan : plans_) {
    const u64 rest = delta::total(plan.rest), unused = delta::total(unused_[plan.base]);
    if (rest == 0 || unused == 0) continue;
    if (!batch.empty() && bytes + std::max(rest, unused) > bytes_max) {
      TRY_STATUS(fine_batch(batch));
      batch.clear();
      bytes = 0;
    }
    batch.push_back(&plan);
    bytes += std::max(rest, unused);
  }
  if (!batch.empty()) TRY_STATUS(fine_batch(batch));
  return ok();
}

Result<void> DeltaRoad::fine_batch(std::span<Plan* const> plans) {
  std::vector<u32> asked_bases;
  for (const Plan* plan : plans)
    if (std::ranges::find(asked_bases, plan->base) == asked_bases.end()) asked_bases.push_back(plan->base);
  std::vector<delta::FileRanges> asked;
  for (const u32 base : asked_bases) asked.push_back({bases_[base], unused_[base]});
  TRY(const Bytes answer, target_->delta({DeltaStep::chunks, grain_of(grain_)}, delta::encode_files(asked), run_->stop));
  TRY(auto lists, delta::decode_chunks(answer, false));
  if (lists.size() != asked.size()) return odd_answer();
  std::map<u32, std::vector<u64>> names;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::vector<u64>& list = names[asked_bases[i]];
    list.reserve(lists[i].size());
    for (const delta::Chunk& chunk : lists[i]) list.push_back(chunk.name);
    lists[i] = {};
  }
  std::map<Source*, std::vector<Plan*>> by_place;
  for (Plan* plan : plans) by_place[plan->file->place].push_back(plan);
  for (const auto& [place, list] : by_place) TRY_STATUS(ask_source(*place, list, names));
  return ok();
}

Result<void> DeltaRoad::ask_source(Source& place, const std::vector<Plan*>& plans, const std::map<u32, std::vector<u64>>& names) {
  std::vector<delta::Question> questions;
  for (const Plan* plan : plans) {
    const auto known = names.find(plan->base);
    questions.push_back({plan->file->item.path, plan->rest, known != names.end() ? known->second : std::vector<u64>()});
  }
  TRY(const Bytes answer, place.session().endpoint->delta({DeltaStep::match, grain_of(grain_)}, delta::encode_questions(questions), run_->stop));
  TRY(const auto recipes, delta::decode_recipes(answer));
  if (recipes.size() != plans.size()) return odd_answer();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Plan& plan = *plans[i];
    plan.copies = delta::merged(plan.copies, recipes[i], plan.base);
    plan.settle();
    for (const delta::Copy& copy : plan.copies) {
      if (copy.base == delta::Copy::kOwn) counts_.repeated += copy.length;
      else if (copy.by_chunk) counts_.copied_fine += copy.length;
    }
  }
  return ok();
}

Result<void> DeltaRoad::copy(Of of) {
  delta::CopyPlan all{of == Of::bases ? bases_ : std::vector<tree::RelPath>(), {}};
  std::size_t steps = 0;
  const auto flush = [&]() -> Result<void> {
    if (all.files.empty()) return ok();
    TRY_STATUS(target_->delta({DeltaStep::copy, 0}, delta::encode_copies(all), run_->stop));
    all.files.clear();
    steps = 0;
    return ok();
  };
  for (const Plan& plan : plans_) {
    std::vector<delta::Copy> copies;
    for (const delta::Copy& copy : plan.copies)
      if ((copy.base == delta::Copy::kOwn) == (of == Of::itself)) copies.push_back(copy);
    if (copies.empty()) continue;
    // LIMIT: a list of copies; a file that needs more is lacking in the end, and comes whole.
    if (copies.size() > delta::kNamesMax) copies.resize(delta::kNamesMax);
    if (steps + copies.size() > delta::kNamesMax) TRY_STATUS(flush());
    steps += copies.size();
    all.files.push_back({plan.file->item.want, std::move(copies)});
  }
  return flush();
}

/// What is left of the files, up to so many bytes of it, which then are no more missing.
Result<DeltaRoad::Pulled> DeltaRoad::pull(u64 bytes_max) {
  std::map<Source*, std::vector<format::PullItem>> items;
  Pulled pulled;
  u64& bytes = pulled.content;
  for (Plan& plan : plans_) {
    format::PullItem item = plan.file->item;
    std::vector<delta::Range> taken;
    for (const delta::Range& range : plan.rest) {
      const u64 length = std::min(range.length, bytes_max - bytes);
      if (length == 0) break;
      item.ranges.push_back({range.offset, length});
      delta::append(taken, {range.offset, length});
      bytes += length;
    }
    if (taken.empty()) continue;
    plan.rest = delta::without(plan.rest, taken);
    plan.missing = delta::without(plan.missing, taken);
    plan.file->place->session().lanes->expect(delta::total(taken));
    items[plan.file->place].push_back(std::move(item));
  }
  counts_.literal += bytes;
  if (items.empty()) return pulled;
  const auto put = open_put_(bytes);
  format::PullRequest request;
  request.force_level = run_->options->force_level;
  if (delta::is_slow(choice_.way)) request.first_level = delta::kSlowLevel;
  const auto take = [&](Buffer pack) {
    pulled.wire += pack.size();
    return deliver_(*put, std::move(pack));
  };
  for (const auto& [place, list] : items)
    TRY_STATUS(place->session().lanes->pull(request, list, take, run_->stop));
  TRY_STATUS(put->finish());
  return pulled;
}

Result<void> DeltaRoad::run_small() {
  std::map<Source*, std::vector<const Changed*>> by_place;
  for (const Changed& file : files_)
    if (!is_large(file)) by_place[file.place].push_back(&file);
  for (const auto& [place, files] : by_place) {
    for (std::size_t begin = 0; begin < files.size();) {
      std::size_t end = begin;
      for (u64 bytes = 0; end < files.size() && bytes < kRoundBytes; ++end) bytes += files[end]->item.content.size + files[end]->base_size;
      TRY_STATUS(small_round(*place, std::span(files).subspan(begin, end - begin)));
      begin = end;
    }
  }
  return ok();
}

Result<void> DeltaRoad::small_round(Source& place, std::span<const Changed* const> files) {
  std::vector<delta::Named> bases, wanted, patches;
  for (const Changed* file : files) bases.push_back({file->item.want, file->base, {}});
  TRY(const Bytes signed_list, target_->delta({DeltaStep::signatures, 0}, delta::encode_named(bases, 1), run_->stop));
  TRY(auto signatures, delta::decode_strings(signed_list));
  if (signatures.size() != files.size()) return odd_answer();
  for (std::size_t i = 0; i < files.size(); ++i) wanted.push_back({files[i]->item.want, files[i]->item.path, std::move(signatures[i])});
  TRY(const Bytes made, place.session().endpoint->delta({DeltaStep::differences, 0}, delta::encode_named(wanted, 1), run_->stop));
  TRY(auto differences, delta::decode_strings(made));
  if (differences.size() != files.size()) return odd_answer();
  for (std::size_t i = 0; i < files.size(); ++i) {
    counts_.small_sent += differences[i].size();
    counts_.small_bytes += files[i]->item.content.size;
    patches.push_back({files[i]->item.want, files[i]->base, std::move(differences[i])});
  }
  counts_.small_files += files.size();
  TRY_STATUS(target_->delta({DeltaStep::patch, 0}, delta::encode_named(patches, 9), run_->stop));
  return ok();
}

}  // namespace envsync::apply
