// SPDX-License-Identifier: MIT
// What is asked before anything is built: can this place hold the guarantee, is there room, may the tree be replaced.
#include <cerrno>

#include <fmt/format.h>

#include "store/record.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

Error place_refused(const std::string& shown, std::string why) {
  return Error(ErrorCode::place_refused, fmt::format("'{}' cannot be swapped at once", shown)).cause(std::move(why))
      .note("nothing was changed");
}

bool is_unsupported(const Error& error) {
  return error.sys_errno == EINVAL || error.sys_errno == ENOSYS || error.sys_errno == EOPNOTSUPP;
}

/// By doing it, with two folders of ours.
Result<void> probe_rename(os::Files& files, int tx, const std::string& shown, bool exchange) {
  TRY_STATUS(files.mkdir(tx, "probe-a", 0700));
  if (exchange) TRY_STATUS(files.mkdir(tx, "probe-b", 0700));
  auto renamed = exchange ? files.rename_exchange(tx, "probe-a", tx, "probe-b") : files.rename_noreplace(tx, "probe-a", tx, "probe-b");
  for (const char* name : {"probe-a", "probe-b"}) {
    auto gone = files.rmdir(tx, name);
    if (!gone && gone.error().sys_errno != ENOENT) return gone;
  }
  if (!renamed && is_unsupported(renamed.error())) return place_refused(shown, "its filesystem cannot exchange two names in one step");
  return renamed;
}

/// An overlay moves no folder of a lower layer, and says so before it looks at where to: a folder that is not empty is in the way
/// of every other rename, so that nothing ever moves.
Result<void> probe_overlay(os::Files& files, const Spot& spot, int tx, const std::string& shown) {
  TRY_STATUS(files.mkdir(tx, "probe-full", 0700));
  TRY_STATUS(files.mkdir(tx, "probe-full/inside", 0700));
  const auto moved = files.rename(spot.at, spot.name, tx, "probe-full");
  if (moved) {
    TRY_STATUS(files.rename_noreplace(tx, "probe-full", spot.at, spot.name));
    return place_refused(shown, "its filesystem replaces folders that are not empty");
  }
  const int error = moved.error().sys_errno;
  TRY_STATUS(files.rmdir(tx, "probe-full/inside"));
  TRY_STATUS(files.rmdir(tx, "probe-full"));
  return error == EXDEV ? place_refused(shown, "it lies in a lower layer of an overlay") : ok();
}

}  // namespace

Result<void> Transaction::Impl::open_place() {
  TRY(live, open_environment(state->place()));
  if (static_cast<bool>(live) == observed.tree.is_absent())
    return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' {} since it was scanned", shown({}), live ? "was made" : "was deleted"));
  TRY(space, os::space(state->fd()));
  if (!live) {
    TRY(const os::Stat above, os::stat_fd(state->place().parent.get()));
    if (above.immutable || above.append_only) return fixed_entry(printable(state->place().path.substr(0, state->place().path.rfind('/'))));
    if (!os::may_change(state->place().parent.get())) return place_refused(shown({}), "the folder that holds it may not be written to");
    return ok();
  }
  const std::string root = shown(begin.commit_root);
  TRY(const Spot spot, live_spot(state->place(), begin.commit_root));
  TRY(const auto stat, os::stat_if_exists(spot.at, spot.name));
  TRY(const os::Stat parent, os::stat_fd(spot.at));
  TRY(const os::Stat ours, os::stat_fd(state->fd()));
  if (!stat) return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' was deleted since it was scanned", root));
  if (stat->mount_root) return place_refused(root, "a filesystem is mounted there");
  if (stat->dev != ours.dev || parent.dev != ours.dev)
    return place_refused(root, "it lies on another filesystem or subvolume than envsync's state beside the environment");
  if (parent.immutable || parent.append_only) return fixed_entry(shown(begin.commit_root.parent()));
  if (!os::may_change(spot.at)) return place_refused(root, "the folder that holds it may not be written to");
  return ok();
}

Result<void> Transaction::Impl::check_entries() const {
  for (const scan::Problem& problem : observed.problems) {
    if (!begin.commit_root.contains(problem.path)) continue;
    if (problem.what.find("mounted") != std::string::npos) return place_refused(shown(problem.path), problem.what);
    return Error(ErrorCode::unreadable, fmt::format("'{}' {}", shown(problem.path), problem.what)).note("nothing was changed");
  }
  if (!live) return ok();
  for (const std::size_t i : observed.tree.below(begin.commit_root)) {
    const u32 at = plan.desired_of[i];
    if (at != kNoIndex && plan.how[at] == How::keep) continue;  // looked at when it is linked
    const tree::RelPath& path = base()[i].path;
    TRY(const auto stat, os::stat_if_exists(live.get(), path.bytes()));
    if (!stat) return Error(ErrorCode::changed_meanwhile, fmt::format("'{}' was deleted since it was scanned", shown(path)));
    if (stat->immutable || stat->append_only) return fixed_entry(shown(path));
  }
  return ok();
}

/// Measured: an exchange between projects succeeds, and both trees then count for the wrong one.
Result<void> Transaction::Impl::check_project() const {
  if (!live || !plan.root_is_dir) return ok();
  TRY(const os::Fd before, os::open_dir(live.get(), begin.commit_root.bytes()));
  TRY(const os::Fd after, os::open_dir(dir.get(), kNew));
  if (os::project_of(before.get()) == os::project_of(after.get())) return ok();
  return place_refused(shown(begin.commit_root), "it counts for another project's quota than envsync's state beside the environment");
}

Result<void> Transaction::Impl::choose_numbers() {
  TRY(const auto heads, state->heads());
  const tree::ComparePolicy& policy = begin.head.policy;
  const bool has_entries = observed.tree.entries().size() > 1;
  if (heads.empty() && (has_entries || !observed.unmanaged.empty()) && !begin.adopt)
    return Error(ErrorCode::adoption_refused, fmt::format("'{}' holds something that envsync did not put there", shown({})))
        .note("nothing was changed")
        .hint("pass --adopt: what is there becomes generation 0");
  begin.head.root = begin.desired.root(policy);
  begin.head.full = begin.desired.full();
  if (begin.ground && begin.ground->full() == begin.head.full) begin.ground.reset();  // a record without one is its own
  begin.head.ground = begin.ground ? begin.ground->full() : content::Digest{};
  begin.head.files = begin.desired.file_count();
  begin.head.bytes = begin.desired.content_bytes();
  terms.number = heads.empty() ? 1 : heads.back().number + 1;
  if (has_entries) {
    bool is_current = false;
    if (!heads.empty()) {
      content::Digest recorded = heads.back().root;
      if (heads.back().policy != policy) {
        TRY(const Record record, state->load(heads.back().number));
        recorded = record.tree.root(policy);
      }
      is_current = recorded == observed.tree.root(policy);
    }
    terms.base_number = heads.empty() ? 0 : is_current ? heads.back().number : heads.back().number + 1;
    terms.writes_base = !is_current;
    if (terms.writes_base) terms.number = *terms.base_number + 1;
  }
  begin.head.number = terms.number;
  if (!terms.writes_base) return ok();
  RecordHead head = begin.head;
  head.number = *terms.base_number;
  head.root = observed.tree.root(policy);
  head.full = observed.tree.full();
  head.files = observed.tree.file_count();
  head.bytes = observed.tree.content_bytes();
  if (head.ground == head.full) head.ground = {};
  head.adopted = true;
  head.plan_digest.clear();
  head.source.clear();
  head.restores.reset();
  head.undoes.clear();
  base_head = std::move(head);
  return ok();
}

Result<void> Transaction::Impl::check_space(const tree::StagedSpace& needed, u64 reclaimable) const {
  const u64 have = space.bytes_free + reclaimable;
  if (needed.bytes <= have && needed.inodes <= space.inodes_free) return ok();
  const std::string why = needed.bytes > have ? fmt::format("it needs {}, free are {}", human_bytes(needed.bytes), human_bytes(have))
                                              : fmt::format("it needs {} inodes, free are {}", needed.inodes, space.inodes_free);
  Error error = Error(ErrorCode::no_space, fmt::format("no space to stage generation {} of '{}'", terms.number, shown({}))).cause(why).note("nothing was changed");
  return std::move(error).hint(terms.number > 1 ? "run `envsync prune` to free old generations" : "free some of it, or choose a path on another filesystem");
}

Result<void> Transaction::Impl::open_staging() {
  tx = os::random_token().substr(0, 16);
  const std::string rel = staging_path(tx);
  TRY_STATUS(files->mkdir(state->fd(), rel, 0700));
  TRY(dir, os::open_dir(state->fd(), rel));
  TRY_STATUS(files->mkdir(dir.get(), kPartialDir, 0700));
  TRY(journal, Journal::create(*files, dir.get()));
  terms.run = begin.head.run;
  terms.boot = os::boot_id();
  terms.commit_root = begin.commit_root;
  terms.base_absent = !live;
  terms.write_mtime = begin.write_mtime;
  terms.keep = begin.keep_generations;
  TRY_STATUS(probe_rename(*files, dir.get(), shown(begin.commit_root), static_cast<bool>(live)));
  if (!live || !plan.root_is_dir || space.filesystem != "overlayfs") return ok();
  TRY(const Spot spot, live_spot(state->place(), begin.commit_root));
  return probe_overlay(*files, spot, dir.get(), shown(begin.commit_root));
}

}  // namespace envsync::store
