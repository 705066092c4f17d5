// SPDX-License-Identifier: MIT
// What stays as it is: a hard link of the live entry. A link moves the inode's ctime, for all of its names; what the commit must
// find, and what the stat cache believes, moves with it.
#include <cerrno>

#include <fmt/format.h>

#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kFoldersPerThread = 32;

bool cannot_link(const Error& error) {
  return error.sys_errno == EMLINK || error.sys_errno == EPERM || error.sys_errno == EXDEV || error.sys_errno == EOPNOTSUPP;
}

bool same_but_ctime(const scan::StatKey& a, const scan::StatKey& b) {
  return a.ino == b.ino && a.size == b.size && a.mtime_ns == b.mtime_ns;
}

}  // namespace

Error fixed_entry(const std::string& shown) {
  return Error(ErrorCode::place_refused, fmt::format("'{}' cannot be replaced", shown))
      .cause("it is marked immutable or append-only")
      .hint(fmt::format("run `chattr -i -a '{}'`", shown));
}

void Transaction::Impl::note_link(const os::Stat& before, const os::Stat& after) {
  if (before.nlink <= 1) return;
  const std::lock_guard lock(link_mutex);
  i64& newest = ctimes[after.ino];
  newest = std::max(newest, after.ctime_ns);
}

/// Another name of an inode may have been linked after its first one was looked at.
void Transaction::Impl::settle_ctimes() {
  if (ctimes.empty()) return;
  for (u32 i = 0; i < plan.how.size(); ++i) {
    if (plan.how[i] == How::outside || plan.how[i] == How::folder || plan.base_of[i] == kNoIndex) continue;
    scan::StatKey& key = expected[plan.base_of[i]];
    const auto found = ctimes.find(key.ino);
    if (found == ctimes.end()) continue;
    key.ctime_ns = found->second;
    if (staged[i].ino == key.ino) staged[i].ctime_ns = found->second;
  }
  for (u32 i = 0; i < plan.desired_of.size(); ++i) {
    if (plan.desired_of[i] != kNoIndex) continue;
    if (const auto found = ctimes.find(expected[i].ino); found != ctimes.end() && base()[i].file()) expected[i].ctime_ns = found->second;
  }
}

Result<void> Transaction::Impl::keep_entry(u32 index, int live_dir, int new_dir, const std::string& name) {
  const tree::Entry& entry = desired()[index];
  const u32 old = plan.base_of[index];
  TRY(const os::Stat before, os::stat_at(live_dir, name));
  if (before.immutable || before.append_only) return fixed_entry(shown(entry.path));
  const tree::File* file = base()[old].file();
  // Another name of the inode, linked by us a moment ago, has moved its ctime.
  const bool is_grouped = file && file->link_group != 0;
  const bool is_same = is_grouped ? same_but_ctime(scan::key_of(before), observed.stats[old]) && before.mode == base()[old].mode
                                  : scan::key_of(before) == observed.stats[old];
  if (!is_same) return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' changed while the new tree was staged", shown(entry.path)));
  auto linked_now = files->link(live_dir, name, new_dir, name);
  if (!linked_now && cannot_link(linked_now.error())) {
    if (!file) return make_symlink(index);
    TRY(const os::Fd from, os::open_file(live_dir, name));
    TRY(const bool is_copied, make_copy(index, from.get()));
    if (!is_copied) return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' changed while the new tree was staged", shown(entry.path)));
    ++files_copied;
    return ok();
  }
  TRY_STATUS(std::move(linked_now));
  TRY(const os::Stat after, os::stat_at(new_dir, name));
  const bool is_still = same_but_ctime(scan::key_of(after), observed.stats[old]) && after.mode == before.mode && after.uid == before.uid && after.gid == before.gid;
  if (!is_still) return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' changed while the new tree was staged", shown(entry.path)));
  expected[old] = staged[index] = scan::key_of(after);
  note_link(before, after);
  cache->moved(observed.stats[old], expected[old]);
  ++files_linked;
  return ok();
}

Result<void> Transaction::Impl::keep_entries(const StepSink& sink) {
  const Children children(begin.desired, begin.commit_root);
  u64 total = 0;
  for (const How how : plan.how) total += how == How::keep;
  Progress progress(sink, Phase::stage, total, 0);
  if (!plan.root_is_dir) {
    const u32 root = static_cast<u32>(*begin.desired.index_of(begin.commit_root));
    return plan.how[root] == How::symlink ? make_symlink(root) : ok();
  }
  TRY_STATUS(for_each_index(plan.folders.size(), kFoldersPerThread, [&](std::size_t k) -> Result<void> {
    const tree::RelPath& folder = desired()[plan.folders[k]].path;
    os::Fd live_dir, new_dir;
    for (const u32 index : children.of(folder)) {
      if (plan.how[index] == How::symlink) TRY_STATUS(make_symlink(index));
      if (plan.how[index] != How::keep) continue;
      if (!live_dir) {
        TRY(live_dir, os::open_dir(live.get(), folder.bytes()));
        TRY(new_dir, os::open_dir(dir.get(), staged_path(folder)));
      }
      TRY_STATUS(keep_entry(index, live_dir.get(), new_dir.get(), std::string(desired()[index].path.name())));
      progress.add(1, 0);
    }
    return ok();
  }));
  progress.finish();
  return ok();
}

}  // namespace envsync::store
