// SPDX-License-Identifier: MIT
// The lines that say what is true now: outcomes, states, generations, differences, what was pruned.
#pragma once

#include <string>

#include <envsync/event.hpp>

#include "cli/view.hpp"

namespace envsync::cli {

struct OutcomeContext {
  std::string restored;         // a rollback: whose tree is back, as its plan put it
  u64 differences = 0;          // verify: paths that differ
};

/// The closing line of one host that succeeded, with its newline; empty where a verb has none.
std::string outcome_text(const Outcome& outcome, const View& view, const Palette& palette, const OutcomeContext& context);
/// The closing line of one host that did not, after its error.
std::string failure_text(const Outcome& outcome, const View& view, const Palette& palette);
/// What the error of an outcome does not say itself: the state now, generated from the outcome.
Error with_state(Error error, const Outcome& outcome);
/// Figures of one host for --verbose: seconds per phase, bytes on the wire, read and written.
std::string figures_text(const Outcome& outcome);
std::string status_text(const StatusEvent& status, const View& view, const Palette& palette);
std::string generation_text(const GenerationEvent& generation, const View& view, const Palette& palette);
std::string pruned_text(const PrunedEvent& pruned, const View& view, const Palette& palette);

}  // namespace envsync::cli
