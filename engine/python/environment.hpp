// SPDX-License-Identifier: MIT
// What a Python environment is, read from a tree: its distributions, its base interpreter, its bytecode. No I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "tree/tree.hpp"

namespace envsync::python {

/// PEP 503: lower case, runs of -_. become one '-'.
std::string normalize_name(std::string_view name);

struct Distribution {
  std::string name;          // normalized
  std::string display_name;  // as the folder says
  std::string version;
  tree::RelPath folder;      // of the dist-info or egg-info
};
/// From the names of *.dist-info (and *.egg-info) folders in every lib*/python*/site-packages. Sorted by name.
std::vector<Distribution> distributions(const tree::Tree& tree);

/// pyvenv.cfg, read loosely: keys in lower case.
std::map<std::string, std::string> parse_pyvenv(std::string_view text);
/// "3.12" from its version or version_info key; empty where there is none.
std::string pyvenv_version(const std::map<std::string, std::string>& cfg);
/// True where `version` (3.12.4) begins with the components of `pin` (3.12; 3.1 does not match 3.12).
bool version_matches(std::string_view pin, std::string_view version);

/// Groups changed paths by package: top-level folder or dist-info of site-packages gives the distribution.
/// `bytes` of a line is content that `from` does not hold anywhere.
struct PackageChanges {
  std::vector<PackageLine> lines;   // sorted by name; paths outside any package are the line named ""
  u64 unchanged = 0;
};
PackageChanges package_changes(const tree::Tree& from, const tree::Tree& to, const std::vector<tree::Change>& changes);

/// Prefixes (bytes of paths) of bytecode that must not reach the new tree: D/__pycache__/m. for a source that changed or went, D/x.pyc
/// beside it, D/__pycache__/ where D goes. Sorted.
std::vector<std::string> stale_bytecode(const std::vector<tree::Change>& changes);

}  // namespace envsync::python
