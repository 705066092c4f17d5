// SPDX-License-Identifier: MIT
// Private to store: what a Transaction holds, and the parts that build, fill, seal and commit it.
#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "store/acceptance.hpp"
#include "store/build_plan.hpp"
#include "store/carry.hpp"
#include "store/journal.hpp"
#include "store/state_impl.hpp"
#include "store/transaction.hpp"
#include "store/walk.hpp"
#include "store/workers.hpp"
#include "tree/staged_space.hpp"

namespace envsync::store {

/// A large content that comes in pieces; put.cpp knows it.
struct Receiving;

/// A folder of the staged tree that is no entry of the desired one: unmanaged, or kept for what is.
struct ExtraFolder {
  tree::RelPath path;
  os::Stat live;
};

/// The refusal of an entry that no rename or link may touch.
Error fixed_entry(const std::string& shown);

struct Transaction::Impl {
  enum class Stage : u8 { building, sealed, committed, ended };

  State* state = nullptr;                // outlives this
  os::Files* files = nullptr;
  scan::StatCache* cache = nullptr;      // outlives this
  Begin begin;
  scan::Scan observed;
  BuildPlan plan;
  Rules rules;
  Dropped dropped;
  std::atomic<Stage> stage = Stage::building;

  std::string tx;
  os::Fd dir;                            // staging/<tx>
  os::Fd live;                           // the environment's folder; not open: absent
  os::Space space;
  Journal journal;
  Terms terms;
  std::optional<RecordHead> base_head;   // of the record to write for the base

  std::vector<scan::StatKey> expected;   // of observed entries: what the commit must find, our own links included
  std::vector<scan::StatKey> staged;     // of desired entries: the file in `new` whose content was verified
  std::vector<u32> folder_modes;         // of desired entries: the mode that a folder gets
  std::vector<u32> folder_gids;          // of desired entries: the group that a setgid folder hands on, else kNoIndex
  std::vector<bool> folder_changed;      // of desired entries: whether what a folder holds changes
  std::vector<ExtraFolder> extra_folders;  // parents first
  LinkedNames linked;                    // unmanaged files
  std::unordered_map<u64, i64> ctimes;   // newest ctime of each inode that had several links before ours
  std::mutex link_mutex;                 // guards linked and ctimes while threads build

  Needs needs;
  std::atomic<u64> files_linked{0}, files_copied{0}, bytes_read{0}, bytes_written{0};
  std::vector<std::string> warnings;
  bool is_pending = false;               // something after the exchange failed

  std::mutex put_mutex;                  // guards what follows
  std::unordered_map<u32, bool> wanted;  // by desired index: whether it was taken up
  std::unordered_map<u32, std::shared_ptr<Receiving>> receiving;
  std::size_t wanted_left = 0;
  std::set<u32> built;                   // wanted contents that are built from bases, now or before a cut, and not there yet

  Impl();
  ~Impl();
  std::span<const tree::Entry> desired() const { return begin.desired.entries(); }
  std::span<const tree::Entry> base() const { return observed.tree.entries(); }
  std::string staged_path(const tree::RelPath& path) const { return in_new(begin.commit_root, path); }
  /// The live entry at the same path, of any type; null: none.
  const tree::Entry* base_entry(u32 index) const;
  std::string shown(const tree::RelPath& path) const;   // for messages: the absolute path
  std::vector<u32> made() const;                        // files of the staged tree that are no links of live ones

  // begin.cpp, preflight.cpp
  Result<void> open_place();
  Result<void> check_entries() const;
  Result<void> check_project() const;
  Result<void> choose_numbers();
  Result<void> check_space(const tree::StagedSpace& needed, u64 reclaimable) const;
  Result<void> open_staging();
  Result<void> build(const StepSink& sink);
  // build_folders.cpp, build_links.cpp, build_unmanaged.cpp
  Result<void> make_folders();
  Result<void> make_folder(u32 index);
  Result<void> keep_entries(const StepSink& sink);
  Result<void> keep_entry(u32 index, int live_dir, int new_dir, const std::string& name);
  Result<void> link_unmanaged();
  void note_link(const os::Stat& before, const os::Stat& after);
  void settle_ctimes();
  // contents.cpp
  Result<void> find_contents(const StepSink& sink);
  // make_file.cpp; thread-safe for different indexes
  Result<void> make_symlink(u32 index);
  Result<void> make_small(u32 index, ByteView bytes);
  Result<bool> make_copy(u32 index, int from);           // false: the bytes are not those of the entry; nothing stays
  Result<void> take_file(u32 index, int at, const std::string& rel);
  Result<void> finish_file(u32 index, int fd, bool is_fresh);
  Result<void> finish_content(const std::vector<u32>& users);  // the first is made: the others and the link groups
  Result<void> join_members(u32 index);
  // seal.cpp
  Result<void> finish_folders();
  Result<void> verify_staged(const StepSink& sink);
  Result<void> write_records();
  Result<void> make_durable(const StepSink& sink);
  Result<void> prepare();
  // commit.cpp
  Result<void> recheck_live();
  Result<void> exchange(const Spot& spot);
  Result<void> exchange_back(const Spot& spot);
  Result<std::string> look_at_displaced(const Spot& spot);
  void pending(const Error& error);
  // transaction.cpp
  Result<void> drop();
};

}  // namespace envsync::store
