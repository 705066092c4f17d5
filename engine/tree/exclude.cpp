// SPDX-License-Identifier: MIT
// Patterns by the rules of gitignore(5): the last rule that matches decides; a slash at the front or in the middle ties a
// rule to the root; "**" stands for any number of folders; a slash at the end means folders only.
#include "tree/exclude.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "tree/glob.hpp"

namespace envsync::tree {

namespace {

// LIMIT: a manifest has a handful; the agent takes them from a peer.
constexpr std::size_t kPatternsMax = 10'000, kPatternBytesMax = 4096;

bool is_any_depth(std::string_view part) { return part == "**"; }

/// Whether `parts` match all of `names`. Only the last "**" is ever taken back: what an earlier one could take, it can too.
bool parts_match(const std::vector<std::string>& parts, const std::vector<std::string_view>& names) {
  std::size_t p = 0, n = 0, star = parts.size(), star_name = 0;
  while (n < names.size()) {
    if (p < parts.size() && is_any_depth(parts[p])) {
      star = p++;
      star_name = n;
      continue;
    }
    if (p < parts.size() && glob_component(parts[p], names[n])) {
      ++p;
      ++n;
      continue;
    }
    if (star == parts.size()) return false;
    p = star + 1;
    n = ++star_name;
  }
  // "a/**" matches what is in a, not a itself: a "**" at the end takes one name at least.
  while (p < parts.size() && is_any_depth(parts[p]) && p + 1 < parts.size()) ++p;
  return p == parts.size();
}

/// A line without the blanks at its end, which count only behind a backslash.
std::string_view without_trailing_blanks(std::string_view line) {
  while (line.ends_with(' ')) {
    const std::string_view before = line.substr(0, line.size() - 1);
    const std::size_t last_other = before.find_last_not_of('\\');
    const std::size_t slashes = before.size() - (last_other == std::string_view::npos ? 0 : last_other + 1);
    if (slashes % 2 == 1) break;
    line = before;
  }
  return line;
}

std::vector<std::string> split(std::string_view pattern) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t slash = pattern.find('/');
    parts.emplace_back(pattern.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    pattern.remove_prefix(slash + 1);
  }
}

Error bad_pattern(const std::string& pattern, std::string_view why) {
  return Error(ErrorCode::manifest_invalid, fmt::format("exclude pattern '{}': {}", printable(pattern), why));
}

}  // namespace

Result<Exclude> Exclude::parse(const std::vector<std::string>& patterns) {
  if (patterns.size() > kPatternsMax) return Error(ErrorCode::manifest_invalid, fmt::format("{} exclude patterns, at most {} are allowed", patterns.size(), kPatternsMax));
  Exclude exclude;
  exclude.patterns_ = patterns;
  for (const std::string& pattern : patterns) {
    if (pattern.size() > kPatternBytesMax) return bad_pattern(pattern.substr(0, 40), "longer than a path can be");
    if (pattern.find('\0') != std::string::npos || pattern.find('\n') != std::string::npos) return bad_pattern(pattern, "more than one line");
    std::string_view text = without_trailing_blanks(pattern);
    if (text.empty() || text.starts_with('#')) continue;
    Compiled rule;
    if (text.starts_with('!')) { rule.negated = true; text.remove_prefix(1); }
    if (text.ends_with('/')) { rule.dir_only = true; text.remove_suffix(1); }
    if (text.starts_with('/')) { rule.anchored = true; text.remove_prefix(1); }
    if (text.empty()) return bad_pattern(pattern, "names nothing");
    rule.anchored = rule.anchored || text.find('/') != std::string_view::npos;
    rule.parts = split(text);
    for (const std::string& part : rule.parts) {
      if (part.empty()) return bad_pattern(pattern, "two slashes in a row match nothing");
      if (part == "." || part == "..") return bad_pattern(pattern, fmt::format("no path has '{}' in it", part));
      if (const auto wrong = wrong_with_glob(part)) return bad_pattern(pattern, *wrong);
    }
    exclude.rules_.push_back(std::move(rule));
  }
  return exclude;
}

bool Exclude::matches(const RelPath& path, bool is_dir) const {
  const std::string_view name = path.name();
  if (name.starts_with(".envsync")) return true;
  std::vector<std::string_view> names;  // of the components; filled for the first rule that needs them
  const auto match = [&](const Compiled& rule) {
    if (rule.dir_only && !is_dir) return false;
    if (!rule.anchored) return glob_component(rule.parts.front(), name);
    if (names.empty()) {
      std::string_view rest = path.bytes();
      for (std::size_t slash; (slash = rest.find('/')) != std::string_view::npos; rest.remove_prefix(slash + 1)) names.push_back(rest.substr(0, slash));
      names.push_back(rest);
    }
    return parts_match(rule.parts, names);
  };
  if (path.is_root()) return false;
  const auto last = std::find_if(rules_.rbegin(), rules_.rend(), match);
  return last != rules_.rend() && !last->negated;
}

bool is_pycache_dir(std::string_view name) { return name == "__pycache__"; }

std::string source_beside(std::string_view pyc_name) {
  constexpr std::size_t kSuffix = 4;
  if (pyc_name.size() <= kSuffix || !(pyc_name.ends_with(".pyc") || pyc_name.ends_with(".pyo"))) return {};
  return std::string(pyc_name.substr(0, pyc_name.size() - 1));
}

std::string_view module_of_cached(std::string_view cached_name) {
  if (source_beside(cached_name).empty()) return {};
  std::string_view stem = cached_name.substr(0, cached_name.size() - 4);
  // A tag may have dots of its own ("cpython-312-pytest-8.2.0"), and so may a module's file name: what marks the tag is
  // the implementation's name at its front.
  for (std::size_t dot = stem.rfind('.'); dot != std::string_view::npos && dot > 0; dot = stem.rfind('.', dot - 1)) {
    const std::string_view tag = stem.substr(dot + 1);
    for (const std::string_view implementation : {"cpython-", "pypy", "graalpy", "ironpython", "jython", "micropython"})
      if (tag.starts_with(implementation)) return stem.substr(0, dot);
  }
  if (const std::size_t opt = stem.rfind(".opt-"); opt != std::string_view::npos) stem = stem.substr(0, opt);
  const std::size_t dot = stem.rfind('.');
  return dot == std::string_view::npos || dot == 0 || dot + 1 == stem.size() ? std::string_view() : stem.substr(0, dot);
}

}  // namespace envsync::tree
