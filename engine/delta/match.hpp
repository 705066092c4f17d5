// SPDX-License-Identifier: MIT
// Finding what a base has of a wanted file, by the names of chunks.
#pragma once

#include <unordered_map>

#include "delta/lists.hpp"

namespace envsync::delta {

/// The chunks of all bases, numbered as they were given; any of them may serve any wanted file.
class BaseIndex {
 public:
  explicit BaseIndex(const std::vector<ChunkList>& bases);

  /// What the bases have of a file that is cut into `wanted`, ascending; a run of chunks that lie together is one copy. `own`: the base
  /// that is tried first. What was taken is noted.
  std::vector<Copy> find(const ChunkList& wanted, u32 own);
  /// What of a base no find() took, nor any chunk equal to it.
  std::vector<Range> unused(u32 base) const;

 private:
  static constexpr u32 kNone = ~u32{0};
  struct Place { u32 base = 0; u64 offset = 0; u32 length = 0; u64 name = 0; u32 next = kNone; bool is_used = false; };
  u32 place_of(const Chunk& chunk, u32 own, u32 after) const;

  std::vector<Place> places_;                // of each base, in order
  std::vector<u32> begins_;                  // of each base in places_, and the end
  std::unordered_map<u64, u32> by_name_;     // the first place; others follow by `next`
};

/// What of [0, size) the copies leave.
std::vector<Range> left_over(const std::vector<Copy>& copies, u64 size);
/// What of the copies lies in `window`. Copies by chunk are cut only at chunk boundaries that nobody here knows: those that do not lie in
/// it whole are left out.
std::vector<Copy> intersect(const std::vector<Copy>& copies, const std::vector<Range>& window);

/// The first of each name in a list, which may grow behind it.
class NameIndex {
 public:
  static constexpr u32 kNone = ~u32{0};
  /// With room for `more` names that are added.
  explicit NameIndex(std::vector<u64> names, std::size_t more = 0);
  /// `next`, where that has the name.
  u32 number_of(u64 name, u32 next) const;
  void add(u64 name);

 private:
  void place(u32 number);
  std::vector<u64> names_;
  std::vector<u32> slots_;                   // open addressing: 1 + number, 0: free
  std::size_t mask_ = 0;
};

/// Cuts what is asked for and finds each chunk among the question's names, or else among those before it in the same file that were found
/// nowhere. Runs are one step.
Result<std::vector<Found>> answer(const ReadAt& read, const Question& question, Grain grain);

/// Copies of chunks that a recipe found, between those that are there already. Both ascending.
std::vector<Copy> merged(const std::vector<Copy>& copies, const std::vector<Found>& found, u32 base);

}  // namespace envsync::delta
