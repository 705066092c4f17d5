// SPDX-License-Identifier: MIT
// The staged tree is finished, laid against the desired one entry by entry, made durable, and recorded as prepared.
#include <charconv>

#include <sys/utsname.h>

#include <fmt/format.h>

#include "store/hash_file.hpp"
#include "store/record.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kSyncEachMax = 2000;
constexpr u32 kOwnerWrite = 0200;

/// Before 5.8 syncfs tells nothing of data that was lost.
bool syncfs_tells_errors() {
  struct utsname name {};
  if (::uname(&name) != 0) return false;
  const std::string_view release = name.release;
  int major = 0, minor = 0;
  const auto first = std::from_chars(release.data(), release.data() + release.size(), major);
  if (first.ec != std::errc() || first.ptr == release.data() + release.size()) return false;
  std::from_chars(first.ptr + 1, release.data() + release.size(), minor);
  return major > 5 || (major == 5 && minor >= 8);
}

Error not_as_desired(const std::string& shown, std::string why) {
  return Error(ErrorCode::failed, fmt::format("the staged tree is not the desired one at '{}'", shown)).cause(std::move(why))
      .note("nothing was changed");
}

}  // namespace

Result<void> Transaction::Impl::finish_folders() {
  for (std::size_t k = extra_folders.size(); k-- > 0;) {
    const ExtraFolder& folder = extra_folders[k];
    TRY(const os::Fd fd, os::open_dir(dir.get(), staged_path(folder.path)));
    TRY_STATUS(files->chmod(fd.get(), folder.live.mode));
    TRY_STATUS(files->set_mtime(fd.get(), "", folder.live.mtime_ns));
  }
  for (std::size_t k = plan.folders.size(); k-- > 0;) {
    const u32 index = plan.folders[k];
    TRY(const os::Fd fd, os::open_dir(dir.get(), staged_path(desired()[index].path)));
    const bool is_root = desired()[index].path == begin.commit_root;
    const u32 mode = folder_modes[index] | (is_root && must_loosen(folder_modes[index]) ? kOwnerWrite : 0);
    TRY_STATUS(files->chmod(fd.get(), mode));
    // A folder whose entries change keeps the time of its making, or a running interpreter would not look into it again.
    const tree::Entry* old = base_entry(index);
    if (!old || !old->is_dir() || folder_changed[index]) continue;
    TRY_STATUS(files->set_mtime(fd.get(), "", observed.stats[plan.base_of[index]].mtime_ns));
  }
  return ok();
}

/// Stats of the staged tree against the desired entries. Content is what was verified when the noted inode was written or linked.
class StagedCheck {
 public:
  explicit StagedCheck(Transaction::Impl& t) : t_(t) {
    for (const ExtraFolder& folder : t.extra_folders) extra_.insert(folder.path.bytes());
  }

  Result<void> run() {
    WalkHooks hooks;
    hooks.known = [this](u32 index, const Met& met) { return known(index, met); };
    hooks.missing = [this](u32 index) -> Result<void> { return not_as_desired(t_.shown(t_.desired()[index].path), "it is missing"); };
    hooks.unknown = [this](const Met& met) -> Result<Into> {
      if (extra_.contains(met.path.bytes())) return Into::enter;
      if (t_.linked.contains(met.path.bytes())) return Into::skip;
      return not_as_desired(t_.shown(met.path), "it is not part of it");
    };
    return walk_against(t_.dir.get(), kNew, t_.begin.desired, t_.begin.commit_root, hooks);
  }

 private:
  Result<void> known(u32 index, const Met& met) {
    const tree::Entry& entry = t_.desired()[index];
    const std::string wrong = entry.is_dir() ? folder(index, met) : entry.file() ? file(index, entry, met) : symlink(entry, met);
    if (!wrong.empty()) return not_as_desired(t_.shown(entry.path), wrong);
    const bool is_kept = t_.plan.how[index] == How::keep && t_.staged[index].ino == t_.expected[t_.plan.base_of[index]].ino;
    const tree::ComparePolicy& policy = t_.begin.head.policy;
    if (policy.owner && tree::Owner{met.stat.uid, met.stat.gid} != entry.owner) return not_as_desired(t_.shown(entry.path), "its owner differs");
    if (!policy.xattrs || is_kept || entry.symlink()) return ok();
    TRY(auto xattrs, os::xattrs(met.dir, met.name));
    std::erase_if(xattrs, [&](const auto& x) { return !x.first.starts_with("user.") && !(policy.owner && x.first == "security.capability"); });
    auto wanted = entry.xattrs;
    if (!policy.owner) std::erase_if(wanted, [](const auto& x) { return x.first == "security.capability"; });
    if (xattrs != wanted) return not_as_desired(t_.shown(entry.path), "its attributes differ");
    return ok();
  }

  std::string folder(u32 index, const Met& met) const {
    if (met.stat.kind != os::Kind::directory) return "it is no folder";
    const bool is_loose = met.path == t_.begin.commit_root && must_loosen(t_.folder_modes[index]);
    const u32 mode = t_.folder_modes[index] | (is_loose ? kOwnerWrite : 0);
    return met.stat.mode == mode ? "" : fmt::format("its mode is {:o}, not {:o}", met.stat.mode, mode);
  }

  std::string file(u32 index, const tree::Entry& entry, const Met& met) const {
    if (met.stat.kind != os::Kind::file) return "it is no regular file";
    if (scan::key_of(met.stat) != t_.staged[index]) return "it changed since it was verified";
    if (met.stat.size != entry.file()->size) return "its size differs";
    if (met.stat.mode != entry.mode) return fmt::format("its mode is {:o}, not {:o}", met.stat.mode, entry.mode);
    const tree::ComparePolicy& policy = t_.begin.head.policy;
    const bool compares_mtime = policy.mtime || (policy.source_mtimes && entry.path.bytes().ends_with(".py"));
    if (compares_mtime && met.stat.mtime_ns != entry.mtime_ns) return "its time differs";
    return {};
  }

  std::string symlink(const tree::Entry& entry, const Met& met) const {
    if (met.stat.kind != os::Kind::symlink) return "it is no link";
    const auto target = os::read_link(met.dir, met.name);
    return target && *target == entry.symlink()->target ? "" : "its target differs";
  }

  Transaction::Impl& t_;
  std::unordered_set<std::string> extra_;
};

Result<void> Transaction::Impl::verify_staged(const StepSink& sink) {
  TRY_STATUS(StagedCheck(*this).run());
  if (!begin.verify_staged) return ok();
  std::vector<u32> all;
  u64 bytes = 0;
  for (u32 i = 0; i < plan.how.size(); ++i) {
    if (plan.how[i] == How::outside || !desired()[i].file()) continue;
    all.push_back(i);
    bytes += desired()[i].file()->size;
  }
  Progress progress(sink, Phase::seal, all.size(), bytes);
  TRY_STATUS(for_each_index(all.size(), 16, [&](std::size_t k) -> Result<void> {
    const tree::Entry& entry = desired()[all[k]];
    TRY(const auto found, hash_file(dir.get(), staged_path(entry.path)));
    bytes_read += found.size;
    progress.add(1, found.size);
    if (found != entry.file()->content()) return not_as_desired(shown(entry.path), "its content does not read back");
    return ok();
  }));
  progress.finish();
  return ok();
}

Result<void> Transaction::Impl::write_records() {
  TRY_STATUS(write_record(*files, dir.get(), kDesiredRecord, begin.head, begin.desired, begin.ground ? &*begin.ground : nullptr));
  const bool has_ground = base_head && !base_head->ground.is_zero();
  if (base_head) TRY_STATUS(write_record(*files, dir.get(), kBaseRecord, *base_head, observed.tree, has_ground ? &*begin.ground : nullptr));
  return ok();
}

Result<void> Transaction::Impl::make_durable(const StepSink& sink) {
  if (sink) sink({Phase::seal});
  const auto made_files = made();
  std::vector<std::string> paths;
  for (const u32 i : made_files) paths.push_back(staged_path(desired()[i].path));
  const bool each = paths.size() + plan.folders.size() + extra_folders.size() <= kSyncEachMax || space.network || !syncfs_tells_errors();
  if (!each) return files->syncfs(dir.get());
  for (const u32 i : plan.folders) paths.push_back(staged_path(desired()[i].path));
  for (const ExtraFolder& folder : extra_folders) paths.push_back(staged_path(folder.path));
  // DURABILITY: all that the exchange will show, and the names that lead to it.
  const std::size_t files_count = made_files.size();
  TRY_STATUS(for_each_index(paths.size(), 4, [&](std::size_t i) -> Result<void> {
    TRY(const os::Fd fd, i < files_count ? os::open_file(dir.get(), paths[i]) : os::open_dir(dir.get(), paths[i]));
    return files->fsync(fd.get(), paths[i]);
  }, Bound::waiting));
  TRY_STATUS(files->fsync(dir.get(), "the staging folder"));
  TRY(const os::Fd staging, os::open_dir(state->fd(), kStagingDir));
  return files->fsync(staging.get(), kStagingDir);
}

Result<void> Transaction::Impl::prepare() {
  TRY(const auto staged_marker, marker_of(dir.get(), kNew));
  if (!staged_marker) return not_as_desired(shown(begin.commit_root), "it is missing");
  terms.staged = *staged_marker;
  if (live) {
    TRY(const Spot spot, live_spot(state->place(), begin.commit_root));
    TRY(const auto base_marker, marker_of(spot.at, spot.name));
    const std::size_t root = *observed.tree.index_of(begin.commit_root);
    if (!base_marker || base_marker->ino != observed.stats[root].ino)
      return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' was replaced while the new tree was staged", shown(begin.commit_root)));
    terms.base = *base_marker;
    if (plan.root_is_dir) terms.base_mode = base()[root].mode;
  }
  if (plan.root_is_dir) terms.staged_mode = folder_modes[*begin.desired.index_of(begin.commit_root)];
  return journal.append(Entry::prepared, encode_terms(terms));
}

Result<void> Transaction::seal(const StepSink& sink) {
  Impl& t = *impl_;
  if (t.stage != Impl::Stage::building) return Error(ErrorCode::protocol, "a staged tree can be sealed once");
  {
    // Contents may have come over several connections, each read by a thread of its own: their last words are seen from here on.
    const std::lock_guard lock(t.put_mutex);
    if (t.wanted_left != 0) return Error(ErrorCode::protocol, fmt::format("{} contents of the staged tree have not come", t.wanted_left));
  }
  TRY_STATUS(t.finish_folders());
  TRY_STATUS(t.verify_staged(sink));
  TRY_STATUS(t.write_records());
  TRY_STATUS(t.make_durable(sink));
  TRY_STATUS(t.prepare());
  t.stage = Impl::Stage::sealed;
  return ok();
}

}  // namespace envsync::store
