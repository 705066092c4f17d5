// SPDX-License-Identifier: MIT
#include "python/record_check.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace envsync::python {
namespace {

bool is_among(const std::vector<std::string>& names, const std::string& name) { return names.empty() || std::ranges::find(names, name) != names.end(); }

/// Whether a.b.c is a module or a package of the folder; one that is compiled carries tags after its name.
bool has_module(const tree::Tree& tree, const tree::RelPath& site, const std::string& module) {
  std::string below = module;
  std::ranges::replace(below, '.', '/');
  const auto path = tree::RelPath::parse(below);
  if (!path || path->is_root()) return false;
  const tree::RelPath whole = site.join(*path);
  if (tree.find(whole) != nullptr) return true;
  const std::string prefix = whole.bytes() + ".";
  const auto& entries = tree.entries();
  const auto next = std::ranges::lower_bound(entries, prefix, {}, [](const tree::Entry& entry) { return entry.path.bytes(); });
  return next != entries.end() && next->path.bytes().starts_with(prefix);
}

}  // namespace

std::vector<ExpectedFile> expected_files(const DistributionSet& set, const std::vector<std::string>& names) {
  std::map<std::size_t, ExpectedFile> found;  // by entry
  for (const Installed& one : set.all()) {
    if (!is_among(names, one.name())) continue;
    for (const OwnedEntry& owned : one.owned) {
      const tree::Entry& entry = set.tree().entries()[owned.entry];
      if (owned.sum && entry.file() != nullptr && !entry.path.name().ends_with(".pyc")) found.try_emplace(owned.entry, ExpectedFile{entry.path, {}, one.label()});
    }
  }
  std::vector<ExpectedFile> out;
  for (auto& [entry, expected] : found) {
    for (const DistributionSet::Claim& claim : set.claims(entry))
      if (const auto& sum = set.all()[claim.distribution].owned[claim.owned].sum) expected.any_of.push_back(*sum);
    out.push_back(std::move(expected));
  }
  return out;
}

std::vector<Finding> check_sums(const std::vector<ExpectedFile>& expected, const Sums& sums, Severity severity) {
  std::vector<Finding> out;
  for (const ExpectedFile& file : expected) {
    const auto sum = sums.find(file.path.bytes());
    if (sum != sums.end() && std::ranges::find(file.any_of, sum->second) != file.any_of.end()) continue;
    out.push_back({"record_mismatch", severity, file.path.bytes(), 
                   fmt::format("{} what the RECORD of '{}' says", sum == sums.end() ? "a file that is not there, against" : "other content than", file.owner)});
  }
  return out;
}

std::vector<Finding> check_complete(const DistributionSet& set, const std::vector<std::string>& names, Severity severity) {
  std::vector<Finding> out;
  for (const Installed& one : set.all()) {
    if (!is_among(names, one.name())) continue;
    if (!one.missing.empty()) {
      out.push_back({"incomplete", severity, one.missing.front().path.bytes(), fmt::format("'{}' lacks {} of the files that its RECORD lists", one.label(), one.missing.size())});
    }
    for (const EntryPoint& point : one.scripts) {
      const auto script = tree::RelPath::parse("bin/" + point.name);
      const bool is_there = script && set.tree().find(*script) != nullptr;
      // The code of an editable install lies elsewhere.
      if (!is_there || one.editable || has_module(set.tree(), one.site, point.module)) continue;
      out.push_back({"script_without_module", severity, script->bytes(), fmt::format("'{}' of '{}' starts {}, which is not there", point.name, one.label(), point.module)});
    }
  }
  return out;
}

}  // namespace envsync::python
