// SPDX-License-Identifier: MIT
#include "tree/tree.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "tree/validate.hpp"

namespace envsync::tree {

namespace {

bool by_path(const Entry& a, const Entry& b) { return a.path < b.path; }

std::string_view parent_bytes(const RelPath& path) {
  const std::size_t slash = path.bytes().rfind('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(path.bytes()).substr(0, slash);
}

/// The entry of `path` among the sorted `entries`.
const Entry* lookup(std::span<const Entry> entries, std::string_view path) {
  const auto at = std::ranges::lower_bound(entries, path, {}, [](const Entry& e) { return std::string_view(e.path.bytes()); });
  return at != entries.end() && at->path.bytes() == path ? &*at : nullptr;
}

Result<void> check_order_and_parents(std::span<const Entry> entries) {
  if (!entries.front().path.is_root()) return bad_tree(entries.front().path, "it comes first, where the root must be");
  std::string_view known_dir;  // the last parent found: neighbours mostly share theirs
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const RelPath& path = entries[i].path;
    if (!(entries[i - 1].path < path)) return bad_tree(path, entries[i - 1].path == path ? "it is there twice" : "it is not in order");
    const std::string_view parent = parent_bytes(path);
    if (parent == known_dir) continue;
    const Entry* dir = lookup(entries.first(i), parent);
    if (dir == nullptr || !dir->is_dir()) return bad_tree(path, "its parent is no directory of the tree");
    known_dir = parent;
  }
  return ok();
}

bool same_inode(const Entry& a, const Entry& b) {
  return a.file()->content() == b.file()->content() && a.mode == b.mode && a.mtime_ns == b.mtime_ns && a.owner == b.owner &&
         a.xattrs == b.xattrs;
}

Result<void> check_groups(std::span<const Entry> entries) {
  std::unordered_map<u32, u32> members;  // of groups
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const File* file = entries[i].file();
    if (file == nullptr || file->link_group == 0) continue;
    const std::size_t first = file->link_group - 1u;
    if (first > i) return bad_tree(entries[i].path, "its link group begins after it");
    const File* leader = entries[first].file();
    if (leader == nullptr || leader->link_group != file->link_group) return bad_tree(entries[i].path, "its link group has no first file");
    if (!same_inode(entries[first], entries[i])) return bad_tree(entries[i].path, "it differs from a file of its link group");
    ++members[file->link_group];
  }
  for (const auto& [group, count] : members)
    if (count < 2) return bad_tree(entries[group - 1].path, "it is alone in a link group");
  return ok();
}

/// Numbers each group by its first entry; a group of one is no group.
void renumber_groups(std::vector<Entry>& entries) {
  struct Group { u32 first = 0, members = 0; };
  std::unordered_map<u32, Group> groups;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const File* file = entries[i].file();
    if (file == nullptr || file->link_group == 0) continue;
    Group& group = groups[file->link_group];
    if (group.members++ == 0) group.first = static_cast<u32>(i + 1);
  }
  if (groups.empty()) return;
  for (Entry& entry : entries) {
    File* file = std::get_if<File>(&entry.body);
    if (file == nullptr || file->link_group == 0) continue;
    const Group& group = groups[file->link_group];
    file->link_group = group.members > 1 ? group.first : 0;
  }
}

}  // namespace

Result<Tree> Tree::from_sorted(std::vector<Entry> entries) {
  Tree tree;
  if (entries.empty()) return tree;
  if (entries.size() > kEntriesMax) return Error(ErrorCode::corrupt, fmt::format("a tree of {} entries, at most {} are allowed", entries.size(), kEntriesMax));
  for (const Entry& entry : entries)
    if (const auto wrong = wrong_with(entry)) return bad_tree(entry.path, *wrong);
  TRY_STATUS(check_order_and_parents(entries));
  TRY_STATUS(check_groups(entries));
  tree.data_ = std::make_shared<Data>();
  tree.data_->entries = std::move(entries);
  return tree;
}

Result<Tree> Tree::from_unsorted(std::vector<Entry> entries) {
  if (!std::ranges::is_sorted(entries, by_path)) std::ranges::sort(entries, by_path);
  if (entries.size() <= kEntriesMax) renumber_groups(entries);
  return from_sorted(std::move(entries));
}

std::optional<std::size_t> Tree::index_of(const RelPath& path) const {
  const Entry* found = lookup(entries(), path.bytes());
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(found - entries().data());
}

const Entry* Tree::find(const RelPath& path) const { return lookup(entries(), path.bytes()); }

std::vector<std::size_t> Tree::below(const RelPath& path) const {
  std::vector<std::size_t> indexes;
  if (path.is_root()) {
    indexes.resize(entries().size());
    std::iota(indexes.begin(), indexes.end(), std::size_t{0});
    return indexes;
  }
  if (const auto self = index_of(path)) indexes.push_back(*self);
  const std::string prefix = path.bytes() + '/';
  const auto all = entries();
  auto at = std::ranges::lower_bound(all, std::string_view(prefix), {}, [](const Entry& e) { return std::string_view(e.path.bytes()); });
  for (; at != all.end() && at->path.bytes().starts_with(prefix); ++at)
    indexes.push_back(static_cast<std::size_t>(at - all.begin()));
  return indexes;
}

u64 Tree::content_bytes() const {
  u64 total = 0;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    const File* file = entries()[i].file();
    if (file != nullptr && (file->link_group == 0 || file->link_group == i + 1)) total += file->size;
  }
  return total;
}

u64 Tree::file_count() const {
  return static_cast<u64>(std::ranges::count_if(entries(), [](const Entry& e) { return e.file() != nullptr; }));
}

}  // namespace envsync::tree
