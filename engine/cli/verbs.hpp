// SPDX-License-Identifier: MIT
// What each verb does with an invocation. Each gives the exit code.
#pragma once

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
int run_init(const Invocation& given, const Surroundings& around);
int run_validate(const Invocation& given, const Surroundings& around);

/// Shows an error that no host has, and gives its exit code.
int fail(const Error& error, const Surroundings& around);

}  // namespace envsync::cli
