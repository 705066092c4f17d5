// SPDX-License-Identifier: MIT
// Finishes or undoes what an interrupted run left. What is done is decide()'s; here it is carried out.
#include <cerrno>

#include <fmt/format.h>

#include "store/acceptance.hpp"
#include "store/carry.hpp"
#include "store/hash_file.hpp"
#include "store/record.hpp"
#include "store/settle.hpp"
#include "store/walk.hpp"

namespace envsync::store {
namespace {

std::string_view said(Holds holds) {
  switch (holds) {
    case Holds::base: return "the tree from before the run";
    case Holds::desired: return "the tree that the run staged";
    case Holds::absent: return "nothing";
    case Holds::other: return "something that was not there then";
  }
  return "?";
}

class Recovery {
 public:
  Recovery(State& state, std::string tx, CacheMoves& moves, Recovered& recovered)
      : state_(state), files_(state.files()), tx_(std::move(tx)), moves_(moves), recovered_(recovered) {}

  Result<void> run() {
    TRY(dir_, os::open_dir(state_.fd(), staging_path(tx_)));
    auto opened = Journal::open(files_, dir_.get());
    if (!opened) return std::move(opened).error().note(kept()).hint(look_at());
    journal_ = std::move(*opened);
    TRY(s_, read_situation(state_.place(), dir_.get(), journal_.parsed()));
    if (s_.action == Action::leftover) return settle_leftover(state_, tx_, journal_.parsed(), moves_);
    if (s_.action == Action::refuse || s_.action == Action::keep_all) return interference();
    auto live = live_spot(state_.place(), s_.terms.commit_root);
    if (!live && s_.action == Action::abandon) return abandon();  // somebody deleted the folder that it would have come into
    if (!live) return std::move(live).error();
    live_ = std::move(*live);
    // DURABILITY: what the kernel shows after a crash may not be on the disk yet; nothing is recorded or deleted before it is.
    TRY_STATUS(sync_parents(files_, live_, dir_.get()));
    return act();
  }

 private:
  Result<void> act() {
    switch (s_.action) {
      case Action::abandon: return abandon();
      case Action::finish_commit: return finish_commit();
      case Action::redo_accept: return accept("finished the commit of run {}: generation {} is current");
      case Action::finish_revert: return finish_revert();
      case Action::revert: return revert();
      case Action::leftover:
      case Action::refuse:
      case Action::keep_all: break;
    }
    ENVSYNC_CHECK(false);
  }

  std::string kept() const { return fmt::format("nothing was changed; all is kept in '{}'", shown()); }
  std::string look_at() const { return fmt::format("look at '{}' and '{}', keep what you need, then delete the former", shown(), state_.place().path); }
  std::string shown() const {
    const Place& place = state_.place();
    return fmt::format("{}{}/{}/{}", printable(place.path.substr(0, place.path.size() - place.name.size())), place.state_name,
                       printable(place.name), staging_path(tx_));
  }

  Error interference() const {
    return Error(ErrorCode::interference, fmt::format("an interrupted run of '{}' can neither be finished nor undone", printable(state_.place().path)))
        .cause(fmt::format("the path holds {}, staging holds {}", said(s_.at_path), said(s_.in_new)))
        .note(kept())
        .hint(look_at());
  }

  /// Not exchanged, or the disk lost the exchange: the path holds the tree from before.
  Result<void> abandon() {
    TRY_STATUS(restore_base_mode());
    TRY_STATUS(journal_.append(Entry::abandoned));
    recovered_.done.push_back(fmt::format("dropped the prepared commit of run {}: the tree before is in place", s_.terms.run));
    return settle_leftover(state_, tx_, journal_.parsed(), moves_);
  }

  Result<void> restore_base_mode() {
    if (s_.terms.base_absent || s_.at_path != Holds::base) return ok();
    return restore_mode(files_, live_.at, live_.name, s_.terms.base_mode);
  }

  Result<void> finish_commit() {
    if (s_.last == Last::prepared) TRY_STATUS(journal_.append(Entry::committed));
    recovered_.finished_commit = true;
    return accept("finished the commit of run {}: generation {} is in place");
  }

  Result<std::optional<Record>> find_record(const char* name, std::optional<u32> number) const {
    if (!number) return std::optional<Record>();
    TRY(const auto staged, os::stat_if_exists(dir_.get(), name));
    if (staged) {
      TRY(Record record, read_record(dir_.get(), name, *number));
      return std::optional<Record>(std::move(record));
    }
    TRY(const auto kept, os::stat_if_exists(state_.fd(), record_path(*number)));
    if (!kept) return std::optional<Record>();
    TRY(Record record, state_.load(*number));
    return std::optional<Record>(std::move(record));
  }

  Result<void> accept(std::string_view message) {
    TRY_STATUS(restore_mode(files_, live_.at, live_.name, s_.terms.staged_mode));
    TRY(const auto desired, find_record(kDesiredRecord, s_.terms.number));
    if (!desired) return Error(ErrorCode::corrupt, fmt::format("the record of run {} is missing", s_.terms.run)).note(kept());
    TRY(const auto base, find_record(kBaseRecord, s_.terms.base_number));
    if (base && s_.last != Last::accepting) TRY_STATUS(carry_displaced(*base, *desired));
    const std::vector<u32> made;
    Acceptance acceptance{state_, dir_.get(), tx_, journal_, s_.terms, base ? &base->tree : nullptr, desired->tree, desired->ground ? &*desired->ground : nullptr, moves_, nullptr, made};
    TRY_STATUS(finish_accept(acceptance, {}));
    recovered_.done.push_back(fmt::format(fmt::runtime(message), s_.terms.run, s_.terms.number));
    recovered_.done.insert(recovered_.done.end(), acceptance.warnings.begin(), acceptance.warnings.end());
    return ok();
  }

  /// What others made in the tree before between our links and the exchange is not lost with it.
  Result<void> carry_displaced(const Record& base, const Record& desired) {
    TRY(auto exclude, tree::Exclude::parse(desired.head.exclude));
    const Rules rules{std::move(exclude), desired.head.bytecode};
    const Dropped dropped;
    const LinkedNames linked;
    // A managed entry that somebody made in that moment is kept too: it shows as drift.
    CarryOver carry(files_, rules, dropped, s_.terms.commit_root, {dir_.get(), kNew}, {live_.at, live_.name}, linked, CarryOver::Managed::carry);
    WalkHooks hooks;
    hooks.known = [](u32, const Met&) { return ok(); };
    hooks.missing = [](u32) { return ok(); };
    hooks.unknown = [&](const Met& met) { return carry.unknown(met); };
    return walk_against(dir_.get(), kNew, base.tree, s_.terms.commit_root, hooks);
  }

  Result<void> finish_revert() {
    TRY_STATUS(restore_base_mode());
    TRY_STATUS(journal_.append(Entry::rolled_back));
    recovered_.swapped_back = true;
    recovered_.done.push_back(fmt::format("finished the roll back of run {}: the tree before is in place", s_.terms.run));
    return settle_leftover(state_, tx_, journal_.parsed(), moves_);
  }

  Result<void> revert() {
    TRY_STATUS(check_unchanged());
    if (s_.terms.base_absent) TRY_STATUS(files_.rename_noreplace(live_.at, live_.name, dir_.get(), kNew));
    else TRY_STATUS(files_.rename_exchange(live_.at, live_.name, dir_.get(), kNew));
    TRY_STATUS(sync_parents(files_, live_, dir_.get()));
    s_.at_path = s_.terms.base_absent ? Holds::absent : Holds::base;
    return finish_revert();
  }

  /// A late revert must not take away what somebody has done in the new tree since.
  Result<void> check_unchanged() {
    TRY(const auto desired, find_record(kDesiredRecord, s_.terms.number));
    if (!desired) return Error(ErrorCode::corrupt, fmt::format("the record of run {} is missing", s_.terms.run)).note(kept());
    std::string changed;
    WalkHooks hooks;
    hooks.missing = [&](u32 i) { changed = desired->tree.entries()[i].path.bytes(); return ok(); };
    hooks.unknown = [](const Met&) -> Result<Into> { return Into::skip; };
    hooks.known = [&](u32 i, const Met& met) -> Result<void> {
      const tree::Entry& entry = desired->tree.entries()[i];
      const tree::File* file = entry.file();
      if (!file) return ok();
      bool is_same = met.stat.kind == os::Kind::file && met.stat.size == file->size;
      if (is_same && (!s_.terms.write_mtime || met.stat.mtime_ns != entry.mtime_ns)) {
        TRY(const auto content, hash_file(met.dir, met.name));
        is_same = content == file->content();
      }
      if (!is_same) changed = met.path.bytes();
      return ok();
    };
    TRY_STATUS(walk_against(live_.at, live_.name, desired->tree, s_.terms.commit_root, hooks));
    if (changed.empty()) return ok();
    return Error(ErrorCode::interference, fmt::format("an interrupted roll back of '{}' cannot be finished", printable(state_.place().path)))
        .cause(fmt::format("'{}' was changed since", printable(changed)))
        .note(kept())
        .hint(look_at());
  }

  State& state_;
  os::Files& files_;
  const std::string tx_;
  CacheMoves& moves_;
  Recovered& recovered_;
  os::Fd dir_;
  Journal journal_;
  Situation s_;
  Spot live_;
};

}  // namespace

Result<Recovered> recover(State& state, const Lock&) {
  Recovered recovered;
  if (!state.exists()) return recovered;
  TRY(const auto transactions, staging_names(state.fd()));
  if (transactions.empty()) return recovered;
  CacheMoves moves(nullptr);
  for (const std::string& tx : transactions) TRY_STATUS(Recovery(state, tx, moves, recovered).run());
  state.note_moves(moves.take());
  return recovered;
}

}  // namespace envsync::store
