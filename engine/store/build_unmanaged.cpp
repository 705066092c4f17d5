// SPDX-License-Identifier: MIT
// Unmanaged entries come into the staged tree as hard links, never as copies: a process that appends to a log through an open
// descriptor goes on writing the live file. Bytecode of a folder that goes, goes with it; other entries keep their folder.
#include <cerrno>
#include <map>

#include <fmt/format.h>

#include "store/host_xattrs.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kFoldersPerThread = 16, kWarningsMax = 20;

Error in_the_way(const std::string& shown, std::string why) {
  return Error(ErrorCode::place_refused, fmt::format("'{}', which envsync does not manage, cannot be kept", shown)).cause(std::move(why));
}

}  // namespace

/// First looks: which files are to be linked and which folders they need. Then makes.
class UnmanagedBuild {
 public:
  explicit UnmanagedBuild(Transaction::Impl& t) : t_(t), commit_root_(t.begin.commit_root) {}

  Result<void> run() {
    for (const scan::Unmanaged& entry : t_.observed.unmanaged) {
      if (!commit_root_.contains(entry.path) || entry.path == commit_root_) continue;
      TRY_STATUS(top(entry));
    }
    for (auto& [bytes, folder] : folders_)
      if (folder.is_needed) need_parents(folder.path);
    for (auto& [bytes, folder] : folders_)
      if (folder.is_needed && !folder.is_desired) TRY_STATUS(make(folder));
    std::vector<const Folder*> work;
    for (const auto& [bytes, folder] : folders_)
      if (!folder.names.empty()) work.push_back(&folder);
    return for_each_index(work.size(), kFoldersPerThread, [&](std::size_t i) { return link(*work[i]); });
  }

 private:
  struct Folder {
    tree::RelPath path;
    std::vector<std::string> names;   // to be linked
    bool is_needed = false, is_desired = false;
  };

  Folder& folder(const tree::RelPath& path) {
    Folder& found = folders_[path.bytes()];
    found.path = path;
    const tree::Entry* entry = t_.begin.desired.find(path);
    found.is_desired = entry && entry->is_dir();
    return found;
  }

  Result<void> top(const scan::Unmanaged& entry) {
    const tree::RelPath parent = entry.path.parent();
    const tree::Entry* desired = t_.begin.desired.find(parent);
    const bool parent_goes = !desired || !desired->is_dir();
    const bool is_dir = entry.kind == os::Kind::directory;
    if (parent_goes && entry.is_bytecode) return ok();
    if (t_.dropped.whole(entry.path, is_dir)) return ok();
    if (is_dir && entry.path.name().starts_with(".envsync"))
      return in_the_way(t_.shown(entry.path), "it is the state of an environment inside this one");
    if (parent_goes) TRY_STATUS(keep_parent(entry.path));
    if (!is_dir) return leaf(entry.path);
    return inside(entry.path, !entry.is_bytecode);
  }

  /// The folder of `path` goes, or becomes no folder.
  Result<void> keep_parent(const tree::RelPath& path) {
    for (tree::RelPath up = path.parent(); up != commit_root_; up = up.parent()) {
      const tree::Entry* entry = t_.begin.desired.find(up);
      if (entry && !entry->is_dir()) return in_the_way(t_.shown(path), fmt::format("'{}' is no longer a folder", printable(up.bytes())));
      if (entry) break;
    }
    if (t_.warnings.size() < kWarningsMax)
      t_.warnings.push_back(fmt::format("'{}' stays: it is not managed, and its folder is gone from the source", printable(path.bytes())));
    return ok();
  }

  Result<void> leaf(const tree::RelPath& path) {
    if (t_.dropped.whole(path, false) || t_.begin.desired.find(path)) return ok();
    Folder& in = folder(path.parent());
    in.is_needed = true;
    in.names.emplace_back(path.name());
    return ok();
  }

  /// `keep_empty`: an excluded folder stays though nothing of it does; one of bytecode does not.
  Result<void> inside(const tree::RelPath& top, bool keep_empty) {
    std::vector<tree::RelPath> pending{top};
    while (!pending.empty()) {
      const tree::RelPath path = std::move(pending.back());
      pending.pop_back();
      if (t_.dropped.whole(path, true)) continue;
      const tree::Entry* desired = t_.begin.desired.find(path);
      if (desired && !desired->is_dir()) continue;
      if (keep_empty) folder(path).is_needed = true;
      auto opened = os::open_dir(t_.live.get(), path.bytes());
      if (!opened && opened.error().sys_errno == EXDEV) return in_the_way(t_.shown(path), "a filesystem is mounted there");
      if (!opened) return std::move(opened).error();
      TRY(const auto entries, os::list(opened->get(), path.bytes()));
      for (const os::DirEntry& entry : entries) {
        if (!tree::is_component(entry.name)) return in_the_way(t_.shown(path), "it holds a name that is too long");
        os::Kind kind = entry.kind;
        if (kind == os::Kind::other) {
          TRY(const auto stat, os::stat_if_exists(opened->get(), entry.name));
          if (!stat) continue;
          kind = stat->kind;
        }
        tree::RelPath child = path.child(entry.name);
        if (kind == os::Kind::directory) pending.push_back(std::move(child));
        else TRY_STATUS(leaf(child));
      }
    }
    return ok();
  }

  void need_parents(const tree::RelPath& path) {
    for (tree::RelPath up = path; up != commit_root_ && !folder(up).is_desired; up = up.parent()) folder(up).is_needed = true;
  }

  /// The map's order puts a folder before what is in it. Mode and time follow at the seal.
  Result<void> make(const Folder& folder) {
    const std::string rel = t_.staged_path(folder.path);
    TRY(const os::Stat live, os::stat_at(t_.live.get(), folder.path.bytes()));
    if (live.immutable || live.append_only) return fixed_entry(t_.shown(folder.path));
    TRY_STATUS(t_.files->mkdir(t_.dir.get(), rel, 0700));
    TRY(const os::Fd fd, os::open_dir(t_.dir.get(), rel));
    TRY_STATUS(give_owner(*t_.files, fd.get(), {live.uid, live.gid}, false));
    tree::ComparePolicy nothing_decided;
    nothing_decided.xattrs = false;
    TRY_STATUS(give_xattrs(*t_.files, fd.get(), {}, t_.live.get(), folder.path.bytes(), {nothing_decided, true}));
    t_.extra_folders.push_back({folder.path, live});
    return ok();
  }

  Result<void> link(const Folder& folder) {
    TRY(const os::Fd from, os::open_dir(t_.live.get(), folder.path.bytes()));
    TRY(const os::Fd to, os::open_dir(t_.dir.get(), t_.staged_path(folder.path)));
    for (const std::string& name : folder.names) {
      TRY(const auto before, os::stat_if_exists(from.get(), name));
      if (!before) continue;  // gone since it was listed
      const tree::RelPath path = folder.path.child(name);
      if (before->mount_root) return in_the_way(t_.shown(path), "a filesystem is mounted there");
      if (before->immutable || before->append_only) return fixed_entry(t_.shown(path));
      auto linked = t_.files->link(from.get(), name, to.get(), name);
      if (!linked && linked.error().sys_errno == ENOENT) continue;
      if (!linked) return std::move(linked).error().context(fmt::format("'{}', which envsync does not manage, cannot be kept", t_.shown(path)));
      TRY(const os::Stat after, os::stat_at(to.get(), name));
      t_.note_link(*before, after);
      const std::lock_guard lock(t_.link_mutex);
      t_.linked[path.bytes()] = after.ino;
    }
    return ok();
  }

  Transaction::Impl& t_;
  const tree::RelPath& commit_root_;
  std::map<std::string, Folder> folders_;
};

Result<void> Transaction::Impl::link_unmanaged() {
  if (!live || !plan.root_is_dir) return ok();
  return UnmanagedBuild(*this).run();
}

}  // namespace envsync::store
