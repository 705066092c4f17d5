// SPDX-License-Identifier: MIT
#include "python/selection.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace envsync::python {

World::World(std::vector<const Installed*> members, const MarkerEnvironment& environment) : members_(std::move(members)), environment_(environment) {
  std::ranges::sort(members_, {}, [](const Installed* one) { return std::string_view(one->name()); });
  // Each round may switch on requirements that ask for further extras. They only grow, so that it ends.
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    each_requirement([&](const Installed&, const Requirement& what) {
      if (what.extras.empty()) return;
      Extras& extras = extras_[what.name];
      const std::size_t before = extras.size();
      extras.insert(what.extras.begin(), what.extras.end());
      has_grown = has_grown || extras.size() > before;
    });
  }
}

void World::each_requirement(const std::function<void(const Installed&, const Requirement&)>& visit) const {
  for (const Installed* one : members_) {
    // A copy: what is visited may add to them.
    const Extras extras = extras_of(one->name());
    for (const Requirement& what : one->requirements)
      if (what.applies(environment_, extras)) visit(*one, what);
  }
}

const Extras& World::extras_of(const std::string& name) const {
  static const Extras kNone;
  const auto found = extras_.find(name);
  return found == extras_.end() ? kNone : found->second;
}

const Installed* World::named(const std::string& name) const {
  const auto found = std::ranges::lower_bound(members_, std::string_view(name), {}, [](const Installed* one) { return std::string_view(one->name()); });
  return found != members_.end() && (*found)->name() == name ? *found : nullptr;
}

const Installed* World::provider(const Requirement& requirement) const {
  auto at = std::ranges::lower_bound(members_, std::string_view(requirement.name), {}, [](const Installed* one) { return std::string_view(one->name()); });
  for (; at != members_.end() && (*at)->name() == requirement.name; ++at)
    if (requirement.versions.contains((*at)->about.version)) return *at;
  return nullptr;
}

std::vector<Unmet> find_unmet(const World& base, const World& origin, const World& desired, const std::vector<const Installed*>& coming,
                              std::vector<Finding>& findings) {
  std::vector<Unmet> out;
  desired.each_requirement([&](const Installed& who, const Requirement& what) {
    if (desired.provider(what) != nullptr) return;
    const Installed* there = desired.named(what.name);
    const std::string instead = there != nullptr ? fmt::format("{} is there", there->label()) : "it is not there";
    const std::string file = who.about.folder.child("METADATA").bytes();
    const bool comes = std::ranges::find(coming, &who) != coming.end();
    if (comes) {
      const bool is_unmet_there = origin.provider(what) == nullptr;
      const std::string_view origin_too = is_unmet_there ? "; so it is in the origin" : "";
      findings.push_back({"requirement_unmet", Severity::warning, file, fmt::format("'{}' needs {}, {}{}", who.label(), what.short_text(), instead, origin_too)});
      if (is_unmet_there) out.push_back({&who, &what});
    } else if (base.provider(what) != nullptr) {
      // What stays and was unmet before this plan is no news.
      findings.push_back({"requirement_broken", Severity::warning, file, fmt::format("'{}' stays and needs {}, {}", who.label(), what.short_text(), instead)});
    }
  });
  return out;
}

}  // namespace envsync::python
