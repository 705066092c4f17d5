// SPDX-License-Identifier: MIT
#include "base/rate.hpp"
#include "cli/invocation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/text.hpp"

namespace envsync::cli {

namespace {

using Values = std::vector<std::string>;

std::optional<u64> whole_number(std::string_view text, u64 max) {
  u64 value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

Result<u32> take_number(const FlagSpec& flag, const std::string& text, u64 min, u64 max) {
  const auto value = whole_number(text, max);
  if (!value || *value < min) return usage_error(fmt::format("'{}' takes a whole number from {} to {}, not '{}'", flag.name, min, max, safe(text)));
  return static_cast<u32>(*value);
}

Result<u64> take_rate(const FlagSpec& flag, const std::string& text) {
  if (const auto rate = parse_rate(text)) return *rate;
  return usage_error(fmt::format("'{}' takes a rate with its unit such as 50MB/s or 400Mbit/s, not '{}'", flag.name, safe(text)));
}

/// A level of zstd, or raw.
Result<int> take_level(const FlagSpec& flag, const std::string& text) {
  if (text == "raw") return RunOptions::kRaw;
  const bool is_negative = text.starts_with('-');
  const auto value = whole_number(std::string_view(text).substr(is_negative ? 1 : 0), is_negative ? 7 : 22);
  if (!value) return usage_error(fmt::format("'{}' takes raw or a level from -7 to 22, not '{}'", flag.name, safe(text)));
  return is_negative ? -static_cast<int>(*value) : static_cast<int>(*value);
}

/// "30s", "5m", "1h"; a bare number is seconds, as other tools have it.
Result<double> take_time(const FlagSpec& flag, const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = problem == std::errc() ? std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)) : "?";
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" || unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  // LIMIT: a week; longer is a mistyped number, and deadlines stay far from overflow.
  if (factor == 0 || !std::isfinite(value) || value < 0 || value * factor > 7 * 86400.0)
    return usage_error(fmt::format("'{}' takes a time up to a week as in 30s, 5m or 1h, not '{}'", flag.name, safe(text)));
  return value * factor;
}

Result<std::string> take_word(const FlagSpec& flag, const std::string& text, const Values& words, const Values& later = {}) {
  if (std::ranges::find(words, text) != words.end()) return text;
  if (std::ranges::find(later, text) != later.end()) return not_built(fmt::format("this version has no '{} {}' yet", flag.name, text));
  Error error = usage_error(fmt::format("'{}' takes {}, not '{}'", flag.name, join(words, " or "), safe(text)));
  if (const auto near = nearest(text, words)) return std::move(error).hint(fmt::format("a word '{}' exists", *near));
  return error;
}

Result<void> take_value(Invocation& into, const FlagSpec& flag, const Values& values) {
  const std::string& first = values.front();
  switch (flag.flag) {
    case Flag::host: into.run.hosts = values; break;
    case Flag::set: into.overrides = values; break;
    case Flag::ssh_config: into.run.ssh_config = first; break;
    case Flag::identity: into.run.identity = first; break;
    case Flag::transport: { TRY(into.run.transport, take_word(flag, first, {"auto", "libssh", "openssh"}, {})); break; }
    case Flag::hosts_at_once: { TRY(into.run.hosts_at_once, take_number(flag, first, 1, 256)); break; }
    case Flag::bandwidth: { TRY(into.run.bandwidth, take_rate(flag, first)); break; }
    case Flag::canary: { TRY(into.run.canary, take_number(flag, first, 1, 256)); break; }
    case Flag::lock_wait: { TRY(into.run.lock_wait_seconds, take_time(flag, first)); break; }
    case Flag::drift: { TRY(into.run.drift, take_word(flag, first, {"replace", "refuse"}, {"keep"})); break; }
    case Flag::force_origin: { TRY(into.run.force_origin, take_word(flag, first, {"target", "same-host", "chunks", "source"}, {})); break; }
    case Flag::force_level: { TRY(into.run.force_level, take_level(flag, first)); break; }
    case Flag::keep: { TRY(into.prune.keep, take_number(flag, first, 0, 1'000'000)); break; }
    case Flag::drop:
      for (const std::string& text : values) { TRY(const u32 number, take_number(flag, text, 0, 4'000'000'000)); into.prune.drop.push_back(number); }
      break;
    case Flag::to:
      if (std::ranges::all_of(first, [](char c) { return c >= '0' && c <= '9'; })) { TRY(into.rollback.to_generation, take_number(flag, first, 0, 4'000'000'000)); }
      else into.rollback.to_run = first;
      break;
    case Flag::color: {
      TRY(const std::string when, take_word(flag, first, {"auto", "always", "never"}));
      into.color = when == "always" ? ColorWhen::always : when == "never" ? ColorWhen::never : ColorWhen::automatic;
      break;
    }
    case Flag::json: into.has_json = true; break;
    case Flag::quiet: into.is_quiet = true; break;
    case Flag::verbose: into.is_verbose = true; break;
    case Flag::no_input: into.no_input = true; break;
    case Flag::yes: into.run.assume_yes = true; break;
    case Flag::accept_new_host_keys: into.run.accept_new_host_keys = true; break;
    case Flag::exit_code: into.has_exit_code = true; break;
    case Flag::files: into.lists_files = true; break;
    case Flag::full: into.verify.full = true; break;
    case Flag::record: into.verify.record = true; break;
    case Flag::dry_run: into.verb = Verb::plan; break;
    case Flag::adopt: into.run.adopt = true; break;
    case Flag::allow_delete: into.run.allow_delete = true; break;
    case Flag::explain: into.run.explain = true; break;
    case Flag::verify_staged: into.run.verify_staged = true; break;
    case Flag::all: into.prune.all = true; break;
  }
  return ok();
}

Result<void> take_places(Invocation& into, const VerbSpec& verb, Values places) {
  for (const std::string& place : places)
    if (place.empty()) return usage_error(fmt::format("'{}' was given an empty word", verb.name)).hint("an unset variable in a script often makes one");
  switch (verb.places) {
    case Places::none:
      if (!places.empty()) return usage_error(fmt::format("'{}' takes no words, not '{}'", verb.name, safe(places[0])));
      break;
    case Places::one_manifest:
      if (places.size() > 1) return usage_error(fmt::format("'{}' takes one manifest, not {}", verb.name, places.size())).hint(fmt::format("run `envsync {} {}`, then the next", verb.name, shell_word(places[0])));
      into.manifests = std::move(places);
      break;
    case Places::manifests: into.manifests = std::move(places); break;
    case Places::source_and_hosts:
      if (places.size() < 2) return usage_error(fmt::format("'{}' needs a source and at least one host", verb.name)).hint("run `envsync init HOST:/path/of/venv TARGET`");
      into.init.source = places[0];
      into.init.targets.assign(places.begin() + 1, places.end());
      break;
    case Places::place:
      if (places.size() != 1) return usage_error(fmt::format("'{}' takes one environment, not {}", verb.name, places.size())).hint("name it as HOST:/path/of/venv, or as a path of this machine");
      into.place = places[0];
      break;
    case Places::code:
      if (places.size() != 1) return usage_error("'explain' takes one CODE").hint("CODE is the word in error[CODE], as in `envsync explain no_space`");
      into.code = places[0];
      break;
  }
  return ok();
}

Result<void> check_together(const Invocation& given) {
  if (given.is_quiet && given.is_verbose) return usage_error("'--quiet' and '--verbose' contradict each other");
  if (given.prune.all && (given.prune.keep || !given.prune.drop.empty())) return usage_error("'--all' leaves nothing for '--keep' or '--drop'");
  for (const std::string& text : given.overrides)
    if (text.find('=') == std::string::npos || text.front() == '=')
      return usage_error(fmt::format("'--set' takes KEY=VALUE, not '{}'", safe(text))).hint("write it as in `--set settings.drift=replace`");
  for (const std::string& target : given.init.targets)
    if (target.front() == '-') return usage_error(fmt::format("'{}' is no host", safe(target)));
  return ok();
}

Result<Invocation> interpret(Words words) {
  Invocation result;
  result.verb = words.verb;
  const VerbSpec& verb = spec(words.verb);
  for (const auto& [flag, values] : words.flags) {
    const FlagSpec& known = spec(flag);
    if (values.size() > 1 && !known.is_repeatable) return usage_error(fmt::format("'{}' was given {} times", known.name, values.size()));
    TRY_STATUS(take_value(result, known, values));
  }
  TRY_STATUS(take_places(result, verb, std::move(words.places)));
  TRY_STATUS(check_together(result));
  return result;
}

}  // namespace

std::variant<Invocation, PageWanted, Error> parse(std::span<const std::string> arguments) {
  auto words = parse_words(arguments);
  if (auto* page = std::get_if<PageWanted>(&words)) return *page;
  if (auto* error = std::get_if<Error>(&words)) return std::move(*error);
  auto result = interpret(std::move(std::get<Words>(words)));
  if (!result) return std::move(result).error();
  return std::move(*result);
}

std::string same_manifest(const std::string& manifest, const std::vector<std::string>& overrides) {
  std::string words;
  if (manifest != "envsync.yaml") words += " " + shell_word(manifest);
  for (const std::string& text : overrides) words += " --set " + shell_word(text);
  return words;
}

}  // namespace envsync::cli
