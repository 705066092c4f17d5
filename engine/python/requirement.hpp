// SPDX-License-Identifier: MIT
// Requirements and environment markers as PEP 508 has them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/types.hpp>

#include "python/version.hpp"

namespace envsync::python {

/// What markers ask of the environment that will run.
struct MarkerEnvironment {
  std::string os_name = "posix", sys_platform = "linux", platform_system = "Linux", platform_machine = "x86_64";
  std::string platform_release, platform_version;
  std::string platform_python_implementation = "CPython", implementation_name = "cpython", implementation_version;
  std::string python_version;       // "3.12"
  std::string python_full_version;  // "3.12.4"
  /// Of CPython on Linux: full from the version of pyvenv.cfg ("3.12", "3.12.4", "3.12.4.final.0").
  static MarkerEnvironment for_python(std::string_view version, std::string_view machine = "x86_64");
};

using Extras = std::set<std::string, std::less<>>;  // normalized names

class Marker {
 public:
  static std::optional<Marker> parse(std::string_view text);
  /// `extra == "x"` holds where x is among `extras`. What PEP 508 leaves undefined ("~=" on words) is false.
  bool holds(const MarkerEnvironment& environment, const Extras& extras) const;

 private:
  friend class MarkerParser;
  enum class Kind : u8 { compare, all, any };
  struct Operand { bool is_variable = false; std::string text; };
  struct Node {
    Kind kind = Kind::compare;
    Operand left, right;
    std::string op;
    std::vector<u32> children;  // indexes of earlier nodes
  };
  bool holds(u32 node, const MarkerEnvironment& environment, const Extras& extras) const;
  std::vector<Node> nodes_;  // the last is the whole
};

struct Requirement {
  std::string text;       // as written
  std::string name;       // normalized
  Extras extras;
  SpecifierSet versions;
  std::string url;        // "name @ url"; empty: by version
  std::optional<Marker> marker;

  /// nullopt where the text is no requirement.
  static std::optional<Requirement> parse(std::string_view text);
  bool applies(const MarkerEnvironment& environment, const Extras& extras) const { return !marker || marker->holds(environment, extras); }
  bool is_pin() const { return versions.is_pin() || !url.empty(); }
  /// "triton==3.6.0", without the marker.
  std::string short_text() const;
};

}  // namespace envsync::python
