// SPDX-License-Identifier: MIT
// What each verb does with an invocation. Each gives the exit code.
#pragma once

#include <functional>
#include <vector>

#include "cli/invocation.hpp"
#include "cli/io.hpp"
#include "cli/text.hpp"

namespace envsync::cli {

struct Surroundings {
  Services& services;
  const Io& io;
  const Interruption& interruption;
  const std::vector<std::string>& arguments;  // as given, for the log
  Palette out, err;
};

int run_on_manifests(const Invocation& given, const Surroundings& around);
int run_inspect(const Invocation& given, const Surroundings& around);
int run_init(const Invocation& given, const Surroundings& around);
int run_validate(const Invocation& given, const Surroundings& around);

/// Calls the engine where there is no manifest, and shows its error.
class Console;
Result<void> without_manifest(const Invocation& given, const Surroundings& around, const std::function<Result<void>(const RunOptions&, Console&)>& work);

/// Shows an error that no host has, and gives its exit code.
int fail(const Error& error, const Surroundings& around);

}  // namespace envsync::cli
