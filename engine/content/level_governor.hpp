// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/bytes.hpp"
#include "base/clock.hpp"

namespace envsync::content {

/// Chooses the level of the next pack by climbing: content bytes a second are measured over some packs, then a neighbouring level is
/// tried, and kept where it brings more. This needs no model of who shares the cores, of the link, or of the receiver. A trial that
/// brought nothing makes the next one later.
class LevelGovernor {
 public:
  /// `first`: the level to begin with where the link is known to be slow, and to go below only where the cores are too weak for it:
  /// a moment in which they have other things to do would cost bytes for long.
  explicit LevelGovernor(std::optional<int> fixed = std::nullopt, std::optional<int> first = std::nullopt);
  /// Of the next pack.
  int level() const;
  /// A pack of `level` with `content` bytes left: how long the sender waited for it to be made, and how long sending took.
  void sent(int level, u64 content, Seconds waited, Seconds sending);

 private:
  struct Window { u64 packs = 0, content = 0; double waited = 0, sending = 0; };
  void judge(const Window& window);
  void begin_trial(const Window& window);

  std::optional<int> fixed_;
  std::size_t home_, step_;   // of the ladder: the best so far, and the one in use
  double home_rate_ = 0;      // bytes of content a second; 0: not measured yet
  Window window_;             // of packs of the level in use
  unsigned pause_ = 1;        // windows at home between two trials
  unsigned until_trial_ = 1;
  std::size_t floor_ = 0;
  bool has_failed_ = false;   // the last trial
  int last_way_ = 0;
};

}  // namespace envsync::content
