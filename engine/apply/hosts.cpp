// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <thread>

#include <fnmatch.h>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "apply/together.hpp"
#include "apply/ship.hpp"

namespace envsync::apply {

Result<Hosts> select_hosts(const manifest::Manifest& manifest, const std::vector<std::string>& globs) {
  Hosts hosts;
  std::vector<bool> has_matched(globs.size(), false);
  for (const manifest::Host& target : manifest.targets) {
    bool is_chosen = globs.empty();
    for (std::size_t i = 0; i < globs.size(); ++i) {
      if (::fnmatch(globs[i].c_str(), target.name.c_str(), 0) != 0) continue;
      is_chosen = has_matched[i] = true;
    }
    if (is_chosen) hosts.push_back(&target);
  }
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (has_matched[i]) continue;
    std::string names;
    for (const manifest::Host& target : manifest.targets) names += (names.empty() ? "" : ", ") + target.name;
    return Error{ErrorCode::usage, fmt::format("no target is named '{}'", globs[i])}.note("the targets are " + names);
  }
  return hosts;
}

std::vector<Outcome> each_host(Run& run, const Hosts& hosts, const std::function<Outcome(const manifest::Host&)>& work) {
  const manifest::Settings& settings = run.manifest->settings;
  const u32 at_once = run.options->hosts_at_once.value_or(settings.hosts_at_once);
  std::vector<Outcome> outcomes(hosts.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> is_stopped{false};
  const auto loop = [&] {
    for (;;) {
      const std::size_t i = next++;
      if (i >= hosts.size()) return;
      Outcome& outcome = outcomes[i];
      if (is_stopped || run.stop.stop_requested()) {
        outcome.host = hosts[i]->name;
        outcome.path = hosts[i]->path;
        outcome.environment = run.manifest->name;
        outcome.kind = OutcomeKind::skipped;
        if (run.stop.stop_requested()) outcome.error = Error{ErrorCode::interrupted, "the run was stopped"}.note("nothing was changed");
      } else {
        outcome = work(*hosts[i]);
      }
      if (outcome.error && settings.on_failure == manifest::FailureRule::stop) is_stopped = true;
      run.dispatcher->on(outcome);
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min<std::size_t>(std::max(1u, at_once), hosts.size()); ++i) threads.emplace_back(loop);
  threads.clear();
  return outcomes;
}

namespace {

Outcome skipped(const Run& run, const manifest::Host& host) {
  Outcome outcome;
  outcome.host = host.name;
  outcome.path = host.path;
  outcome.environment = run.manifest->name;
  outcome.kind = OutcomeKind::skipped;
  return outcome;
}

/// Of a host that swapped although another could not: its own rollback, which has all it needs on the host.
Outcome swap_back(Run& run, const manifest::Host& host, Outcome applied, const std::string& failed) {
  Error error{ErrorCode::rolled_back, fmt::format("swapped, and swapped back: {} failed", failed)};
  if (!applied.generation_before) {
    error = Error{ErrorCode::failed, fmt::format("swapped, though {} failed: there was nothing at the path before, to which this host could return", failed)};
    applied.error = std::move(error).note(fmt::format("generation {} is current", applied.generation.value_or(0)));
    applied.kind = OutcomeKind::failed;
    return applied;
  }
  Goal goal;
  goal.to_generation = applied.generation_before;
  goal.undoes = run.id;
  Outcome undone = HostJob(run, host, std::move(goal)).work();
  if (undone.error) return undone;
  undone.kind = OutcomeKind::rolled_back;
  undone.error = std::move(error).note(fmt::format("the tree of generation {} is in place again", *applied.generation_before));
  return undone;
}

/// settings.on_failure: all-or-nothing. Outcomes are told at the end, when they can change no more.
std::vector<Outcome> all_or_nothing(Run& run, const Hosts& hosts, const std::function<Outcome(const manifest::Host&)>& work) {
  run.together = std::make_shared<Together>(hosts.size(), run.options->hosts_at_once.value_or(run.manifest->settings.hosts_at_once));
  std::vector<Outcome> outcomes(hosts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      threads.emplace_back([&, i] {
        outcomes[i] = run.together->begin(run.stop) ? work(*hosts[i]) : skipped(run, *hosts[i]);
        if (outcomes[i].kind != OutcomeKind::skipped) run.together->ended(outcomes[i]);
      });
  }
  const auto failed = std::ranges::find_if(outcomes, [](const Outcome& outcome) { return outcome.error.has_value(); });
  if (failed != outcomes.end()) {
    const std::string name = failed->host;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (outcomes[i].kind == OutcomeKind::applied && !outcomes[i].error) outcomes[i] = swap_back(run, *hosts[i], std::move(outcomes[i]), name);
  }
  for (const Outcome& outcome : outcomes) run.dispatcher->on(outcome);
  return outcomes;
}

/// The canaries first, where there are some; then the others, unless one of those failed.
std::vector<Outcome> in_groups(Run& run, const Hosts& hosts, Ending ending, const std::function<Outcome(const manifest::Host&)>& work) {
  const bool is_together = ending == Ending::commit && run.manifest->settings.on_failure == manifest::FailureRule::all_or_nothing;
  const auto group = [&](const Hosts& members) { return is_together ? all_or_nothing(run, members, work) : each_host(run, members, work); };
  const std::size_t canaries = ending == Ending::commit ? std::min<std::size_t>(run.options->canary, hosts.size()) : 0;
  if (canaries == 0) return group(hosts);
  std::vector<Outcome> outcomes = group(Hosts(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(canaries)));
  const Hosts others(hosts.begin() + static_cast<std::ptrdiff_t>(canaries), hosts.end());
  const bool has_failed = std::ranges::any_of(outcomes, [](const Outcome& outcome) { return outcome.error.has_value(); });
  if (!has_failed && !others.empty()) {
    std::ranges::move(group(others), std::back_inserter(outcomes));
    return outcomes;
  }
  for (const manifest::Host* host : others) run.dispatcher->on(outcomes.emplace_back(skipped(run, *host)));
  return outcomes;
}

}  // namespace

std::vector<Outcome> mirror(Run& run, const Hosts& hosts, Ending ending) {
  std::optional<Source> source;
  if (!run.manifest->source.is_target) source.emplace(run, run.manifest->source, Reading::environment).start();
  std::vector<std::unique_ptr<Source>> origins;
  std::vector<Layer> layers;
  for (const manifest::Overlay& overlay : run.manifest->overlays) {
    Layer& layer = layers.emplace_back(Layer{&overlay, nullptr});
    const bool is_needed = std::ranges::any_of(hosts, [&](const manifest::Host* host) { return overlay.is_for(*host); });
    if (overlay.from.is_target || !is_needed) continue;
    origins.push_back(std::make_unique<Source>(run, overlay.from, Reading::origin));
    layer.origin = origins.back().get();
    layer.origin->start();
  }
  std::optional<BaseShipment> shipment;
  if (source && run.manifest->invariants.interpreter == manifest::InterpreterRule::ship) shipment.emplace(run, *source);
  auto outcomes = in_groups(run, hosts, ending, [&](const manifest::Host& host) {
    if (shipment)
      if (auto ended = shipment->bring(host, ending)) return *std::move(ended);
    Goal goal;
    goal.source = source ? &*source : nullptr;
    goal.layers = layers;
    goal.ending = ending;
    return mirror_host(run, host, std::move(goal));
  });
  tell_unused_accepts(run, hosts.size());
  return outcomes;
}

}  // namespace envsync::apply
