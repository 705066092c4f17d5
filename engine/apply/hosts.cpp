// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <thread>

#include <fnmatch.h>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
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
  auto outcomes = each_host(run, hosts, [&](const manifest::Host& host) {
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
