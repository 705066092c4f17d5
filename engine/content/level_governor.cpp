// SPDX-License-Identifier: MIT
#include "content/level_governor.hpp"

#include <algorithm>
#include <array>

#include "content/pack.hpp"

namespace envsync::content {

namespace {

constexpr std::array kLadder{kRawLevel, -7, -3, 1, 3, 6, 9};
constexpr std::size_t kFirstStep = 3;

// A window is long enough to even out what files differ in, and short enough that a slow link is not left at a wrong level for long.
constexpr u64 kWindowPacks = 8, kWindowPacksMin = 2;
constexpr double kWindowSeconds = 2;
constexpr double kBetter = 1.05;      // a trial must bring so much: the same packs vary by about as much
constexpr double kNewest = 0.5;       // weight of the newest window in the rate at home
constexpr double kNearlyAll = 4;      // times as long waited for packs as for the link,
constexpr double kWeakCores = 25e6;   // and so few bytes a second: only then is a level too hard for the cores
constexpr unsigned kPauseMax = 64;

}  // namespace

LevelGovernor::LevelGovernor(std::optional<int> fixed, std::optional<int> first) : fixed_(fixed), home_(kFirstStep), step_(kFirstStep) {
  const auto known = first ? std::ranges::find(kLadder, *first) : kLadder.end();
  if (known != kLadder.end()) floor_ = home_ = step_ = static_cast<std::size_t>(known - kLadder.begin());
}

int LevelGovernor::level() const { return fixed_ ? *fixed_ : kLadder[step_]; }

void LevelGovernor::sent(int level, u64 content, Seconds waited, Seconds sending) {
  if (fixed_ || level != kLadder[step_]) return;  // made before the level changed
  ++window_.packs;
  window_.content += content;
  window_.waited += waited.count();
  window_.sending += sending.count();
  const bool is_slow = window_.waited + window_.sending >= kWindowSeconds && window_.packs >= kWindowPacksMin;
  if (window_.packs >= kWindowPacks || is_slow) judge(std::exchange(window_, {}));
}

void LevelGovernor::judge(const Window& window) {
  const double rate = static_cast<double>(window.content) / std::max(window.waited + window.sending, 1e-6);
  if (step_ == home_) {
    home_rate_ = home_rate_ == 0 ? rate : home_rate_ + kNewest * (rate - home_rate_);
    if (--until_trial_ == 0) begin_trial(window);
    return;
  }
  has_failed_ = rate < home_rate_ * kBetter;
  if (has_failed_) {
    step_ = home_;
    pause_ = std::min(pause_ * 2, kPauseMax);
  } else {
    home_ = step_;
    home_rate_ = rate;
    pause_ = 1;
  }
  until_trial_ = pause_;
}

/// Towards the side that has time: less compression where the sender waited for packs, more where packs waited for the link. After
/// a trial that failed, the other way.
void LevelGovernor::begin_trial(const Window& window) {
  int way = window.waited > window.sending ? -1 : 1;
  if (has_failed_) way = -last_way_;
  const double seconds = window.waited + window.sending;
  const bool is_starved = window.waited > kNearlyAll * window.sending && static_cast<double>(window.content) < kWeakCores * seconds;
  const bool is_held = home_ <= floor_ && !is_starved;
  if (way < 0 && (home_ == 0 || is_held)) way = 1;
  if (way > 0 && home_ + 1 == kLadder.size()) way = -1;
  last_way_ = way;
  step_ = way > 0 ? home_ + 1 : home_ - 1;
}

}  // namespace envsync::content
