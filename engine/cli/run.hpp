// SPDX-License-Identifier: MIT
// The whole command line but main(): from the words to the exit code.
#pragma once

#include <span>
#include <string>

#include "cli/io.hpp"

namespace envsync::cli {

/// `arguments`: without the program's name. Blocks until the verb is done; never throws.
int run(std::span<const std::string> arguments, Services& services, const Io& io, const Interruption& interruption);

}  // namespace envsync::cli
