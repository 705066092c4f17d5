// SPDX-License-Identifier: MIT
// Private to python/: which distributions an overlay brings, and which ones leave for it.
#pragma once

#include <functional>

#include "python/overlay.hpp"

namespace envsync::python {

/// A pattern with *, ?, [a-z] and [!a-z] against a name; both normalized.
bool name_matches(std::string_view pattern, std::string_view name);

struct Move {
  u32 index = 0;    // in all() of its side
  std::string why;
  bool evicted = false;  // leaves although nothing of its name comes
};
struct Selection {
  std::vector<Move> coming;   // of the origin, by index
  std::vector<Move> leaving;  // of the base, by index
};
Selection select(const DistributionSet& base, const DistributionSet& origin, const OverlayOptions& options, const MarkerEnvironment& environment,
                 std::vector<Finding>& findings);

/// Distributions that live together: what they require of each other. Borrows them.
class World {
 public:
  World(std::vector<const Installed*> members, const MarkerEnvironment& environment);
  /// Visits each requirement that applies, through the extras that members ask of each other.
  void each_requirement(const std::function<void(const Installed& who, const Requirement& what)>& visit) const;
  /// The extras that members ask of `name`.
  const Extras& extras_of(const std::string& name) const;
  /// A member of the name whose version fits; null where there is none.
  const Installed* provider(const Requirement& requirement) const;
  const Installed* named(const std::string& name) const;

 private:
  std::vector<const Installed*> members_;  // sorted by name
  const MarkerEnvironment& environment_;
  std::map<std::string, Extras> extras_;
};

/// Requirements that the plan breaks or leaves unmet.
void find_unmet(const World& base, const World& origin, const World& desired, const std::vector<const Installed*>& coming, std::vector<Finding>& findings);

}  // namespace envsync::python
