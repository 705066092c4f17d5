// SPDX-License-Identifier: MIT
#include "python/selection.hpp"

#include "python/site_packages.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace envsync::python {
namespace {

struct Bare {
  u64 files = 0, bytes = 0;
  tree::RelPath first;
};

/// Top-level folders of site-packages with files that no dist-info of the origin owns.
std::map<std::string, Bare, std::less<>> bare_folders(const DistributionSet& origin) {
  std::map<std::string, Bare, std::less<>> out;
  const auto& entries = origin.tree().entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!origin.is_unowned_file(i)) continue;
    const auto item = site_item(entries[i].path.bytes());
    if (!item || item->top() == item->below) continue;
    auto found = out.find(item->top());
    if (found == out.end()) found = out.emplace(std::string(item->top()), Bare{0, 0, entries[i].path}).first;
    ++found->second.files;
    found->second.bytes += entries[i].file() != nullptr ? entries[i].file()->size : 0;
  }
  return out;
}

/// `nvidia` may hold what is called nvidia-cublas.
bool may_hold(std::string_view folder, std::string_view name) {
  const std::string prefix = normalize_name(folder);
  return name.starts_with(prefix) && (name.size() == prefix.size() || name[prefix.size()] == '-');
}

}  // namespace

void find_bare_folders(const DistributionSet& origin, const std::vector<Unmet>& unmet, const OverlayOptions& options, std::vector<Finding>& findings) {
  // Who takes no closure has said that what is needed is not to come; a folder that is named is judged by that name.
  if (unmet.empty() || options.closure == ClosureRule::none) return;
  for (const auto& [folder, bare] : bare_folders(origin)) {
    const auto is_named = [&](const std::vector<std::string>& names) { return std::ranges::find(names, folder) != names.end(); };
    if (is_named(options.roots) || is_named(options.packages)) continue;
    const auto needs = [&](const Unmet& one) { return may_hold(folder, one.what->name); };
    const auto first = std::ranges::find_if(unmet, needs);
    if (first == unmet.end()) continue;
    const auto others = std::ranges::count_if(unmet, needs) - 1;
    findings.push_back({"no_distribution", Severity::error, bare.first.bytes(),
                        fmt::format("'{}' needs {}{}, and no dist-info of the origin owns the {} files ({}) below '{}'", first->who->label(),
                                    first->what->short_text(), others > 0 ? fmt::format(" and {} more", others) : "", bare.files,
                                    human_bytes(bare.bytes), printable(folder))});
  }
}

}  // namespace envsync::python
