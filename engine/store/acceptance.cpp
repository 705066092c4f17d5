// SPDX-License-Identifier: MIT
#include "store/acceptance.hpp"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include <fmt/format.h>

#include "store/discard.hpp"
#include "store/hash_file.hpp"
#include "store/pool.hpp"
#include "store/record.hpp"
#include "store/remember.hpp"
#include "store/standing.hpp"

namespace envsync::store {
namespace {

constexpr u32 kOwnerWrite = 0200, kOwnerAll = 0700;

class Accept {
 public:
  explicit Accept(Acceptance& a) : a_(a), files_(a.state.files()), state_(a.state.fd()) {}

  Result<void> run(const StepSink& sink) {
    if (a_.journal.parsed().last != Last::accepting) TRY_STATUS(a_.journal.append(Entry::accepting));
    TRY_STATUS(keep_contents());
    TRY_STATUS(place_records());
    TRY_STATUS(drop_live_contents());
    TRY_STATUS(prune());
    if (sink) sink({Phase::accept});
    TRY_STATUS(delete_displaced());
    remember_made();
    // A cache that is not saved costs reading, nothing else.
    if (a_.cache != nullptr) static_cast<void>(a_.state.save_cache(*a_.cache));
    TRY_STATUS(a_.journal.append(Entry::accepted));
    if (!a_.is_deferred) TRY_STATUS(os::remove_tree(files_, state_, staging_path(a_.tx)));
    return ok();
  }

 private:
  /// The base's contents that the live tree no longer has and that a kept record names go into the pool.
  Result<void> keep_contents() {
    if (a_.base == nullptr || !a_.terms.base_number) return ok();  // never recorded: nothing in it that could be lost
    const auto below = a_.base->below(a_.terms.commit_root);
    Contents leaving;
    for (const std::size_t i : below)
      if (const tree::File* file = a_.base->entries()[i].file()) leaving.insert(file->content());
    erase_named(a_.desired, leaving);
    TRY_STATUS(erase_unkept(leaving));
    bool has_moved = false;
    for (const std::size_t i : below) {
      const tree::Entry& entry = a_.base->entries()[i];
      const tree::File* file = entry.file();
      if (!file || leaving.erase(file->content()) == 0) continue;
      TRY(const bool moved, keep_content(entry, *file));
      has_moved = has_moved || moved;
    }
    if (!has_moved) return ok();
    TRY(const os::Fd dir, os::open_dir(state_, kContentsDir));
    // DURABILITY: a content has its new name before the record that names it, and before anything is deleted.
    return files_.fsync(dir.get(), kContentsDir);
  }

  /// Leaves what a record names that pruning keeps: all of it where that is the base's own.
  Result<void> erase_unkept(Contents& leaving) {
    TRY(auto numbers, record_numbers(state_));
    for (const u32 number : {*a_.terms.base_number, a_.terms.number})
      if (!std::ranges::binary_search(numbers, number)) numbers.insert(std::ranges::lower_bound(numbers, number), number);
    const auto gone = beyond_keep(numbers, a_.terms.keep);
    if (!std::ranges::binary_search(gone, *a_.terms.base_number)) return ok();
    std::erase_if(numbers, [&](u32 number) { return number == a_.terms.number || std::ranges::binary_search(gone, number); });
    Contents unnamed = leaving;
    if (a_.ground != nullptr) erase_named(*a_.ground, unnamed);
    TRY_STATUS(erase_named(a_.state, numbers, {}, unnamed));
    for (const ContentId& id : unnamed) leaving.erase(id);
    return ok();
  }

  Result<bool> keep_content(const tree::Entry& entry, const tree::File& file) {
    const std::string from = in_new(a_.terms.commit_root, entry.path);
    TRY(const auto stat, os::stat_if_exists(a_.tx_fd, from));
    if (!stat || stat->kind != os::Kind::file) return false;  // an earlier attempt has moved it
    if (stat->size != file.size || stat->mtime_ns != entry.mtime_ns) {
      // RACE: somebody may have written it between the scan and the exchange, in a run that was killed then.
      TRY(const auto digest, hash_file(a_.tx_fd, from));
      if (digest.digest != file.digest || digest.size != file.size) {
        a_.warnings.push_back(fmt::format("'{}' was changed while the run committed; the generation before cannot be restored whole", printable(entry.path.bytes())));
        return false;
      }
    }
    auto moved = files_.rename(a_.tx_fd, from, state_, content_path(file.content()));
    if (!moved && moved.error().sys_errno == EACCES) {
      // Its folder lacks the owner's write bit; it is displaced, and ours.
      TRY(const os::Fd folder, os::open_dir(a_.tx_fd, from.substr(0, from.rfind('/'))));
      TRY_STATUS(files_.chmod(folder.get(), kOwnerAll));
      moved = files_.rename(a_.tx_fd, from, state_, content_path(file.content()));
    }
    TRY_STATUS(std::move(moved));
    return true;
  }

  Result<void> place_records() {
    TRY_STATUS(place_record(kBaseRecord, a_.terms.writes_base ? a_.terms.base_number : std::nullopt));
    TRY_STATUS(place_record(kDesiredRecord, a_.terms.number));
    TRY(const os::Fd dir, os::open_dir(state_, kRecordsDir));
    // DURABILITY: the record is what makes the tree a generation; without it the next run would take the tree for drift.
    return files_.fsync(dir.get(), kRecordsDir);
  }

  Result<void> place_record(const char* name, std::optional<u32> number) {
    if (!number) return ok();
    TRY(const auto stat, os::stat_if_exists(a_.tx_fd, name));
    if (!stat) return ok();  // an earlier attempt has moved it
    return files_.rename(a_.tx_fd, name, state_, record_path(*number));
  }

  Result<void> drop_live_contents() {
    TRY(const auto pool, list_pool(state_));
    Contents absent(pool.begin(), pool.end());
    erase_named(a_.desired, absent);
    for (const ContentId& id : pool)
      if (!absent.contains(id)) TRY_STATUS(files_.unlink(state_, content_path(id)));
    return ok();
  }

  Result<void> prune() {
    TRY(const auto numbers, record_numbers(state_));
    const auto gone = beyond_keep(numbers, a_.terms.keep);
    if (gone.empty()) return ok();
    KnownTrees known{{a_.terms.number, {&a_.desired}}};
    if (a_.ground != nullptr) known[a_.terms.number].push_back(a_.ground);
    TRY(const auto heads, a_.state.heads());
    for (const RecordHead& head : heads)
      if (a_.base != nullptr && head.number == a_.terms.base_number && !head.damaged && head.ground.is_zero()) known[head.number] = {a_.base};
    TRY_STATUS(delete_records(a_.state, gone, known));
    return ok();
  }

  Result<void> delete_displaced() {
    TRY(const auto displaced, os::stat_if_exists(a_.tx_fd, kNew));
    if (!displaced) return ok();
    const auto users = standing_in(staging_path(a_.tx));
    if (!users.empty()) {
      a_.is_deferred = true;
      a_.warnings.push_back(fmt::format("the tree before stays on disk for now: {}", users.front()));
      return ok();
    }
    TRY(const Spot spot, live_spot(a_.state.place(), a_.terms.commit_root));
    TRY_STATUS(discard_tree(files_, a_.tx_fd, kNew, {spot.at, spot.name}, a_.moves));
    return ok();
  }

  /// The next scan need not read what was verified while it was written.
  void remember_made() {
    if (a_.cache == nullptr) return;
    const auto root = open_environment(a_.state.place());
    const auto space = os::space(state_);
    if (!root || !*root || !space) return;
    remember(*a_.cache, root->get(), a_.desired.entries(), a_.made, space->network, [](const tree::Entry& e) { return e.path.bytes(); });
  }

  Acceptance& a_;
  os::Files& files_;
  int state_;
};

}  // namespace

Result<Spot> live_spot(const Place& place, const tree::RelPath& commit_root) {
  Spot spot;
  spot.at = place.parent.get();
  spot.name = place.name;
  if (commit_root.is_root()) return spot;
  const tree::RelPath parent = commit_root.parent();
  TRY(spot.held, os::open_dir(place.parent.get(), parent.is_root() ? place.name : place.name + "/" + parent.bytes()));
  spot.at = spot.held.get();
  spot.name = std::string(commit_root.name());
  return spot;
}

bool must_loosen(u32 mode) { return mode != 0 && (mode & kOwnerWrite) == 0 && ::geteuid() != 0; }

Result<void> restore_mode(os::Files& files, int at, const std::string& name, u32 mode) {
  if (!must_loosen(mode)) return ok();
  TRY(const os::Fd dir, os::open_dir(at, name));
  TRY_STATUS(files.chmod(dir.get(), mode));
  return files.fsync(dir.get(), name);
}

Result<void> sync_parents(os::Files& files, const Spot& live, int tx) {
  // An O_PATH or borrowed descriptor would do for a rename, not for a sync: both are folders opened to be read.
  TRY_STATUS(files.fsync(live.at, "the folder that holds the environment's tree"));
  return files.fsync(tx, "the staging folder");
}

Result<void> finish_accept(Acceptance& acceptance, const StepSink& sink) { return Accept(acceptance).run(sink); }

}  // namespace envsync::store
