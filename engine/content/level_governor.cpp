// SPDX-License-Identifier: MIT
#include "content/pack.hpp"

#include <array>

namespace envsync::content {

namespace {

constexpr std::array kLadder{kRawLevel, -3, -1, 1, 2, 3, 5, 6};
constexpr std::size_t kFirstStep = 4;  // level 2: the packs made before the queue says anything

}  // namespace

LevelGovernor::LevelGovernor(std::optional<int> fixed) : fixed_(fixed), step_(kFirstStep) {}

int LevelGovernor::next(std::size_t queued, std::size_t capacity) {
  if (fixed_) return *fixed_;
  if (queued > 0) is_primed_ = true;
  // Before the first packs could fill the queue, an empty one says nothing about the link.
  if (!is_primed_ && ++calls_ <= capacity) return kLadder[step_];
  if (queued == 0) {
    if (step_ > 0) --step_;
  } else if (queued * 4 >= capacity * 3) {
    if (step_ + 1 < kLadder.size()) ++step_;
  }
  return kLadder[step_];
}

}  // namespace envsync::content
