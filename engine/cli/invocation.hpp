// SPDX-License-Identifier: MIT
// A command line that makes sense: every word has a meaning and every value is in its range.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include <envsync/engine.hpp>

#include "cli/arguments.hpp"

namespace envsync::cli {

enum class ColorWhen : u8 { automatic, always, never };

struct Invocation {
  Verb verb = Verb::plan;              // `apply --dry-run` is a plan
  std::vector<std::string> manifests;  // as given; empty: envsync.yaml
  std::vector<std::string> overrides;
  RunOptions run;
  VerifyOptions verify;
  RollbackOptions rollback;
  PruneOptions prune;
  InitRequest init;
  std::string place;                   // of `inspect`
  std::string code;                    // of `explain`
  bool has_json = false, is_quiet = false, is_verbose = false, lists_files = false, has_exit_code = false, no_input = false;
  ColorWhen color = ColorWhen::automatic;
};

std::variant<Invocation, PageWanted, Error> parse(std::span<const std::string> arguments);

/// The words that name the same manifest and values again, for a command that is hinted at: " fleet.yaml --set a=b", or nothing.
std::string same_manifest(const std::string& manifest, const std::vector<std::string>& overrides);

}  // namespace envsync::cli
