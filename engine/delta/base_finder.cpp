// SPDX-License-Identifier: MIT
#include "delta/base_finder.hpp"

#include <algorithm>

namespace envsync::delta {

namespace {

/// Bytes in common at the end, and at the begin of what is before: `python3.11/x/a.py` and `python3.12/x/a.py` share all but a digit.
std::size_t in_common(std::string_view a, std::string_view b) {
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const auto at_end = std::mismatch(a.rbegin(), a.rbegin() + shorter, b.rbegin()).first - a.rbegin();
  const auto at_begin = std::mismatch(a.begin(), a.begin() + (shorter - at_end), b.begin()).first - a.begin();
  return static_cast<std::size_t>(at_end + at_begin);
}

}  // namespace

BaseFinder::BaseFinder(const tree::Tree& have) : have_(&have) {
  for (const tree::Entry& entry : have.entries())
    if (entry.file() != nullptr && entry.file()->size > 0) by_name_[entry.path.name()].push_back(&entry);
}

const tree::Entry* BaseFinder::find(const tree::RelPath& path, u64 size) const {
  constexpr std::size_t kTriesMax = 512;  // LIMIT: a name like __init__.py is everywhere
  const tree::Entry* same = have_->find(path);
  if (same != nullptr && same->file() != nullptr && same->file()->size > 0) return same;
  const auto named = by_name_.find(path.name());
  if (named == by_name_.end()) return nullptr;
  const tree::Entry* best = nullptr;
  std::size_t most = 0;
  for (std::size_t i = 0; i < std::min(kTriesMax, named->second.size()); ++i) {
    const tree::Entry* entry = named->second[i];
    const u64 there = entry->file()->size;
    if (there > 2 * size || there < size / 2) continue;
    const std::size_t common = in_common(entry->path.bytes(), path.bytes());
    if (best != nullptr && common <= most) continue;
    best = entry;
    most = common;
  }
  return best;
}

}  // namespace envsync::delta
