// SPDX-License-Identifier: MIT
// Which bytecode on a target must go with its source. Python believes a .pyc whose recorded mtime (whole seconds) and
// size match the source's, so what an older source left can run in a newer one's place.
#include "python/environment.hpp"

#include <algorithm>
#include <unordered_set>

namespace envsync::python {
namespace {

constexpr std::string_view kSourceSuffix = ".py";
constexpr std::string_view kCacheFolder = "__pycache__/";

bool is_source(const tree::Entry* entry) {
  return entry != nullptr && !entry->is_dir() && entry->path.name().ends_with(kSourceSuffix) && entry->path.name().size() > kSourceSuffix.size();
}

bool is_dir(const tree::Entry* entry) { return entry != nullptr && entry->is_dir(); }

std::string folder_prefix(const tree::RelPath& folder) { return folder.is_root() ? std::string() : folder.bytes() + "/"; }

}  // namespace

std::vector<std::string> stale_bytecode(const std::vector<tree::Change>& changes) {
  std::vector<std::string> out;
  std::unordered_set<std::string> folders;  // that come or go: their __pycache__ is dropped whole
  for (const tree::Change& change : changes) {
    if (is_dir(change.from) == is_dir(change.to)) continue;
    const tree::RelPath& folder = (change.to != nullptr ? change.to : change.from)->path;
    // Where the whole tree comes, nothing was there that could hold bytecode.
    if (folder.is_root() && change.from == nullptr) return {};
    folders.insert(folder.bytes());
    out.push_back(folder_prefix(folder) + std::string(kCacheFolder));
  }
  for (const tree::Change& change : changes) {
    if (change.kind == tree::ChangeKind::metadata || (!is_source(change.from) && !is_source(change.to))) continue;
    const tree::RelPath& path = (change.to != nullptr ? change.to : change.from)->path;
    const std::string folder = folder_prefix(path.parent());
    const std::string module(path.name().substr(0, path.name().size() - kSourceSuffix.size()));
    const bool is_folder_new_or_gone = folders.contains(path.parent().bytes());
    if (is_folder_new_or_gone && change.from == nullptr) continue;
    if (!is_folder_new_or_gone) out.push_back(folder + std::string(kCacheFolder) + module + ".");
    out.push_back(folder + module + ".pyc");
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace envsync::python
