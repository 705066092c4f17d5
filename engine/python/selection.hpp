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

/// A requirement of what comes that nothing meets, neither after the plan nor in the origin.
struct Unmet {
  const Installed* who = nullptr;  // of the origin
  const Requirement* what = nullptr;
};
/// Requirements that the plan breaks or leaves unmet.
std::vector<Unmet> find_unmet(const World& base, const World& origin, const World& desired, const std::vector<const Installed*>& coming,
                              std::vector<Finding>& findings);
/// Of unmet ones, those whose files lie in the origin without their dist-infos, as a folder `nvidia` that was copied by hand.
void find_bare_folders(const DistributionSet& origin, const std::vector<Unmet>& unmet, const OverlayOptions& options, std::vector<Finding>& findings);

}  // namespace envsync::python
