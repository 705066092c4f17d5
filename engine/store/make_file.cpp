// SPDX-License-Identifier: MIT
// New inodes of the staged tree. A file is complete, with its metadata, before its key is noted; and a file that has another
// link is never opened for writing, chmod-ed or re-timed.
#include <cerrno>

#include <unistd.h>

#include <fmt/format.h>

#include "store/hash_file.hpp"
#include "store/host_xattrs.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr u32 kUnchangedId = ~u32{0}, kWorking = 0600;

}  // namespace

Result<void> Transaction::Impl::finish_file(u32 index, int fd, bool is_fresh) {
  const tree::Entry& entry = desired()[index];
  const tree::Entry* old = base_entry(index);
  if (old && old->is_dir()) old = nullptr;
  tree::Owner owner{kUnchangedId, kUnchangedId};
  if (!is_fresh) {
    owner = {::geteuid(), ::getegid()};
    TRY_STATUS(files->chmod(fd, kWorking));  // attributes want the owner's write bit
    TRY_STATUS(remove_strange_xattrs(*files, fd, entry.xattrs));
  }
  if (begin.preserve_owner) {
    owner = entry.owner;
  } else if (old) {
    owner = old->owner;
  } else if (!entry.path.is_root() && entry.path != begin.commit_root) {
    const u32 gid = folder_gids[*begin.desired.index_of(entry.path.parent())];
    if (gid != kNoIndex) owner.gid = gid;
  }
  // In this order: a change of owner takes setuid bits and capabilities away.
  TRY_STATUS(give_owner(*files, fd, owner, begin.preserve_owner));
  const XattrRules rules{begin.head.policy, old && tree::same_content(*old, entry)};
  TRY_STATUS(give_xattrs(*files, fd, entry.xattrs, old ? live.get() : -1, entry.path.bytes(), rules));
  TRY_STATUS(files->chmod(fd, entry.mode));
  if (begin.write_mtime) return files->set_mtime(fd, "", entry.mtime_ns);
  if (old && rules.same_content) return files->set_mtime(fd, "", old->mtime_ns);
  return ok();
}

Result<void> Transaction::Impl::make_small(u32 index, ByteView bytes) {
  const std::string rel = staged_path(desired()[index].path);
  TRY(const os::Fd fd, files->create(dir.get(), rel, kWorking));
  TRY_STATUS(files->write_at(fd.get(), 0, bytes, rel));
  TRY_STATUS(finish_file(index, fd.get(), true));
  TRY(const os::Stat stat, os::stat_fd(fd.get()));
  staged[index] = scan::key_of(stat);
  bytes_written += bytes.size();
  return ok();
}

Result<bool> Transaction::Impl::make_copy(u32 index, int from) {
  const tree::Entry& entry = desired()[index];
  const std::string rel = staged_path(entry.path);
  TRY(const os::Fd fd, files->create(dir.get(), rel, kWorking));
  TRY(const Copied copied, copy_file(*files, from, fd.get(), entry.path.bytes()));
  bytes_read += copied.content.size;
  if (!copied.is_reflink) bytes_written += copied.content.size;
  if (copied.content != entry.file()->content()) {
    TRY_STATUS(files->unlink(dir.get(), rel));
    return false;
  }
  TRY_STATUS(finish_file(index, fd.get(), true));
  TRY(const os::Stat stat, os::stat_fd(fd.get()));
  staged[index] = scan::key_of(stat);
  return true;
}

Result<void> Transaction::Impl::take_file(u32 index, int at, const std::string& rel) {
  const std::string to = staged_path(desired()[index].path);
  TRY_STATUS(files->rename_noreplace(at, rel, dir.get(), to));
  TRY(const os::Fd fd, os::open_file(dir.get(), to));
  TRY(const os::Stat before, os::stat_fd(fd.get()));
  if (before.nlink != 1) return os::os_error(EMLINK, "take over", to);
  TRY_STATUS(finish_file(index, fd.get(), false));
  TRY(const os::Stat stat, os::stat_fd(fd.get()));
  staged[index] = scan::key_of(stat);
  return ok();
}

Result<void> Transaction::Impl::join_members(u32 index) {
  const auto group = plan.members.find(index);
  if (group == plan.members.end()) return ok();
  const std::string first = staged_path(desired()[index].path);
  for (const u32 member : group->second) TRY_STATUS(files->link(dir.get(), first, dir.get(), staged_path(desired()[member].path)));
  TRY(const os::Stat stat, os::stat_at(dir.get(), first));
  staged[index] = scan::key_of(stat);
  for (const u32 member : group->second) staged[member] = staged[index];
  return ok();
}

Result<void> Transaction::Impl::finish_content(const std::vector<u32>& users) {
  const tree::Entry& first = desired()[users.front()];
  for (std::size_t i = 1; i < users.size(); ++i) {
    TRY(const os::Fd from, os::open_file(dir.get(), staged_path(first.path)));
    TRY(const bool is_same, make_copy(users[i], from.get()));
    if (!is_same) return Error(ErrorCode::io, fmt::format("'{}' does not read back as it was written", staged_path(first.path)));
  }
  for (const u32 user : users) TRY_STATUS(join_members(user));
  return ok();
}

Result<void> Transaction::Impl::make_symlink(u32 index) {
  const tree::Entry& entry = desired()[index];
  const std::string rel = staged_path(entry.path);
  TRY_STATUS(files->symlink(entry.symlink()->target, dir.get(), rel));
  const tree::Entry* old = base_entry(index);
  const tree::Owner owner = begin.preserve_owner ? entry.owner : old && !old->is_dir() ? old->owner : tree::Owner{kUnchangedId, kUnchangedId};
  TRY(os::Stat stat, os::stat_at(dir.get(), rel));
  if (owner.uid != kUnchangedId && (owner.uid != stat.uid || owner.gid != stat.gid)) {
    auto given = files->chown(dir.get(), rel, owner.uid, owner.gid);
    if (!given && (begin.preserve_owner || given.error().sys_errno != EPERM)) return given;
    TRY(stat, os::stat_at(dir.get(), rel));
  }
  staged[index] = scan::key_of(stat);
  return ok();
}

}  // namespace envsync::store
