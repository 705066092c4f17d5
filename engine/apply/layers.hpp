// SPDX-License-Identifier: MIT
// Overlays laid onto one target's base, in order: the desired tree, and from which origin each of its new contents comes.
#pragma once

#include <map>
#include <memory>

#include "apply/source.hpp"
#include "python/overlay.hpp"

namespace envsync::apply {

struct Layer {
  const manifest::Overlay* overlay = nullptr;  // the manifest's
  Source* origin = nullptr;                    // outlives this
};

/// Where the small files of the base come from, and the sums of others.
struct BaseReader {
  std::function<Result<python::SmallFiles>(const std::vector<tree::RelPath>&)> texts;
  std::function<Result<python::Sums>(const std::vector<tree::RelPath>&)> sums;
};

struct TakenFrom {
  std::size_t layer = 0;
  tree::RelPath path;  // in the origin's tree
};

struct Layered {
  tree::Tree desired;
  std::map<tree::RelPath, TakenFrom> taken;    // by path in the desired tree; what is in neither is the base's
  std::map<tree::RelPath, std::string> made;   // files whose text the controller writes
  python::SmallFiles texts;                    // small files of the desired tree
  std::vector<python::PackageStep> steps;
  std::vector<Finding> findings;
};

/// `made`: files of the base whose text is written here already. `root`: the target's environment, absolute; `python`: the version of the base's pyvenv.cfg.
Result<Layered> lay_layers(Run& run, const tree::Tree& base, const BaseReader& reader, const std::vector<Layer>& layers, const std::string& root,
                           std::string_view python, std::map<tree::RelPath, std::string> made = {});

}  // namespace envsync::apply
