// SPDX-License-Identifier: MIT
// Private to manifest/: the sections of a manifest as they are read, before what spans them is checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "manifest/manifest.hpp"
#include "manifest/values.hpp"

namespace envsync::manifest {

struct DraftHost {
  Host host;
  Mark mark;
};

struct DraftOverlay {
  Overlay overlay;
  Mark mark;
};

struct Draft {
  std::string name;
  std::string path;                 // the manifest's, empty: none
  bool is_path_refused = false;     // reported already: what lacks a path is no further error
  std::optional<Source> source;
  Mark source_mark;
  std::string targets_path;
  std::vector<DraftHost> targets;
  std::vector<DraftOverlay> overlays;
  std::vector<Accept> accept;
  Invariants invariants;
  Settings settings;
};

/// An environment's path; empty where the key is absent or its value is reported.
std::string read_path(const Field* field, Problems& problems);
std::optional<Transport> read_transport(const Field& field, Problems& problems);
void read_source(const Field& field, Draft& draft, Problems& problems);
void read_targets(const Field& field, const ReadHosts& read_hosts, Draft& draft, Problems& problems);
void read_overlays(const Field& field, Draft& draft, Problems& problems);
void read_accept(const Field& field, Draft& draft, Problems& problems);
/// Compute capabilities such as 10.3.
void read_gpu(const Field* field, std::vector<std::string>& out, Problems& problems);
void read_invariants(const Field& field, Draft& draft, Problems& problems);
void read_settings(const Field& field, Draft& draft, Problems& problems);

/// Fills paths in and reports what contradicts itself across sections.
void complete(Draft& draft, Problems& problems);

/// Puts the value of each key=value into the map `root`, as if it stood in the file.
void apply_overrides(Node& root, const std::vector<std::string>& overrides, Problems& problems);

}  // namespace envsync::manifest
