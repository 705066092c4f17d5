// SPDX-License-Identifier: MIT
#include "tree/glob.hpp"

#include <array>
#include <utility>

#include <envsync/types.hpp>

namespace envsync::tree {

namespace {

bool in_range(u8 c, u8 low, u8 high) { return low <= c && c <= high; }

/// Names of ASCII classes, by byte value: the locale plays no part in what is excluded.
bool in_class(std::string_view name, u8 c, bool& is_known) {
  const bool upper = in_range(c, 'A', 'Z'), lower = in_range(c, 'a', 'z'), digit = in_range(c, '0', '9');
  const bool graph = in_range(c, 0x21, 0x7e), blank = c == ' ' || c == '\t';
  const std::array<std::pair<std::string_view, bool>, 12> classes{{
      {"alnum", upper || lower || digit}, {"alpha", upper || lower}, {"blank", blank}, {"cntrl", c < 0x20 || c == 0x7f},
      {"digit", digit}, {"graph", graph}, {"lower", lower}, {"print", graph || c == ' '},
      {"punct", graph && !(upper || lower || digit)}, {"space", blank || in_range(c, 0x0a, 0x0d)}, {"upper", upper},
      {"xdigit", digit || in_range(c, 'a', 'f') || in_range(c, 'A', 'F')}}};
  is_known = true;
  for (const auto& [known, holds] : classes)
    if (known == name) return holds;
  is_known = false;
  return false;
}

struct Step {
  bool is_whole = false;   // the pattern's element ends inside the pattern
  bool matches = false;
  std::size_t length = 0;  // of the element
};

/// "[...]" at the front of `pattern` against `c`.
Step step_set(std::string_view pattern, u8 c) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool found = false;
  for (bool is_first = true; at < pattern.size(); is_first = false) {
    if (pattern[at] == ']' && !is_first) return {true, found != negated, at + 1};
    if (pattern.substr(at).starts_with("[:")) {
      const std::size_t end = pattern.find(":]", at + 2);
      if (end == std::string_view::npos) return {};
      bool is_known = false;
      found = in_class(pattern.substr(at + 2, end - at - 2), c, is_known) || found;
      if (!is_known) return {};
      at = end + 2;
      continue;
    }
    const auto literal = [&]() -> u8 {
      if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
      return static_cast<u8>(pattern[at++]);
    };
    const u8 low = literal();
    u8 high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      high = literal();
    }
    found = in_range(c, low, high) || found;
  }
  return {};
}

/// The element at the front of `pattern`, which is not a star, against `c`.
Step step(std::string_view pattern, u8 c) {
  switch (pattern[0]) {
    case '?': return {true, true, 1};
    case '[': return step_set(pattern, c);
    case '\\': return pattern.size() > 1 ? Step{true, static_cast<u8>(pattern[1]) == c, 2} : Step{};
    default: return {true, static_cast<u8>(pattern[0]) == c, 1};
  }
}

}  // namespace

bool glob_component(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    const Step here = p < pattern.size() ? step(pattern.substr(p), static_cast<u8>(name[n])) : Step{};
    if (here.matches) {
      p += here.length;
      ++n;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star + 1;
    n = ++star_name;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string> wrong_with_glob(std::string_view pattern) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') { pattern.remove_prefix(1); continue; }
    const Step here = step(pattern, 0);
    if (!here.is_whole) return pattern[0] == '[' ? "a '[' without its ']'" : "a backslash at its end";
    pattern.remove_prefix(here.length);
  }
  return std::nullopt;
}

}  // namespace envsync::tree
