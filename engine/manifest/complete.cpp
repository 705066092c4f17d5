// SPDX-License-Identifier: MIT
// What spans the sections of a manifest: paths that one gives to another, and contradictions between them.
#include "manifest/draft.hpp"

#include "base/bytes.hpp"
#include "manifest/place.hpp"

#include <fmt/format.h>

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace envsync::manifest {
namespace {

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

auto place_of(const Host& host) { return std::tie(host.is_local, host.user, host.host, host.port, host.path); }

void fill_paths(Draft& draft, Problems& problems) {
  const bool has_source = draft.source && !draft.source->is_target;
  if (has_source && draft.source->path.empty()) draft.source->path = draft.source->host.path = draft.path;
  if (has_source && draft.source->path.empty() && !draft.is_path_refused) {
    problems.report(draft.source_mark, fmt::format("the source '{}' has no path", printable(draft.source->host.name)))
        .hints.emplace_back("add a key 'path' to the manifest");
  }
  for (auto& [host, mark] : draft.targets) {
    if (host.path.empty()) host.path = draft.targets_path.empty() ? draft.path : draft.targets_path;
    if (host.path.empty() && !draft.is_path_refused) {
      problems.report(mark, fmt::format("the target '{}' has no path", printable(host.name)))
          .hints.emplace_back("add a key 'path' to the manifest");
    }
  }
}

void check_twice(const Draft& draft, Problems& problems) {
  std::map<decltype(place_of(std::declval<const Host&>())), const DraftHost*> seen;
  for (const DraftHost& target : draft.targets) {
    if (target.host.path.empty()) continue;
    const auto [first, is_new] = seen.try_emplace(place_of(target.host), &target);
    if (is_new) continue;
    const Host& host = target.host;
    problems.report(target.mark, fmt::format("the target '{}' stands here twice with the path '{}'", printable(host.name), printable(host.path)))
        .at_notes.push_back(fmt::format("the first is in line {}", first->second->mark.line));
  }
}

/// Whether two paths can be told apart without asking a host what ~ is there.
bool are_comparable(std::string_view a, std::string_view b) { return a.starts_with('~') == b.starts_with('~'); }

/// Whether `inner` lies beneath `outer`, by components.
bool lies_in(std::string_view inner, std::string_view outer) {
  return inner.size() > outer.size() && inner.starts_with(outer) && (outer.ends_with('/') || inner[outer.size()] == '/');
}

bool are_nested(const Host& target, const Source& source) {
  const bool is_same_host = target.is_local == source.host.is_local && target.user == source.host.user && target.host == source.host.host &&
                            target.port == source.host.port;
  return is_same_host && (lies_in(target.path, source.path) || lies_in(source.path, target.path));
}

void check_against_source(const Draft& draft, Problems& problems) {
  if (!draft.source || draft.source->is_target || draft.source->path.empty()) return;
  const Source& source = *draft.source;
  for (const auto& [host, mark] : draft.targets) {
    if (host.path.empty()) continue;
    if (place_of(host) == place_of(source.host)) {
      problems.report(mark, fmt::format("the target '{}' is the source itself", printable(host.name)))
          .hints.push_back(fmt::format("give the target another path, such as '{}:{}-copy'", printable(host.name), printable(host.path)));
    } else if (are_nested(host, source)) {
      problems.report(mark, fmt::format("the target path '{}' and the source path '{}' lie one in the other", printable(host.path), printable(source.path)))
          .hints.emplace_back("give the target a path of its own, beside the source");
    } else if (draft.invariants.same_path && !draft.invariants.relocate && are_comparable(host.path, source.path) && host.path != source.path) {
      Error& error =
          problems.report(mark, fmt::format("the path '{}' of the target '{}' is not the source's", printable(host.path), printable(host.name)));
      error.at_notes.push_back(fmt::format("the source's is '{}', and 'same_path' is true", printable(source.path)));
      error.hints.emplace_back("set 'relocate: true' in 'invariants', so that its scripts are rewritten, or 'same_path: false', if it works at another path as it is");
    }
  }
}

/// An origin is read while the target is staged: it is another tree.
void check_origins(const Draft& draft, Problems& problems) {
  for (const auto& [overlay, mark] : draft.overlays) {
    for (const auto& [host, target_mark] : draft.targets) {
      if (host.path.empty() || !overlay.is_for(host)) continue;
      Source from = overlay.from;
      if (from.is_target) {
        from.host = host;
        from.host.path = from.path;
      }
      if (place_of(host) != place_of(from.host) && !are_nested(host, from)) continue;
      problems.report(mark, fmt::format("the origin '{}' and the target '{}' with the path '{}' lie one in the other", printable(overlay.from.path),
                                        printable(host.name), printable(host.path)));
    }
  }
}

/// What an overlay says of hosts must be true of one.
void check_selectors(const Draft& draft, Problems& problems) {
  for (const auto& [overlay, mark] : draft.overlays) {
    if (!overlay.hosts.empty() && std::ranges::none_of(draft.targets, [&](const DraftHost& t) { return matches_any(overlay.hosts, t.host.name); }))
      problems.report(mark, "'hosts' of this overlay matches no target");
    if (overlay.gpu.empty()) continue;
    for (const DraftHost& target : draft.targets) {
      if (!target.host.gpu.empty() || !(overlay.hosts.empty() || matches_any(overlay.hosts, target.host.name))) continue;
      problems.report(target.mark, fmt::format("an overlay asks for the GPU of '{}', and none is declared", printable(target.host.name)))
          .hints.push_back(fmt::format("write {{host: {}, gpu: [10.3]}}; asking a host for its GPU is not built yet", printable(target.host.name)));
    }
  }
}

/// Targets that differ in nothing but the path are told apart by it.
void tell_apart(Draft& draft) {
  std::map<std::string, std::size_t> uses;
  for (const DraftHost& target : draft.targets) ++uses[target.host.name];
  for (auto& [host, mark] : draft.targets) {
    if (uses[host.name] > 1) host.name += ":" + host.path;
  }
}

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool Overlay::is_for(const Host& target) const {
  if (!hosts.empty() && !matches_any(hosts, target.name)) return false;
  return gpu.empty() || std::ranges::any_of(gpu, [&](const std::string& one) { return std::ranges::find(target.gpu, one) != target.gpu.end(); });
}

void complete(Draft& draft, Problems& problems) {
  fill_paths(draft, problems);
  check_twice(draft, problems);
  check_against_source(draft, problems);
  check_origins(draft, problems);
  check_selectors(draft, problems);
  tell_apart(draft);
  if (!draft.name.empty()) return;
  if (!draft.path.empty()) draft.name = last_component(draft.path);
  else if (!draft.targets.empty()) draft.name = last_component(draft.targets.front().host.path);
}

}  // namespace envsync::manifest
