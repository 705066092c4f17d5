// SPDX-License-Identifier: MIT
#include "cli/hints.hpp"

#include <algorithm>

namespace envsync::cli {

namespace {

constexpr std::string_view kOpening = "`envsync ";

std::string completed(const std::string& hint, const View& view, const std::string& host_words) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = hint.find(kOpening); at != std::string::npos; at = hint.find(kOpening, from)) {
    const std::size_t word = at + kOpening.size(), end = std::min(hint.find_first_of(" `", word), hint.size());
    out += hint.substr(from, end - from);
    from = end;
    const auto verb = std::ranges::find(all_verbs(), std::string_view(hint).substr(word, end - word), &VerbSpec::name);
    if (verb == all_verbs().end() || (verb->places != Places::one_manifest && verb->places != Places::manifests)) continue;
    const bool connects = std::ranges::find(spec(Flag::ssh_config).verbs, verb->verb) != spec(Flag::ssh_config).verbs.end();
    out += view.manifest_words;
    if (connects) out += view.connection_words + host_words;
  }
  return out + hint.substr(from);
}

}  // namespace

Error with_commands(Error error, const View& view, const std::string& host) {
  // What all hosts share, such as their source, is no matter of one of them.
  const bool is_hosts = view.shows_host && !host.empty() && error.what.find(host) != std::string::npos;
  const std::string host_words = is_hosts ? " --host " + shell_word(host) : view.host_words;
  for (std::string& hint : error.hints) hint = completed(hint, view, host_words);
  return error;
}

Event with_commands(const Event& event, const View& view) {
  Event out = event;
  if (auto* problem = std::get_if<ProblemEvent>(&out)) problem->error = with_commands(std::move(problem->error), view, problem->host);
  if (auto* outcome = std::get_if<Outcome>(&out); outcome != nullptr && outcome->error) outcome->error = with_commands(*std::move(outcome->error), view, outcome->host);
  if (auto* status = std::get_if<StatusEvent>(&out); status != nullptr && status->error) status->error = with_commands(*std::move(status->error), view, status->host);
  if (auto* plan = std::get_if<PlanEvent>(&out))
    for (Error& error : plan->refused_by) error = with_commands(std::move(error), view, plan->host);
  return out;
}

}  // namespace envsync::cli
