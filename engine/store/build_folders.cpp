// SPDX-License-Identifier: MIT
// The folders of the staged tree, made before anything in them. What no policy decides comes from the live folder at the same
// path; a new one inherits as if it were made in place. Modes and times follow at the seal.
#include <fmt/format.h>

#include "store/host_xattrs.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr u32 kSetgid = 02000, kWorking = 0700;
constexpr u32 kUnchangedId = ~u32{0};

}  // namespace

Result<void> Transaction::Impl::make_folders() {
  for (const u32 index : plan.folders) TRY_STATUS(make_folder(index));
  for (u32 i = 0; i < plan.how.size(); ++i) {
    const bool is_new = plan.how[i] == How::make || plan.how[i] == How::join || plan.how[i] == How::symlink ||
                        (plan.how[i] == How::folder && (!base_entry(i) || !base_entry(i)->is_dir()));
    if (is_new && desired()[i].path != begin.commit_root) folder_changed[*begin.desired.index_of(desired()[i].path.parent())] = true;
  }
  for (u32 i = 0; i < plan.desired_of.size(); ++i) {
    if (plan.desired_of[i] != kNoIndex) continue;
    if (const auto parent = begin.desired.index_of(base()[i].path.parent())) folder_changed[*parent] = true;
  }
  return ok();
}

Result<void> Transaction::Impl::make_folder(u32 index) {
  const tree::Entry& entry = desired()[index];
  const std::string rel = staged_path(entry.path);
  const tree::Entry* old = base_entry(index);
  if (old && !old->is_dir()) old = nullptr;
  u32 parent_gid = kNoIndex;
  if (!entry.path.is_root() && entry.path != begin.commit_root) {
    parent_gid = folder_gids[*begin.desired.index_of(entry.path.parent())];
  } else if (!old) {
    TRY(const os::Stat parent, os::stat_fd(state->place().parent.get()));
    if (parent.mode & kSetgid) parent_gid = parent.gid;
  }
  TRY_STATUS(files->mkdir(dir.get(), rel, kWorking));
  TRY(const os::Fd fd, os::open_dir(dir.get(), rel));
  u32 mode = entry.mode;
  tree::Owner owner{kUnchangedId, kUnchangedId};
  if (begin.preserve_owner) {
    owner = entry.owner;
  } else {
    mode &= ~kSetgid;
    if (old) {
      mode |= old->mode & kSetgid;
      owner = old->owner;
    } else if (parent_gid != kNoIndex) {
      mode |= kSetgid;
      owner.gid = parent_gid;
    }
  }
  TRY_STATUS(give_owner(*files, fd.get(), owner, begin.preserve_owner));
  const XattrRules xattr_rules{begin.head.policy, true};
  TRY_STATUS(give_xattrs(*files, fd.get(), entry.xattrs, old ? live.get() : -1, entry.path.bytes(), xattr_rules));
  // At once, so that what is made inside inherits the group.
  if (mode & kSetgid) TRY_STATUS(files->chmod(fd.get(), kWorking | kSetgid));
  folder_modes[index] = mode;
  if (mode & kSetgid) {
    TRY(const os::Stat made, os::stat_fd(fd.get()));
    folder_gids[index] = made.gid;
  }
  return ok();
}

}  // namespace envsync::store
