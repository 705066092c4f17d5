// SPDX-License-Identifier: MIT
// The command line as words: which verb, which flags with which values, what is left. What the words mean is invocation.hpp's.
#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/vocabulary.hpp"

namespace envsync::cli {

struct Words {
  Verb verb = Verb::plan;
  std::vector<std::string> places;                      // manifests, or SRC and HOSTs, or CODE
  std::map<Flag, std::vector<std::string>> flags;       // a switch that was given has one empty value
};

enum class Page : u8 { bare, help, verb_help, version };
struct PageWanted { Page page = Page::bare; Verb verb = Verb::plan; };

/// `arguments`: without the program's name. Knows every verb and flag of the vocabulary and nothing else.
std::variant<Words, PageWanted, Error> parse_words(std::span<const std::string> arguments);

}  // namespace envsync::cli
