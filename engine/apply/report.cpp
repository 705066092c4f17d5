// SPDX-License-Identifier: MIT
#include "apply/report.hpp"

#include <set>

namespace envsync::apply {

namespace {

bool has_succeeded(const Outcome& outcome) {
  if (outcome.error) return false;
  return outcome.kind == OutcomeKind::applied || outcome.kind == OutcomeKind::unchanged || outcome.kind == OutcomeKind::skipped;
}

}  // namespace

int exit_code(const std::string& verb, const std::vector<Outcome>& outcomes) {
  std::set<int> codes;
  bool has_success = false, differs = false;
  for (const Outcome& outcome : outcomes) {
    // A host that was skipped because another failed says nothing of its own.
    if (outcome.kind == OutcomeKind::skipped && !outcome.error) continue;
    if (outcome.files > 0) differs = true;
    if (has_succeeded(outcome)) has_success = true;
    else codes.insert(outcome.error ? info(outcome.error->code).exit_code : 1);
  }
  if (codes.empty()) return verb == "verify" && differs ? 4 : 0;
  if (has_success) return 3;
  return codes.size() == 1 ? *codes.begin() : 1;
}

SummaryEvent summarize(const std::string& verb, const Report& report, double seconds) {
  SummaryEvent summary;
  summary.verb = verb;
  summary.run = report.run;
  summary.exit_code = report.exit_code;
  summary.seconds = seconds;
  for (const Outcome& outcome : report.outcomes) {
    if ((verb == "verify" || verb == "status") && outcome.files > 0) ++summary.differing;
    switch (outcome.kind) {
      case OutcomeKind::applied: ++summary.applied; break;
      case OutcomeKind::unchanged: ++summary.unchanged; break;
      case OutcomeKind::failed: ++summary.failed; break;
      case OutcomeKind::refused: ++summary.refused; break;
      case OutcomeKind::rolled_back: ++summary.rolled_back; break;
      case OutcomeKind::skipped: ++summary.skipped; break;
    }
  }
  return summary;
}

}  // namespace envsync::apply
