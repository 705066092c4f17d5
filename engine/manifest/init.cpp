// SPDX-License-Identifier: MIT
// The manifest that `init` writes.
#include "manifest/manifest.hpp"

#include "manifest/place.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace envsync::manifest {
namespace {

/// A text as YAML takes it within [...] too; quoted where it would read as something else.
std::string quoted(const std::string& text) {
  const auto is_safe = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') ||
           std::string_view("/._@+-:~").find(c) != std::string_view::npos;
  };
  const bool is_number = text.find_first_of("0123456789.+") == 0 && text.find_first_not_of("0123456789.:+-_abcdefoxABCDEF") == std::string::npos;
  const bool is_word = std::ranges::all_of(text, is_safe) && !text.empty() && text != "~" && !text.starts_with('-') && !text.starts_with('@') &&
                       !text.starts_with(':') && !text.ends_with(':');
  if (is_word && !is_number) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

/// A target as a manifest takes it: a folder of this machine is local:FOLDER there.
std::string as_target(const std::string& given) {
  if (parse_host(given) || is_range(given)) return given;
  const auto place = parse_place(given);
  return place && place->path.starts_with('/') ? "local:" + place->path : given;
}

/// The path that a target names; empty where it takes the manifest's.
std::string own_path(const std::string& target) {
  const auto names = expand_ranges(target);
  const auto host = parse_host(names ? names->front() : target);
  return host ? host->path : std::string();
}

std::string targets_line(const std::vector<std::string>& targets) {
  std::vector<std::string> items;
  for (const std::string& target : targets) items.push_back(quoted(target));
  return fmt::format("targets: [{}]\n", fmt::join(items, ", "));
}

}  // namespace

std::string render_init(const Source& source, const std::vector<std::string>& given) {
  std::vector<std::string> targets;
  for (const std::string& target : given) targets.push_back(as_target(target));
  const auto differs = [&source](const std::string& target) {
    const std::string path = own_path(target);
    return !path.empty() && path != source.path;
  };
  const bool is_any_elsewhere = std::ranges::any_of(targets, differs);
  const bool is_path_shared = std::ranges::any_of(targets, [](const std::string& target) { return own_path(target).empty(); });
  std::string out = "# yaml-language-server: $schema=.envsync.schema.json\nversion: 1\n";
  if (!is_any_elsewhere || is_path_shared) {
    if (!source.path.empty()) out += fmt::format("path: {}\n", quoted(source.path));
    out += fmt::format("source: {}\n", quoted(host_name(source.host)));
  } else if (source.host.is_local) {
    out += fmt::format("source: {}\n", quoted(source.path));
  } else {
    out += fmt::format("source: {}\n", quoted(host_name(source.host) + ":" + source.path));
  }
  out += targets_line(targets);
  if (is_any_elsewhere) out += "invariants:\n  same_path: false\n";
  return out;
}

}  // namespace envsync::manifest
