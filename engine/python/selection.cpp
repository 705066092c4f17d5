// SPDX-License-Identifier: MIT
#include "python/selection.hpp"

#include "python/site_packages.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/format.h>

namespace envsync::python {
namespace {

/// [a-z] at the front of `pattern` against `c`: whether it matches, and its length; 0 where it is not closed.
std::pair<bool, std::size_t> match_set(std::string_view pattern, char c) {
  const std::size_t end = pattern.find(']', 2);
  if (end == std::string_view::npos) return {false, 0};
  std::string_view set = pattern.substr(1, end - 1);
  const bool negated = set.front() == '!' || set.front() == '^';
  if (negated) set.remove_prefix(1);
  bool found = false;
  while (!set.empty()) {
    const bool is_range = set.size() > 2 && set[1] == '-';
    found = found || (is_range ? set[0] <= c && c <= set[2] : set[0] == c);
    set.remove_prefix(is_range ? 3 : 1);
  }
  return {found != negated, end + 1};
}

class Selector {
 public:
  Selector(const DistributionSet& base, const DistributionSet& origin, const OverlayOptions& options, const MarkerEnvironment& environment,
           std::vector<Finding>& findings)
      : base_(base), origin_(origin), options_(options), environment_(environment), findings_(findings) {}

  Selection select() {
    evict_listed();
    for (const std::string& pattern : options_.packages) select_pattern(pattern);
    if (options_.closure == ClosureRule::pinned) follow_requirements();
    leave_same_names();
    if (options_.closure == ClosureRule::pinned && options_.evict_auto) evict_unneeded();
    return finish();
  }

 private:
  void find(std::string code, Severity severity, std::string file, std::string what) {
    findings_.push_back({std::move(code), severity, std::move(file), std::move(what)});
  }

  void evict_listed() {
    for (const std::string& pattern : options_.evict) {
      bool is_used = false;
      for (u32 i = 0; i < base_.all().size(); ++i) {
        if (!name_matches(normalize_name(pattern), base_.all()[i].name())) continue;
        is_used = true;
        leaving_.try_emplace(i, Move{i, fmt::format("matches evict '{}'", pattern), true});
      }
      if (!is_used) find("evict_matches_nothing", Severity::warning, "", fmt::format("no distribution of the base matches evict '{}'", pattern));
    }
  }

  void select_pattern(const std::string& pattern) {
    bool is_used = false;
    for (const Installed& one : origin_.all()) {
      if (!name_matches(normalize_name(pattern), one.name())) continue;
      is_used = true;
      bring(one.name(), fmt::format("selected by '{}'", pattern));
    }
    if (!is_used) is_used = select_folder(pattern);
    if (!is_used) find("package_not_found", Severity::error, "", fmt::format("'{}' matches no distribution and no top-level folder of the origin", pattern));
  }

  /// What owns files below the folder or module. What nobody owns below it is said.
  bool select_folder(const std::string& folder) {
    std::size_t unowned = 0, files = 0;
    u64 bytes = 0;
    std::set<u32> owners;
    tree::RelPath first;
    const auto& entries = origin_.tree().entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto item = site_item(entries[i].path.bytes());
      if (!item || item->top() != folder || entries[i].is_dir()) continue;
      ++files;
      for (const DistributionSet::Claim& claim : origin_.claims(i)) owners.insert(claim.distribution);
      if (!origin_.claims(i).empty()) continue;
      if (unowned++ == 0) first = entries[i].path;
      bytes += entries[i].file() != nullptr ? entries[i].file()->size : 0;
    }
    for (const u32 owner : owners) bring(origin_.all()[owner].name(), fmt::format("owns files below '{}'", folder));
    if (owners.empty() && files > 0)
      find("no_distribution", Severity::error, first.bytes(),
           fmt::format("no dist-info of the origin owns the {} files ({}) below '{}'", unowned, human_bytes(bytes), folder));
    else if (unowned > 0)
      find("unowned_in_origin", Severity::warning, first.bytes(),
           fmt::format("{} files ({}) below '{}' belong to no distribution of the origin and do not come", unowned, human_bytes(bytes), folder));
    return files > 0;
  }

  void bring(const std::string& name, std::string why) {
    if (coming_.contains(name)) return;
    const std::vector<u32> found = origin_.named(name);
    if (found.size() > 1) {
      find("duplicate_distribution", Severity::error, origin_.all()[found[1]].about.folder.bytes(),
           fmt::format("the origin holds '{}' twice: {} and {}", name, origin_.all()[found[0]].about.folder.name(), origin_.all()[found[1]].about.folder.name()));
    }
    coming_.emplace(name, Move{found.front(), std::move(why), false});
    queue_.push_back(name);
  }

  void follow_requirements() {
    while (!queue_.empty()) {
      const std::string name = std::move(queue_.front());
      queue_.pop_front();
      const Installed& who = origin_.all()[coming_.at(name).index];
      const Extras extras = wanted_[name];
      for (const Requirement& what : who.requirements)
        if (what.applies(environment_, extras)) consider(who, what);
    }
  }

  /// Pins join; ranges join where the base does not meet them.
  void consider(const Installed& who, const Requirement& what) {
    Extras& extras = wanted_[what.name];
    const std::size_t before = extras.size();
    extras.insert(what.extras.begin(), what.extras.end());
    const bool has_grown = extras.size() > before;
    if (coming_.contains(what.name)) {
      if (has_grown) queue_.push_back(what.name);
      return;
    }
    const std::vector<u32> offered = origin_.named(what.name);
    const Installed* present = in_base(what);
    if (!offered.empty() && what.is_pin()) return bring(what.name, fmt::format("{} pins {}", who.label(), what.short_text()));
    const bool is_met = present != nullptr && what.versions.contains(present->about.version);
    if (!is_met && !offered.empty() && (present == nullptr || what.versions.contains(origin_.all()[offered.front()].about.version)))
      return bring(what.name, fmt::format("{} needs {}, which the base does not meet", who.label(), what.short_text()));
    if (present == nullptr || !has_grown) return;
    // The base's own may lack what an extra of it needs. A copy: considering may add to them.
    const Extras asked = extras;
    for (const Requirement& further : present->requirements)
      if (further.applies(environment_, asked) && !further.applies(environment_, {})) consider(*present, further);
  }

  /// The base's distribution that stays so far, one that fits before another; null where there is none.
  const Installed* in_base(const Requirement& what) const {
    const Installed* other = nullptr;
    for (const u32 i : base_.named(what.name)) {
      if (leaving_.contains(i)) continue;
      if (what.versions.contains(base_.all()[i].about.version)) return &base_.all()[i];
      other = &base_.all()[i];
    }
    return other;
  }

  void leave_same_names() {
    for (const auto& [name, move] : coming_)
      for (const u32 i : base_.named(name)) leaving_.insert_or_assign(i, Move{i, move.why, false});
  }

  std::vector<const Installed*> staying_but(const std::map<u32, std::string>& candidates) const {
    std::vector<const Installed*> out;
    for (u32 i = 0; i < base_.all().size(); ++i)
      if (!leaving_.contains(i) && !candidates.contains(i)) out.push_back(&base_.all()[i]);
    return out;
  }

  /// What the old versions pinned, through pins of pins: by index in the base, with who pinned it first.
  std::map<u32, std::string> pinned_by_old() const {
    std::vector<const Installed*> all;
    for (const Installed& one : base_.all()) all.push_back(&one);
    const World world(all, environment_);
    std::map<u32, std::string> out;
    std::deque<std::pair<u32, std::string>> queue;
    std::set<u32> seen;
    for (const auto& [i, move] : leaving_)
      if (!move.evicted && seen.insert(i).second) queue.emplace_back(i, base_.all()[i].label());
    while (!queue.empty()) {
      const auto [who, root] = std::move(queue.front());
      queue.pop_front();
      const Installed& one = base_.all()[who];
      for (const Requirement& what : one.requirements) {
        if (!what.is_pin() || !what.applies(environment_, world.extras_of(one.name()))) continue;
        for (const u32 i : base_.named(what.name)) {
          if (!seen.insert(i).second) continue;
          if (!leaving_.contains(i)) out.emplace(i, root);
          queue.emplace_back(i, root);
        }
      }
    }
    return out;
  }

  /// closure(old) - closure(new) - what anything that stays requires.
  void evict_unneeded() {
    std::map<u32, std::string> candidates = pinned_by_old();
    std::vector<const Installed*> coming;
    for (const auto& [_, move] : coming_) coming.push_back(&origin_.all()[move.index]);
    for (bool has_shrunk = !candidates.empty(); has_shrunk;) {
      has_shrunk = false;
      std::vector<const Installed*> members = staying_but(candidates);
      members.insert(members.end(), coming.begin(), coming.end());
      World(std::move(members), environment_).each_requirement([&](const Installed&, const Requirement& what) {
        for (const u32 i : base_.named(what.name)) has_shrunk = candidates.erase(i) > 0 || has_shrunk;
      });
    }
    for (const auto& [i, root] : candidates) leaving_.try_emplace(i, Move{i, fmt::format("only {} needed it", root), true});
    say_optional(candidates);
  }

  /// An extra that nobody names may have been asked for by hand, long ago.
  void say_optional(const std::map<u32, std::string>& evicted) {
    for (const Installed* who : staying_but({})) {
      const Extras all(who->provides_extra.begin(), who->provides_extra.end());
      for (const Requirement& what : who->requirements) {
        if (!what.marker || !what.applies(environment_, all)) continue;
        for (const u32 i : base_.named(what.name)) {
          if (!evicted.contains(i) || !what.versions.contains(base_.all()[i].about.version)) continue;
          find("evicted_optional", Severity::note, base_.all()[i].about.folder.bytes(),
               fmt::format("'{}' leaves; an extra of '{}' would need {}", base_.all()[i].label(), who->label(), what.short_text()));
        }
      }
    }
  }

  Selection finish() {
    Selection out;
    for (auto& [_, move] : coming_) out.coming.push_back(std::move(move));
    for (auto& [_, move] : leaving_) out.leaving.push_back(std::move(move));
    std::ranges::sort(out.coming, {}, &Move::index);
    return out;
  }

  const DistributionSet &base_, &origin_;
  const OverlayOptions& options_;
  const MarkerEnvironment& environment_;
  std::vector<Finding>& findings_;
  std::map<std::string, Move> coming_;  // by name
  std::map<u32, Move> leaving_;         // by index in the base
  std::map<std::string, Extras> wanted_;
  std::deque<std::string> queue_;       // of coming_, whose requirements are to be looked at
};

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, star_name = 0;
  while (n < name.size()) {
    std::size_t length = 0;  // of the pattern's element that takes name[n]
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[') {
      const auto [matches, end] = match_set(pattern.substr(p), name[n]);
      length = matches ? end : 0;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      length = 1;
    }
    if (length > 0) {
      p += length;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

Selection select(const DistributionSet& base, const DistributionSet& origin, const OverlayOptions& options, const MarkerEnvironment& environment,
                 std::vector<Finding>& findings) {
  return Selector(base, origin, options, environment, findings).select();
}

}  // namespace envsync::python
