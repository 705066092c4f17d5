// SPDX-License-Identifier: MIT
#include "python/inspection.hpp"

#include <algorithm>

#include "python/environment.hpp"
#include "python/lint.hpp"
#include "python/path_findings.hpp"
#include "python/site_packages.hpp"

namespace envsync::python {
namespace {

constexpr std::string_view kCache = "__pycache__";

DistributionFacts facts_of(const DistributionSet& set, const Installed& one) {
  DistributionFacts out{one.about.name, one.about.version, one.installer, 0, 0, one.missing.size(), one.editable, one.unreadable};
  for (const OwnedEntry& owned : one.owned) {
    const tree::Entry& entry = set.tree().entries()[owned.entry];
    ++out.files;
    if (entry.file() != nullptr) out.bytes += entry.file()->size;
  }
  return out;
}

std::vector<DistributionFacts> distributions_of(const DistributionSet& set) {
  std::vector<DistributionFacts> out;
  for (const Installed& one : set.all()) out.push_back(facts_of(set, one));
  std::ranges::stable_sort(out, std::greater{}, &DistributionFacts::bytes);
  return out;
}

/// Whether the claims of an entry say different contents.
bool is_differing(const DistributionSet& set, std::span<const DistributionSet::Claim> claims) {
  const auto owned = [&](const DistributionSet::Claim& claim) -> const OwnedEntry& { return set.all()[claim.distribution].owned[claim.owned]; };
  return std::ranges::any_of(claims, [&](const auto& claim) {
    const OwnedEntry &first = owned(claims.front()), &other = owned(claim);
    return (first.sum && other.sum && *first.sum != *other.sum) || (first.size && other.size && *first.size != *other.size);
  });
}

std::vector<SharedPaths> shared_of(const DistributionSet& set) {
  std::map<std::vector<std::string>, SharedPaths> by_owners;
  for (std::size_t i = 0; i < set.tree().entries().size(); ++i) {
    const auto claims = set.claims(i);
    if (claims.size() < 2) continue;
    std::vector<std::string> owners;
    for (const DistributionSet::Claim& claim : claims) owners.push_back(set.all()[claim.distribution].name());
    std::ranges::sort(owners);
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    SharedPaths& group = by_owners[owners];
    ++group.paths;
    if (!is_differing(set, claims)) continue;
    ++group.differing;
    if (set.effective_owners(i).empty()) ++group.unmatched;
  }
  std::vector<SharedPaths> out;
  for (auto& [owners, group] : by_owners) {
    group.owners = owners;
    out.push_back(std::move(group));
  }
  std::ranges::stable_sort(out, std::greater{}, &SharedPaths::paths);
  return out;
}

/// The source of a bytecode file: D/x.py of D/__pycache__/x.cpython-312.pyc and of D/x.pyc. Nothing where the name is none of bytecode.
struct Compiled { std::string source; bool is_cached = false; };
std::optional<Compiled> compiled(const tree::RelPath& path) {
  const std::string_view name = path.name();
  if (!name.ends_with(".pyc")) return std::nullopt;
  const tree::RelPath folder = path.parent();
  const bool is_cached = folder.name() == kCache;
  const tree::RelPath home = is_cached ? folder.parent() : folder;
  const std::string_view module = name.substr(0, is_cached ? name.find('.') : name.size() - 4);
  return Compiled{(home.is_root() ? "" : home.bytes() + "/") + std::string(module) + ".py", is_cached};
}

BytecodeFacts bytecode_of(const tree::Tree& tree) {
  BytecodeFacts out;
  for (const tree::Entry& entry : tree.entries()) {
    if (entry.file() == nullptr) continue;
    const auto what = compiled(entry.path);
    if (!what) continue;
    ++out.files;
    out.bytes += entry.file()->size;
    const auto path = tree::RelPath::parse(what->source);
    const tree::Entry* source = path ? tree.find(*path) : nullptr;
    if (source == nullptr) ++(what->is_cached ? out.orphaned : out.sourceless);
    else if (entry.mtime_ns < source->mtime_ns) ++out.older;
  }
  return out;
}

std::string made_by(const std::map<std::string, std::string>& cfg) {
  for (const std::string tool : {"uv", "virtualenv"})
    if (const auto found = cfg.find(tool); found != cfg.end()) return tool + " " + found->second;
  return {};
}

std::string value_of(const std::map<std::string, std::string>& cfg, const std::string& key) {
  const auto found = cfg.find(key);
  return found == cfg.end() ? std::string() : found->second;
}

}  // namespace

Inspection inspect(const DistributionSet& set, const SmallFiles& launchers, std::string_view pyvenv, std::string_view root) {
  Inspection out;
  const auto cfg = parse_pyvenv(pyvenv);
  out.python_version = value_of(cfg, "version_info");
  if (out.python_version.empty()) out.python_version = value_of(cfg, "version");
  out.implementation = value_of(cfg, "implementation");
  out.made_by = made_by(cfg);
  out.base = value_of(cfg, "home");
  out.distributions = distributions_of(set);
  out.shared = shared_of(set);
  out.bytecode = bytecode_of(set.tree());
  const auto entries = set.tree().entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_dir()) continue;
    ++out.files;
    const u64 size = entries[i].file() != nullptr ? entries[i].file()->size : 0;
    if (!site_item(entries[i].path.bytes()) || !set.is_unowned_file(i) || compiled(entries[i].path)) continue;
    ++out.unowned_files;
    out.unowned_bytes += size;
  }
  out.bytes = set.tree().content_bytes();
  out.findings = lint(set, nullptr);
  std::ranges::move(find_paths(set, launchers, {root, root}), std::back_inserter(out.findings));
  return out;
}

}  // namespace envsync::python
