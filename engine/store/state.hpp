// SPDX-License-Identifier: MIT
// envsync's state beside an environment: <parent>/.envsync/<name>/ with lock, stat-cache, staging/, records/, contents/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <envsync/event.hpp>
#include <envsync/result.hpp>

#include "base/clock.hpp"
#include "os/files.hpp"
#include "scan/scan.hpp"
#include "tree/tree.hpp"

namespace envsync::store {

/// What a record says of a generation, without its tree.
struct RecordHead {
  u32 number = 0;
  content::Digest root;           // of its tree under `policy`
  content::Digest full;
  tree::ComparePolicy policy;
  std::vector<std::string> exclude;
  tree::Bytecode bytecode = tree::Bytecode::leave_out;
  std::string run;                // begins with the operator's time: yyyymmddThhmmss.uuuuuuZ-xxxxxxxx
  std::string plan_digest;        // hex
  i64 committed_at = 0;           // the operator's clock, seconds since 1970
  std::string operator_name;      // user@machine
  std::string manifest;           // file name as given
  std::string name;               // of the environment
  std::string source;             // where it came from, as the manifest says
  std::optional<u32> restores;
  std::string undoes;             // run
  bool adopted = false;
  bool damaged = false;           // an older record that does not decode: only its number is known
  content::Digest ground;         // full digest of what overlays were laid onto, where that was the target's own; zero: none
  u64 files = 0, bytes = 0;
};
struct Record {
  RecordHead head;
  tree::Tree tree;
  std::optional<tree::Tree> ground;
};

/// The target path, resolved once: `path` has no symbolic links in it.
struct Place {
  std::string path;               // absolute
  std::string name;               // last component
  std::string state_name;         // ".envsync" or ".envsync-<uid>"
  std::string foreign_state;      // where this user has no state here but another one may: that folder and whose it is, for people
  os::Fd parent;
};
/// Refuses "/", home folders, relative and empty paths, "." and "..", paths inside a state folder. The parent may be
/// absent (then `parent` is empty and nothing is there).
Result<Place> resolve_place(const std::string& path);
/// The environment's folder; an empty descriptor where nothing is at the path. What is no folder, or a mount point, is
/// ErrorCode::place_refused.
Result<os::Fd> open_environment(const Place& place);

/// Of the filesystem that holds the place, or will: the nearest folder above it that exists.
Result<os::Space> space_at(const Place& place);

enum class OpenMode : u8 { existing, create };

class Lock;

class State {
 public:
  /// `existing`: an absent state folder is no error, exists() tells. `create`: makes it (and the parents of the path).
  /// A folder that is a link, is not ours, or is writable by others is refused.
  static Result<State> open(os::Files& files, Place place, OpenMode mode);
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();
  bool exists() const;
  const Place& place() const;
  int fd() const;                  // of the state folder
  os::Files& files() const;

  /// Takes the lock, waiting at most `wait_seconds`; ErrorCode::locked names the holder. The lock goes with the object.
  /// `run`: where an agent of the same run holds it, whose connection was cut and who has not noticed, that one is ended; but not between
  /// its exchange and its record.
  Result<Lock> lock(const std::string& holder_text, double wait_seconds, const std::string& run = {});
  /// Who holds it now; empty: nobody.
  std::string lock_holder() const;

  /// Heads of the kept records, ascending. That the current one, the last, does not decode is an error; an older one that does
  /// not is `damaged`.
  Result<std::vector<RecordHead>> heads() const;
  Result<Record> load(u32 number) const;
  /// With the ctimes that recovery moved since.
  scan::StatCache load_cache() const;
  Result<void> save_cache(const scan::StatCache&) const;

  struct Usage { u64 pool_bytes = 0, leftover_bytes = 0; std::string journal_state; };  // "clean", or what recovery will do
  Result<Usage> usage() const;
  struct Holding {
    u32 number = 0;
    u64 exclusive_bytes = 0;       // of contents in the pool that only this record names
    u64 missing = 0;               // contents that it names and neither the pool nor `live` has
  };
  /// Of each record that decodes, ascending.
  Result<std::vector<Holding>> holdings(const tree::Tree& live) const;

  /// What a run that commits changes, one after the other, while somebody looks without the lock. What was seen between two equal
  /// moments, none of them `committing`, belongs together.
  struct Moment {
    std::optional<u32> current;    // the greatest record
    u64 environment = 0;           // inode at the path; 0: nothing is there
    bool committing = false;       // a run is between its exchange and its record
    bool operator==(const Moment&) const = default;
  };
  Result<Moment> moment() const;

  /// Recovery deletes links of live files: what the stat cache on disk knows them by has moved.
  void note_moves(std::vector<std::pair<scan::StatKey, scan::StatKey>> moves);

 private:
  struct Impl;
  explicit State(std::unique_ptr<Impl> impl);
  void end_holder_of(const std::string& run, Deadline deadline) const;
  std::unique_ptr<Impl> impl_;
};

class [[nodiscard]] Lock {
 public:
  explicit Lock(os::Fd fd) : fd_(std::move(fd)) {}

 private:
  os::Fd fd_;
};

/// What recovery found and did, one line each, for the user; empty: there was nothing.
struct Recovered {
  std::vector<std::string> done;
  bool swapped_back = false, finished_commit = false;
};
/// Finishes or undoes what an interrupted run left, by the table in engine/ARCHITECTURE.md. ErrorCode::interference deletes nothing.
Result<Recovered> recover(State&, const Lock&);

/// Records the tree as observed, without touching it: generation 0 of a path that envsync did not know, else the next number.
Result<u32> adopt(State&, const Lock&, RecordHead head, const tree::Tree& observed, const tree::Tree* ground = nullptr);

struct PruneRequest { std::optional<u32> keep; std::vector<u32> drop; bool all = false; };
struct Pruned { std::vector<u32> generations; u64 contents = 0; u64 bytes_freed = 0; };
/// `all` removes the state folder itself; the environment stays. `keep` counts beside the current and 0.
Result<Pruned> prune(State&, Lock, const PruneRequest&);

}  // namespace envsync::store
