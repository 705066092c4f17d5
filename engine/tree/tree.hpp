// SPDX-License-Identifier: MIT
// The value model: what an environment is, as sorted entries. No I/O.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <envsync/result.hpp>

#include "content/digest.hpp"
#include "tree/path.hpp"

namespace envsync::tree {

using content::ContentId;
using content::Digest;

struct Owner { u32 uid = 0, gid = 0; auto operator<=>(const Owner&) const = default; };
using Xattrs = std::vector<std::pair<std::string, std::string>>;  // sorted by name

struct Dir { auto operator<=>(const Dir&) const = default; };
struct File {
  u64 size = 0;
  Digest digest;
  u32 link_group = 0;  // files of one inode share a number, which is 1 + the index of the group's first entry; 0: alone
  ContentId content() const { return {digest, size}; }
  auto operator<=>(const File&) const = default;
};
struct Symlink { std::string target; auto operator<=>(const Symlink&) const = default; };

struct Entry {
  RelPath path;
  u32 mode = 0;          // & 07777; links: 0
  i64 mtime_ns = 0;      // files only; directories and links: 0
  Owner owner;
  Xattrs xattrs;
  std::variant<Dir, File, Symlink> body;

  const File* file() const { return std::get_if<File>(&body); }
  const Symlink* symlink() const { return std::get_if<Symlink>(&body); }
  bool is_dir() const { return std::holds_alternative<Dir>(body); }
  bool operator==(const Entry&) const = default;
};

/// What of an entry counts when trees are compared. Type, mode, content and link target always do.
struct ComparePolicy {
  bool owner = false;        // settings.owner: preserve
  bool mtime = false;        // settings.mtime: strict; of files
  bool xattrs = true;        // settings.xattrs: preserve
  bool hardlinks = true;     // settings.hardlinks: preserve
  bool source_mtimes = false;  // bytecode: ship; the mtimes of .py files
  u8 bits() const;
  static std::optional<ComparePolicy> from_bits(u8);
  auto operator<=>(const ComparePolicy&) const = default;
};

/// Sorted by the bytes of the path; begins with the root directory (path ""); every entry's parent is a directory
/// of the tree; link groups point at files of equal size, digest and metadata. A copy shares the entries, which stay where they are
/// as long as one copy lives. Copies may be used by several threads.
class Tree {
 public:
  Tree() = default;  // no entries: "absent"
  /// Checks everything that the class promises.
  static Result<Tree> from_sorted(std::vector<Entry> entries);
  /// Sorts, renumbers link groups (any equal non-zero numbers form a group) and then checks.
  static Result<Tree> from_unsorted(std::vector<Entry> entries);
  std::span<const Entry> entries() const { return data_ ? std::span<const Entry>(data_->entries) : std::span<const Entry>(); }
  bool is_absent() const { return !data_; }
  const Entry* find(const RelPath& path) const;
  std::optional<std::size_t> index_of(const RelPath& path) const;
  /// Entries of `path` and everything beneath it, in order. They are not contiguous in byte order ("a-b" lies
  /// between "a" and "a/b"), so this collects indexes.
  std::vector<std::size_t> below(const RelPath& path) const;
  u64 content_bytes() const;  // each link group once
  u64 file_count() const;

  /// The root digest: XXH3-128, seed 2; grammar in engine/FORMATS.md. Absent: the zero digest.
  Digest root(const ComparePolicy&) const;
  /// Over everything an Entry holds: names a tree in a cache. Computed once.
  Digest full() const;

 private:
  struct Data {
    std::vector<Entry> entries;
    std::once_flag is_full_known;  // guards full
    Digest full;
  };
  std::shared_ptr<Data> data_;     // entries never change: 86,000 of them take 25 MB
};

enum class ChangeKind : u8 { added, removed, content, metadata, type };
struct Change {
  const Entry* from = nullptr;  // borrows both trees
  const Entry* to = nullptr;
  ChangeKind kind = ChangeKind::content;
};
/// In path order. A hard-link group whose membership differs shows as metadata changes of its members.
std::vector<Change> diff(const Tree& from, const Tree& to, const ComparePolicy&);
/// Of the contents that the changes ask for: those that `tree` has somewhere.
std::unordered_set<content::ContentId, content::ContentIdHash> held_contents(const Tree& tree, const std::vector<Change>& changes);
/// Equal by the policy, link groups aside.
bool same_metadata(const Entry& a, const Entry& b, const ComparePolicy&);
bool same_content(const Entry& a, const Entry& b);

/// A tree as a difference to another: what is put (added or replaced), what is gone.
struct TreeDelta {
  Digest base;               // Tree::full() of the base; zero: the absent tree
  Digest result;             // Tree::full() of the result: checked by apply_delta
  std::vector<Entry> put;
  std::vector<RelPath> gone;
};
/// Exact: over every field, policies do not matter.
TreeDelta make_delta(const Tree& base, const Tree& result);
Result<Tree> apply_delta(const Tree& base, const TreeDelta& delta);

/// Column encoding: prefix-compressed paths, varints, raw digests, then zstd; grammar in engine/FORMATS.md.
/// LIMIT: at most 4,000,000 entries and 1 GiB decoded.
Bytes encode_tree(const Tree& tree);
Result<Tree> decode_tree(ByteView bytes);
Bytes encode_delta(const TreeDelta& delta);
Result<TreeDelta> decode_delta(ByteView bytes);

}  // namespace envsync::tree
