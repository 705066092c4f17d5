// SPDX-License-Identifier: MIT
// The difference of two trees for a reader (diff) and for the wire (delta).
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "tree/tree.hpp"
#include "tree/validate.hpp"

namespace envsync::tree {

namespace {

constexpr u32 kSetgid = 02000;
/// Group numbers of a delta's entries, moved away from the base's. LIMIT: both are at most kEntriesMax.
constexpr u32 kPutGroups = 1u << 31;

/// For each link group, by its number, the digest of its members' paths: groups of two trees with equal digests have equal members.
using Memberships = std::unordered_map<u32, Digest>;

Memberships memberships(const Tree& tree) {
  std::unordered_map<u32, Bytes> members;
  for (const Entry& entry : tree.entries())
    if (const File* file = entry.file(); file && file->link_group != 0) put_string(members[file->link_group], entry.path.bytes());
  Memberships digests;
  for (const auto& [group, paths] : members) digests.emplace(group, content::digest_of(paths));
  return digests;
}

Digest membership(const Memberships& groups, const Entry& entry) {
  const File* file = entry.file();
  return file == nullptr || file->link_group == 0 ? Digest{} : groups.at(file->link_group);
}

/// Calls visit(from, to) for every path of either tree, in order; one of them may be null.
template <class Visit>
void for_each_pair(std::span<const Entry> from, std::span<const Entry> to, Visit visit) {
  std::size_t i = 0, k = 0;
  while (i < from.size() || k < to.size()) {
    const int order = i == from.size() ? 1 : k == to.size() ? -1 : from[i].path.bytes().compare(to[k].path.bytes());
    const Entry* a = order <= 0 ? &from[i++] : nullptr;
    const Entry* b = order >= 0 ? &to[k++] : nullptr;
    visit(a, b);
  }
}

bool same_but_group(const Entry& a, const Entry& b) {
  return a.body.index() == b.body.index() && a.mode == b.mode && a.mtime_ns == b.mtime_ns && a.owner == b.owner &&
         a.xattrs == b.xattrs && same_content(a, b);
}

}  // namespace

bool same_content(const Entry& a, const Entry& b) {
  if (a.body.index() != b.body.index()) return false;
  if (a.file()) return a.file()->content() == b.file()->content();
  if (a.symlink()) return *a.symlink() == *b.symlink();
  return true;
}

bool same_metadata(const Entry& a, const Entry& b, const ComparePolicy& policy) {
  const auto mode = [&](const Entry& e) { return e.is_dir() && !policy.owner ? e.mode & ~kSetgid : e.mode; };
  if (mode(a) != mode(b)) return false;
  if (policy.owner && a.owner != b.owner) return false;
  if (policy.xattrs && a.xattrs != b.xattrs) return false;
  const bool is_source = policy.source_mtimes && a.path.bytes().ends_with(".py");
  if ((policy.mtime || is_source) && a.file() && b.file() && a.mtime_ns != b.mtime_ns) return false;
  return true;
}

std::vector<Change> diff(const Tree& from, const Tree& to, const ComparePolicy& policy) {
  const Memberships from_groups = policy.hardlinks ? memberships(from) : Memberships{};
  const Memberships to_groups = policy.hardlinks ? memberships(to) : Memberships{};
  const auto same_group = [&](const Entry& a, const Entry& b) {
    return !policy.hardlinks || membership(from_groups, a) == membership(to_groups, b);
  };
  std::vector<Change> changes;
  for_each_pair(from.entries(), to.entries(), [&](const Entry* a, const Entry* b) {
    if (a == nullptr) changes.push_back({a, b, ChangeKind::added});
    else if (b == nullptr) changes.push_back({a, b, ChangeKind::removed});
    else if (a->body.index() != b->body.index()) changes.push_back({a, b, ChangeKind::type});
    else if (!same_content(*a, *b)) changes.push_back({a, b, ChangeKind::content});
    else if (!same_metadata(*a, *b, policy) || !same_group(*a, *b)) changes.push_back({a, b, ChangeKind::metadata});
  });
  return changes;
}

std::unordered_set<content::ContentId, content::ContentIdHash> held_contents(const Tree& tree, const std::vector<Change>& changes) {
  std::unordered_set<content::ContentId, content::ContentIdHash> asked, held;
  for (const Change& change : changes)
    if (const File* file = change.to != nullptr ? change.to->file() : nullptr) asked.insert(file->content());
  if (asked.empty()) return held;
  for (const Entry& entry : tree.entries())
    if (const File* file = entry.file(); file != nullptr && asked.contains(file->content())) held.insert(file->content());
  return held;
}

TreeDelta make_delta(const Tree& base, const Tree& result) {
  const Memberships base_groups = memberships(base), result_groups = memberships(result);
  TreeDelta delta{.base = base.full(), .result = result.full(), .put = {}, .gone = {}};
  for_each_pair(base.entries(), result.entries(), [&](const Entry* a, const Entry* b) {
    if (b == nullptr) delta.gone.push_back(a->path);
    // A group whose members stay keeps its place in the base, though its number may move: it is not sent.
    else if (a == nullptr || !same_but_group(*a, *b) || membership(base_groups, *a) != membership(result_groups, *b)) delta.put.push_back(*b);
  });
  return delta;
}

Result<Tree> apply_delta(const Tree& base, const TreeDelta& delta) {
  if (base.full() != delta.base) return Error(ErrorCode::corrupt, "a difference to another tree than the one at hand");
  std::vector<Entry> entries;
  entries.reserve(base.entries().size() + delta.put.size());
  auto gone = delta.gone.begin();
  bool has_strays = false;
  for_each_pair(base.entries(), delta.put, [&](const Entry* old, const Entry* put) {
    const RelPath& path = put ? put->path : old->path;
    bool is_gone = false;
    for (; gone != delta.gone.end() && *gone <= path; ++gone) {
      // What goes must be in the base and not be put at the same time.
      if (*gone == path && put == nullptr) is_gone = true;
      else has_strays = true;
    }
    if (is_gone) return;
    entries.push_back(put ? *put : *old);
    File* file = put ? std::get_if<File>(&entries.back().body) : nullptr;
    if (file != nullptr && file->link_group != 0) file->link_group |= kPutGroups;
  });
  if (has_strays || gone != delta.gone.end()) return Error(ErrorCode::corrupt, "a difference that removes what is not there");
  TRY(Tree tree, Tree::from_unsorted(std::move(entries)));
  if (tree.full() != delta.result) return Error(ErrorCode::corrupt, "a difference that does not give the tree it names");
  return tree;
}

}  // namespace envsync::tree
