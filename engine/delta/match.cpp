// SPDX-License-Identifier: MIT
#include "delta/match.hpp"

#include <algorithm>
#include <bit>

namespace envsync::delta {

BaseIndex::BaseIndex(const std::vector<ChunkList>& bases) {
  std::size_t count = 0;
  for (const ChunkList& base : bases) count += base.size();
  places_.reserve(count);
  by_name_.reserve(count);
  for (u32 base = 0; base < bases.size(); ++base) {
    begins_.push_back(narrow<u32>(places_.size()));
    u64 offset = 0;
    for (const Chunk& chunk : bases[base]) {
      const u32 place = narrow<u32>(places_.size());
      const auto [first, is_new] = by_name_.try_emplace(chunk.name, place);
      // A list of equal chunks (zeros) would be walked again and again: the first few are enough.
      places_.push_back({base, offset, chunk.length, chunk.name, kNone, false});
      if (!is_new) {
        places_[place].next = places_[first->second].next;
        places_[first->second].next = place;
      }
      offset += chunk.length;
    }
  }
  begins_.push_back(narrow<u32>(places_.size()));
}

/// The place `after` where it has the chunk, so that runs are long; else one of the own base; else any.
u32 BaseIndex::place_of(const Chunk& chunk, u32 own, u32 after) const {
  constexpr int kTriesMax = 8;
  if (after < places_.size() && places_[after].name == chunk.name && places_[after].length == chunk.length) return after;
  const auto found = by_name_.find(chunk.name);
  if (found == by_name_.end()) return kNone;
  u32 best = kNone;
  u32 at = found->second;
  for (int tries = 0; at != kNone && tries < kTriesMax; ++tries, at = places_[at].next) {
    if (places_[at].length != chunk.length) continue;
    if (places_[at].base == own) return at;
    if (best == kNone) best = at;
  }
  return best;
}

std::vector<Copy> BaseIndex::find(const ChunkList& wanted, u32 own) {
  std::vector<Copy> copies;
  u64 to = 0;
  u32 after = kNone;
  for (const Chunk& chunk : wanted) {
    const u32 at = place_of(chunk, own, after);
    after = kNone;
    if (at != kNone) {
      Place& place = places_[at];
      place.is_used = true;
      places_[by_name_.at(chunk.name)].is_used = true;
      const bool goes_on = !copies.empty() && copies.back().to + copies.back().length == to && copies.back().base == place.base &&
                           copies.back().from + copies.back().length == place.offset;
      if (goes_on) copies.back().length += place.length;
      else copies.push_back({to, place.length, place.base, false, place.offset});
      after = at + 1 < begins_[place.base + 1] ? at + 1 : kNone;
    }
    to += chunk.length;
  }
  return copies;
}

std::vector<Range> BaseIndex::unused(u32 base) const {
  std::vector<Range> out;
  for (u32 at = begins_[base]; at < begins_[base + 1]; ++at) {
    const Place& place = places_[at];
    // The first place of a name is marked whenever any of them was used.
    if (!place.is_used && !places_[by_name_.at(place.name)].is_used) append(out, {place.offset, place.length});
  }
  return out;
}

std::vector<Range> left_over(const std::vector<Copy>& copies, u64 size) {
  std::vector<Range> out;
  u64 end = 0;
  for (const Copy& copy : copies) {
    append(out, {end, copy.to - end});
    end = copy.to + copy.length;
  }
  append(out, {end, size - end});
  return out;
}

std::vector<Copy> intersect(const std::vector<Copy>& copies, const std::vector<Range>& window) {
  std::vector<Copy> out;
  std::size_t j = 0;
  for (const Copy& copy : copies) {
    const u64 copy_end = copy.to + copy.length;
    while (j < window.size() && window[j].end() <= copy.to) ++j;
    for (std::size_t k = j; k < window.size() && window[k].offset < copy_end; ++k) {
      const u64 begin = std::max(copy.to, window[k].offset), end = std::min(copy_end, window[k].end());
      if (copy.by_chunk && (begin != copy.to || end != copy_end)) continue;
      out.push_back({begin, end - begin, copy.base, copy.by_chunk, copy.by_chunk ? copy.from : copy.from + (begin - copy.to)});
    }
  }
  return out;
}

NameIndex::NameIndex(std::vector<u64> names, std::size_t more) : names_(std::move(names)) {
  slots_.assign(std::bit_ceil(2 * (names_.size() + more) + 1), 0);
  mask_ = slots_.size() - 1;
  for (u32 i = 0; i < names_.size(); ++i) place(i);
}

void NameIndex::place(u32 number) {
  std::size_t slot = static_cast<std::size_t>(names_[number]) & mask_;
  while (slots_[slot] != 0 && names_[slots_[slot] - 1] != names_[number]) slot = (slot + 1) & mask_;
  if (slots_[slot] == 0) slots_[slot] = number + 1;
}

void NameIndex::add(u64 name) {
  names_.push_back(name);
  if (2 * names_.size() < slots_.size()) return place(narrow<u32>(names_.size() - 1));
  *this = NameIndex(std::move(names_), names_.size());
}

u32 NameIndex::number_of(u64 name, u32 next) const {
  if (next < names_.size() && names_[next] == name) return next;
  for (std::size_t slot = static_cast<std::size_t>(name) & mask_; slots_[slot] != 0; slot = (slot + 1) & mask_)
    if (names_[slots_[slot] - 1] == name) return slots_[slot] - 1;
  return kNone;
}

namespace {

/// Finds one chunk after the other.
class Answerer {
 public:
  explicit Answerer(const Question& question) : theirs_(question.names), own_({}, 1024) {}

  bool take(u64 offset, ByteView chunk) {
    const u64 name = name_of(chunk);
    const u32 number = theirs_.number_of(name, next_);
    if (number != NameIndex::kNone) {
      const bool goes_on = number == next_ && !out_.empty() && !out_.back().is_own && end() == offset;
      next_ = number + 1;
      next_own_ = NameIndex::kNone;
      return add(goes_on, {offset, chunk.size(), number, false});
    }
    next_ = NameIndex::kNone;
    return take_own(offset, chunk, name);
  }
  std::vector<Found> found() && { return std::move(out_); }

 private:
  u64 end() const { return out_.back().to + out_.back().length; }

  bool take_own(u64 offset, ByteView chunk, u64 name) {
    const u32 number = own_.number_of(name, next_own_);
    if (number == NameIndex::kNone || lengths_[number] != chunk.size()) {
      next_own_ = NameIndex::kNone;
      if (number == NameIndex::kNone) {
        own_.add(name);
        offsets_.push_back(offset);
        lengths_.push_back(narrow<u16>(chunk.size()));
      }
      return offsets_.size() < kNamesMax;
    }
    const u64 from = offsets_[number];
    next_own_ = number + 1;
    const bool goes_on = !out_.empty() && out_.back().is_own && end() == offset && out_.back().from + out_.back().length == from;
    return add(goes_on, {offset, chunk.size(), from, true});
  }

  bool add(bool goes_on, Found found) {
    if (goes_on) out_.back().length += found.length;
    else out_.push_back(found);
    return out_.size() < kNamesMax;
  }

  NameIndex theirs_, own_;
  std::vector<u64> offsets_;  // of own chunks
  std::vector<u16> lengths_;
  u32 next_ = NameIndex::kNone, next_own_ = NameIndex::kNone;
  std::vector<Found> out_;
};

}  // namespace

Result<std::vector<Found>> answer(const ReadAt& read, const Question& question, Grain grain) {
  Answerer answerer(question);
  TRY_STATUS(for_each_chunk(read, question.ranges, grain, [&](u64 offset, ByteView chunk) { return answerer.take(offset, chunk); }));
  return std::move(answerer).found();
}

std::vector<Copy> merged(const std::vector<Copy>& copies, const std::vector<Found>& found, u32 base) {
  std::vector<Copy> out;
  out.reserve(copies.size() + found.size());
  for (const Found& step : found) out.push_back({step.to, step.length, step.is_own ? Copy::kOwn : base, !step.is_own, step.from});
  out.insert(out.end(), copies.begin(), copies.end());
  std::ranges::sort(out, {}, &Copy::to);
  // Steps are the source's word: one that lies on another is left out, and its bytes come as they are.
  std::vector<Copy> clean;
  for (const Copy& copy : out)
    if (clean.empty() || clean.back().to + clean.back().length <= copy.to) clean.push_back(copy);
  return clean;
}

}  // namespace envsync::delta
