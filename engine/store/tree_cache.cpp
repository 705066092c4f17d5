// SPDX-License-Identifier: MIT
#include "store/tree_cache.hpp"

#include <algorithm>

#include "os/process.hpp"

namespace envsync::store {

namespace {

constexpr std::size_t kFileMax = 256u << 20;  // LIMIT: an encoded tree

std::string last_name(const std::string& label) { return "last-" + content::digest_of(as_bytes(label)).hex(); }

}  // namespace

TreeCache::TreeCache(os::Files& files, const std::string& folder) : files_(&files) {
  if (folder.empty()) return;
  auto dir = os::open_dir_absolute(folder);
  if (!dir) return;
  (void)files.mkdir(dir->get(), "trees", 0700);
  if (auto trees = os::open_dir(dir->get(), "trees")) trees_ = std::move(*trees);
}

std::optional<tree::Tree> TreeCache::find(const content::Digest& full) const {
  if (full.is_zero()) return tree::Tree{};
  if (!trees_) return std::nullopt;
  auto text = os::read_small(trees_.get(), full.hex(), kFileMax);
  if (!text) return std::nullopt;
  auto tree = tree::decode_tree(as_bytes(*text));
  if (!tree || tree->full() != full) return std::nullopt;
  return std::move(*tree);
}

bool TreeCache::has(const content::Digest& full) const {
  const auto there = trees_ ? os::stat_if_exists(trees_.get(), full.hex()) : Result<std::optional<os::Stat>>(std::nullopt);
  return there && *there;
}

void TreeCache::keep(const std::string& label, const tree::Tree& tree, const content::Digest& full) {
  if (!trees_) return;
  const std::string name = full.hex();
  const auto there = os::stat_if_exists(trees_.get(), name);
  if (there && *there) {
    (void)files_->set_mtime(trees_.get(), name, os::filesystem_clock_ns());
  } else if (!tree.is_absent()) {
    write(name, tree::encode_tree(tree));
    sweep();
  }
  write(last_name(label), as_bytes(name));
}

/// By a rename, so that a reader sees all or nothing; not synced: a file that a power cut left short fails its digest and is a miss.
void TreeCache::write(const std::string& name, ByteView bytes) {
  (void)os::replace_cache_file(*files_, trees_.get(), name, bytes);
}

std::optional<content::Digest> TreeCache::last(const std::string& label) const {
  if (!trees_) return std::nullopt;
  const auto text = os::read_small(trees_.get(), last_name(label), 64);
  if (!text) return std::nullopt;
  return content::Digest::parse(*text);
}

void TreeCache::sweep() {
  const auto entries = os::list(trees_.get(), "trees");
  if (!entries || entries->size() <= 2 * kTreesMax) return;
  std::vector<std::pair<i64, std::string>> by_age;
  for (const os::DirEntry& entry : *entries)
    if (const auto st = os::stat_at(trees_.get(), entry.name)) by_age.emplace_back(st->mtime_ns, entry.name);
  std::sort(by_age.begin(), by_age.end());
  for (std::size_t i = 0; i + kTreesMax < by_age.size(); ++i) (void)files_->unlink(trees_.get(), by_age[i].second);
}

}  // namespace envsync::store
