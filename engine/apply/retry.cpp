// SPDX-License-Identifier: MIT
// A connection that is lost is made anew and the host is planned again: the stat caches make that cheap, and what had arrived lies in the
// target's staging, from where the next attempt takes it.
#include <algorithm>

#include <fmt/format.h>

#include "apply/host_job.hpp"

namespace envsync::apply {

namespace {

constexpr Seconds kFirstPause{1}, kPauseMax{30};

/// A connection that was never there is not lost: a host that cannot be reached at all fails at once.
bool may_go_on(const Run& run, const manifest::Host& host, const Goal& goal, const Outcome& outcome) {
  if (goal.ending != Ending::commit || !outcome.error || run.stop.stop_requested()) return false;
  const auto is_far = [](const manifest::Overlay& overlay) { return !overlay.from.host.is_local; };
  const bool is_remote = !host.is_local || !run.manifest->source.host.is_local || std::ranges::any_of(run.manifest->overlays, is_far);
  return is_remote && (goal.is_retry ? is_network_error(*outcome.error) : outcome.error->code == ErrorCode::connection_lost);
}

void add_earlier(Outcome& outcome, const Outcome& earlier) {
  outcome.bytes_up += earlier.bytes_up;
  outcome.bytes_down += earlier.bytes_down;
  outcome.bytes_read += earlier.bytes_read;
  outcome.bytes_written += earlier.bytes_written;
  outcome.seconds.insert(outcome.seconds.begin(), earlier.seconds.begin(), earlier.seconds.end());
}

void tell(Run& run, const manifest::Host& host, const Outcome& outcome, Seconds pause) {
  Error error{ErrorCode::connection_lost, fmt::format("{}; trying again in {:.0f} s", outcome.error->what, pause.count())};
  error.causes = outcome.error->causes;
  run.dispatcher->on(ProblemEvent{host.name, Severity::warning, std::move(error).note("what came so far is kept")});
}

}  // namespace

Outcome mirror_host(Run& run, const manifest::Host& host, Goal goal) {
  const Seconds patience{static_cast<double>(run.manifest->settings.retry_for_seconds)};
  Outcome earlier;
  std::optional<Deadline> give_up;
  for (Seconds pause = kFirstPause;;) {
    HostJob job(run, host, goal);
    Outcome outcome = job.work();
    add_earlier(outcome, earlier);
    if (!may_go_on(run, host, goal, outcome)) return outcome;
    if (job.moved() > 0) {  // the link worked meanwhile
      give_up.reset();
      pause = kFirstPause;
    }
    if (!give_up) give_up = deadline_in(patience);
    if (deadline_in(pause) > *give_up) return outcome;
    tell(run, host, outcome, pause);
    if (!wait_until(deadline_in(pause), run.stop)) return outcome;
    pause = std::min(pause * 2, kPauseMax);
    earlier = std::move(outcome);
    goal.is_retry = true;
    goal.consent = job.given();
    goal.source = goal.source != nullptr ? &goal.source->live() : nullptr;
    for (Layer& layer : goal.layers)
      if (layer.origin != nullptr) layer.origin = &layer.origin->live();
  }
}

}  // namespace envsync::apply
