// SPDX-License-Identifier: MIT
// The small files of a dist-info beside RECORD, read loosely: what does not fit the form is passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace envsync::python {

struct Metadata {
  std::string name;                        // as written
  std::string version;
  std::string requires_python;             // specifiers; empty: any
  std::vector<std::string> requires_dist;  // as written, one requirement each
  std::vector<std::string> provides_extra;
};
/// The headers of METADATA (or PKG-INFO); the description after the first empty line is not looked at.
Metadata parse_metadata(std::string_view text);

/// One script that an installer generates: bin/<name> calls module:object.
struct EntryPoint {
  std::string name, module, object;
  bool operator==(const EntryPoint&) const = default;
};
/// [console_scripts] and [gui_scripts] of entry_points.txt, in order.
std::vector<EntryPoint> parse_scripts(std::string_view entry_points);

/// direct_url.json says that the code lies elsewhere.
bool is_editable(std::string_view direct_url);

}  // namespace envsync::python
