// SPDX-License-Identifier: MIT
// The help pages, made from the vocabulary: answers in the order of the questions, examples before flags.
#pragma once

#include <string>

#include <envsync/codes.hpp>

#include "cli/vocabulary.hpp"

namespace envsync::cli {

/// What `envsync` alone prints: at most 24 lines.
std::string short_help();
std::string long_help();
std::string verb_help(Verb verb);
/// The long form of a code: its name, its exit status and the explanation, wrapped.
std::string explanation(const CodeInfo& code);
/// A code as the user gave it, `error[no_space]` included.
Result<const CodeInfo*> find_code(std::string word);

}  // namespace envsync::cli
