// SPDX-License-Identifier: MIT
// The exchange, and what stands around it. Before it an error leaves the path as it was; after it only a managed change that
// somebody made in that very moment swaps the old tree back, while a failing disk or journal is left to recovery.
#include <cerrno>

#include <fmt/format.h>

#include "store/settle.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

constexpr u32 kOwnerWrite = 0200;

/// The live tree, or the displaced one, against what was scanned and linked.
class BaseCheck {
 public:
  explicit BaseCheck(const Transaction::Impl& t) : t_(t) {}
  const std::string& difference() const { return difference_; }

  Result<void> known(u32 index, const Met& met) {
    const tree::Entry& entry = t_.base()[index];
    const scan::StatKey& expected = t_.expected[index];
    const bool is_same = entry.is_dir() ? folder(entry, expected, met) : scan::key_of(met.stat) == expected;
    if (!is_same) found(met.path, "changed");
    return ok();
  }
  Result<void> missing(u32 index) {
    found(t_.base()[index].path, "was deleted");
    return ok();
  }
  void found(const tree::RelPath& path, std::string_view what) {
    if (difference_.empty()) difference_ = fmt::format("'{}' {}", t_.shown(path), what);
  }

 private:
  /// Its times move with every entry that comes or goes, bytecode too: what is in it is compared by itself.
  bool folder(const tree::Entry& entry, const scan::StatKey& expected, const Met& met) const {
    if (met.stat.kind != os::Kind::directory || met.stat.ino != expected.ino) return false;
    if (met.stat.ctime_ns == expected.ctime_ns) return true;
    const bool is_root = met.path == t_.begin.commit_root;
    const u32 loosened = is_root && must_loosen(entry.mode) ? kOwnerWrite : 0;
    if ((met.stat.mode | loosened) != (entry.mode | loosened)) return false;
    if (tree::Owner{met.stat.uid, met.stat.gid} != entry.owner) return false;
    if (!t_.begin.head.policy.xattrs) return true;
    auto xattrs = os::xattrs(met.dir, met.name);
    if (!xattrs) return false;
    std::erase_if(*xattrs, [](const auto& x) { return !x.first.starts_with("user."); });
    auto before = entry.xattrs;
    std::erase_if(before, [](const auto& x) { return !x.first.starts_with("user."); });
    return *xattrs == before;
  }

  const Transaction::Impl& t_;
  std::string difference_;
};

Error changed_meanwhile(const std::string& difference) {
  return Error(ErrorCode::changed_meanwhile, "the environment changed while the new tree was staged").cause(difference)
      .note("nothing was changed")
      .hint("run again");
}

}  // namespace

void Transaction::Impl::pending(const Error& error) {
  is_pending = true;
  std::string text = error.what;
  for (const std::string& cause : error.causes) text += ": " + cause;
  warnings.push_back(std::move(text));
}

Result<void> Transaction::Impl::recheck_live() {
  if (!live) return ok();
  TRY(const auto now, open_environment(state->place()));
  if (!now) return changed_meanwhile(fmt::format("'{}' was deleted", shown({})));
  TRY(const os::Stat opened, os::stat_fd(live.get()));
  TRY(const os::Stat there, os::stat_fd(now.get()));
  if (opened.ino != there.ino) return changed_meanwhile(fmt::format("'{}' was replaced", shown({})));
  BaseCheck check(*this);
  std::unordered_set<std::string> unmanaged;
  for (const scan::Unmanaged& entry : observed.unmanaged) unmanaged.insert(entry.path.bytes());
  const Twin nowhere;
  WalkHooks hooks;
  hooks.known = [&](u32 index, const Met& met) { return check.known(index, met); };
  hooks.missing = [&](u32 index) { return check.missing(index); };
  hooks.unknown = [&](const Met& met) -> Result<Into> {
    if (unmanaged.contains(met.path.bytes())) return Into::skip;
    switch (rules.verdict(met)) {
      case Rules::Verdict::excluded:
      case Rules::Verdict::bytecode: return Into::skip;
      case Rules::Verdict::look_inside: {
        TRY(const os::Fd fd, os::open_dir(met.dir, met.name));
        TRY(const auto entries, os::list(fd.get(), met.path.bytes()));
        if (!entries.empty()) return Into::enter;
        break;
      }
      case Rules::Verdict::managed: break;
    }
    check.found(met.path, "is new");
    return Into::skip;
  };
  TRY_STATUS(walk_against(live.get(), begin.commit_root.bytes(), observed.tree, begin.commit_root, hooks));
  if (!check.difference().empty()) return changed_meanwhile(check.difference());
  return ok();
}

Result<void> Transaction::Impl::exchange(const Spot& spot) {
  if (must_loosen(terms.base_mode)) {
    TRY(const os::Fd fd, os::open_dir(spot.at, spot.name));
    TRY_STATUS(files->chmod(fd.get(), terms.base_mode | kOwnerWrite));
  }
  auto done = terms.base_absent ? files->rename_noreplace(dir.get(), kNew, spot.at, spot.name)
                                : files->rename_exchange(spot.at, spot.name, dir.get(), kNew);
  if (done) return done;
  if (!terms.base_absent) static_cast<void>(restore_mode(*files, spot.at, spot.name, terms.base_mode));
  const int error = done.error().sys_errno;
  if (error == EEXIST) return changed_meanwhile(fmt::format("'{}' was made by somebody else", shown(begin.commit_root)));
  const bool is_place = error == EXDEV || error == EINVAL || error == EPERM || error == EACCES || error == EBUSY || error == EROFS;
  if (!is_place) return done;
  Error refused(ErrorCode::place_refused, fmt::format("'{}' cannot be swapped at once", shown(begin.commit_root)));
  refused.causes = {done.error().what};
  refused.causes.insert(refused.causes.end(), done.error().causes.begin(), done.error().causes.end());
  if (error == EXDEV) refused.causes.push_back("it lies in a lower layer of an overlay, or on another filesystem");
  return std::move(refused).note("nothing was changed");
}

Result<std::string> Transaction::Impl::look_at_displaced(const Spot& spot) {
  if (terms.base_absent) return std::string();
  BaseCheck check(*this);
  // An exchange moves the ctime of what it moves: of a commit root that is a single file too.
  if (!plan.root_is_dir) {
    TRY(const os::Stat stat, os::stat_at(dir.get(), kNew));
    const scan::StatKey& was = expected[*observed.tree.index_of(begin.commit_root)];
    return stat.ino == was.ino && stat.size == was.size && stat.mtime_ns == was.mtime_ns ? std::string() : fmt::format("'{}' changed", shown(begin.commit_root));
  }
  CarryOver carry(*files, rules, dropped, begin.commit_root, {dir.get(), kNew}, {spot.at, spot.name}, linked, CarryOver::Managed::tell);
  std::unordered_set<std::string> unmanaged;
  for (const scan::Unmanaged& entry : observed.unmanaged) unmanaged.insert(entry.path.bytes());
  WalkHooks hooks;
  hooks.known = [&](u32 index, const Met& met) { return check.known(index, met); };
  hooks.missing = [&](u32 index) { return check.missing(index); };
  hooks.unknown = [&](const Met& met) { return carry.unknown(met); };
  TRY_STATUS(walk_against(dir.get(), kNew, observed.tree, begin.commit_root, hooks));
  if (!carry.difference().empty()) check.found(*tree::RelPath::parse(carry.difference()), "is new");
  if (check.difference().empty()) TRY_STATUS(carry.finish());
  return check.difference();
}

Result<void> Transaction::Impl::exchange_back(const Spot& spot) {
  TRY_STATUS(journal.append(Entry::reverting));
  if (terms.base_absent) TRY_STATUS(files->rename_noreplace(spot.at, spot.name, dir.get(), kNew));
  else TRY_STATUS(files->rename_exchange(spot.at, spot.name, dir.get(), kNew));
  TRY_STATUS(sync_parents(*files, spot, dir.get()));
  if (!terms.base_absent) TRY_STATUS(restore_mode(*files, spot.at, spot.name, terms.base_mode));
  return journal.append(Entry::rolled_back);
}

Result<void> Transaction::commit(const StepSink& sink) {
  Impl& t = *impl_;
  if (t.stage != Impl::Stage::sealed) return Error(ErrorCode::protocol, "a commit was asked for before the staged tree was sealed");
  if (sink) sink({Phase::commit});
  auto spot = live_spot(t.state->place(), t.begin.commit_root);
  auto ready = spot ? t.recheck_live() : Result<void>(changed_meanwhile(spot.error().what));
  if (ready) ready = t.exchange(*spot);
  if (!ready) {
    static_cast<void>(t.drop());
    return ready;
  }
  t.stage = Impl::Stage::committed;
  auto after = sync_parents(*t.files, *spot, t.dir.get());
  if (after) after = t.journal.append(Entry::committed);
  std::string difference;
  if (after) {
    auto looked = t.look_at_displaced(*spot);
    if (looked) difference = std::move(*looked);
    else after = std::move(looked).error();
  }
  if (!difference.empty()) {
    t.stage = Impl::Stage::ended;
    auto back = t.exchange_back(*spot);
    if (!back) return std::move(back).error().note("a run that was begun is not finished: the next one puts the old tree back");
    CacheMoves moves(t.cache);
    static_cast<void>(settle_leftover(*t.state, t.tx, t.journal.parsed(), moves));
    static_cast<void>(t.state->save_cache(*t.cache));
    return changed_meanwhile(difference);
  }
  if (after) after = restore_mode(*t.files, spot->at, spot->name, t.terms.staged_mode);
  if (!after) t.pending(after.error());
  return ok();
}

Result<void> Transaction::revert() {
  Impl& t = *impl_;
  if (t.stage != Impl::Stage::committed) return Error(ErrorCode::protocol, "there is no commit to take back");
  if (t.is_pending) return Error(ErrorCode::failed, "the commit cannot be taken back now").cause(t.warnings.back());
  TRY(const Spot spot, live_spot(t.state->place(), t.begin.commit_root));
  t.stage = Impl::Stage::ended;
  TRY_STATUS(t.exchange_back(spot));
  if (!t.terms.base_absent && t.plan.root_is_dir) {
    // What was made in the new tree meanwhile, and is not managed, is somebody's too.
    CarryOver carry(*t.files, t.rules, t.dropped, t.begin.commit_root, {t.dir.get(), kNew}, {spot.at, spot.name}, t.linked, CarryOver::Managed::tell);
    WalkHooks hooks;
    hooks.known = [](u32, const Met&) { return ok(); };
    hooks.missing = [](u32) { return ok(); };
    hooks.unknown = [&](const Met& met) { return carry.unknown(met); };
    static_cast<void>(walk_against(t.dir.get(), kNew, t.begin.desired, t.begin.commit_root, hooks));
  }
  CacheMoves moves(t.cache);
  static_cast<void>(settle_leftover(*t.state, t.tx, t.journal.parsed(), moves));
  static_cast<void>(t.state->save_cache(*t.cache));
  return ok();
}

}  // namespace envsync::store
