// SPDX-License-Identifier: MIT
#include "store/settle.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "store/acceptance.hpp"
#include "store/discard.hpp"
#include "store/standing.hpp"

namespace envsync::store {
namespace {

Holds holds(const std::optional<Marker>& found, const Terms& terms) {
  if (!found) return Holds::absent;
  if (terms.staged.ino != 0 && found->names_same(terms.staged)) return Holds::desired;
  if (!terms.base_absent && found->names_same(terms.base)) return Holds::base;
  return Holds::other;
}

Result<std::optional<Marker>> marker_at_path(const Place& place, const tree::RelPath& commit_root) {
  if (!place.parent) return std::optional<Marker>();
  return marker_of(place.parent.get(), commit_root.is_root() ? place.name : place.name + "/" + commit_root.bytes());
}

/// The live folder under whose names the files of `new` were linked.
Twin twin_of(const Place& place, const Spot& spot) { return place.parent ? Twin{spot.at, spot.name} : Twin{}; }

Result<bool> has_leftovers(int tx) {
  for (const char* name : {kNew, kPartialDir}) {
    TRY(const auto stat, os::stat_if_exists(tx, name));
    if (!stat) continue;
    if (stat->kind != os::Kind::directory) return true;
    std::vector<std::string> folders{name};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      TRY(const os::Fd dir, os::open_dir(tx, folder));
      TRY(const auto entries, os::list(dir.get(), folder));
      for (const auto& entry : entries) {
        if (entry.kind != os::Kind::directory && entry.kind != os::Kind::symlink) return true;
        if (entry.kind == os::Kind::directory) folders.push_back(folder + "/" + entry.name);
      }
    }
  }
  return false;
}

}  // namespace

Result<Situation> read_situation(const Place& place, int tx, const Parsed& parsed) {
  Situation s;
  s.last = parsed.last;
  if (!parsed.terms) return s;
  s.terms = *parsed.terms;
  TRY(const auto in_new, marker_of(tx, kNew));
  TRY(const auto at_path, marker_at_path(place, s.terms.commit_root));
  s.in_new = holds(in_new, s.terms);
  s.at_path = holds(at_path, s.terms);
  s.action = decide(s.last, s.terms.base_absent, s.in_new, s.at_path);
  // Nothing is exchanged before `prepared` is synced. Where the path holds the staged tree all the same, that record was lost
  // by the disk, not by a crash, and what lies in staging is the only copy of the tree before.
  if (s.last == Last::begin && s.at_path == Holds::desired) s.action = Action::refuse;
  return s;
}

std::string what_recovery_does(const Place& place, int tx) {
  const auto parsed = Journal::peek(tx);
  if (!parsed || parsed->tail == Tail::damaged) return "stop: a journal is damaged";
  const auto situation = read_situation(place, tx, *parsed);
  if (!situation) return "stop: an interrupted run cannot be read";
  switch (situation->action) {
    case Action::leftover: return {};
    case Action::abandon: return "drop a prepared commit";
    case Action::finish_commit:
    case Action::redo_accept: return "finish a commit";
    case Action::finish_revert:
    case Action::revert: return "finish a roll back";
    case Action::refuse:
    case Action::keep_all: return "stop: the path holds what no run put there";
  }
  ENVSYNC_CHECK(false);
}

Result<void> settle_leftover(State& state, const std::string& tx, const Parsed& parsed, CacheMoves& moves) {
  os::Files& files = state.files();
  const Place& place = state.place();
  const std::string rel = staging_path(tx);
  TRY(const os::Fd dir, os::open_dir(state.fd(), rel));
  Spot spot;
  Twin twin;
  if (parsed.terms) {
    auto found = live_spot(place, parsed.terms->commit_root);
    if (found) {
      spot = std::move(*found);
      twin = twin_of(place, spot);
    }
  }
  if (parsed.last_entry == Entry::accepted) {
    if (!standing_in(rel).empty()) return ok();
    TRY_STATUS(discard_tree(files, dir.get(), kNew, twin, moves));
    TRY_STATUS(discard_tree(files, state.fd(), rel, {}, moves));
    return ok();
  }
  TRY_STATUS(discard_shared(files, dir.get(), kNew, twin, moves));
  for (const char* name : {kBaseRecord, kDesiredRecord}) {
    auto gone = files.unlink(dir.get(), name);
    if (!gone && gone.error().sys_errno != ENOENT) return gone;
  }
  TRY(const bool keeps, has_leftovers(dir.get()));
  if (!keeps) TRY_STATUS(discard_tree(files, state.fd(), rel, {}, moves));
  return ok();
}

}  // namespace envsync::store
