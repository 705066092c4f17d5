// SPDX-License-Identifier: MIT
// An environment as `inspect` shows it to a person.
#pragma once

#include <string>

#include <envsync/event.hpp>

#include "cli/text.hpp"

namespace envsync::cli {

/// `shows_all`: every distribution and every note, not only what is largest or wrong.
std::string inspection_text(const Inspection& found, bool shows_all, const Palette& palette);

}  // namespace envsync::cli
