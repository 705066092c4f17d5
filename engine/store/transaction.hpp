// SPDX-License-Identifier: MIT
// The one transaction that puts a desired tree at the environment's path: begin, put what was missing, seal, commit, accept.
// Until commit() the path is not touched. Each state is a type, so that no step is skipped or repeated.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "content/pack.hpp"
#include "store/state.hpp"

namespace envsync::store {

/// A folder of this host that holds contents of the desired tree.
struct HostFolder {
  std::string path;                     // absolute
  std::vector<std::pair<u32, tree::RelPath>> files;  // index in desired -> path beneath it; empty: all, by their own paths
};

struct Begin {
  tree::Tree desired;
  tree::RelPath commit_root;            // chosen by the plan, checked again here
  std::optional<tree::Tree> ground;     // what overlays were laid onto, where that was the target's own; its contents are kept
  RecordHead head;                      // of the record to write; number, root, full, files and bytes are filled in here
  bool adopt = false;                   // the base is recorded as generation 0 / as a drifted generation
  bool preserve_owner = false;          // settings.owner: preserve
  bool write_mtime = true;              // settings.mtime: not ignore
  std::vector<std::string> drop_unmanaged;  // path prefixes (bytes) whose unmanaged entries do not reach the new tree
  std::vector<HostFolder> host_folders;  // where missing contents lie, the first that names one
  u32 keep_generations = 2;
  bool verify_staged = false;
  bool use_local_content = true;        // false: --force-origin source; every changed content is wanted
  Guarantee least = Guarantee::atomic;  // the weakest commit accepted
  bool find_users = true;               // Needs::in_use is asked for: reads all of /proc
  std::stop_token stop;                 // ends the taking of this host's content with ErrorCode::interrupted
};

struct Step { Phase phase; u64 files_done = 0, files_total = 0, bytes_done = 0, bytes_total = 0; };
using StepSink = std::function<void(const Step&)>;  // called from one thread at a time

/// Segments [first, first + count) of a wanted content of which others are there already.
struct MissingSegments { u32 want = 0, first = 0, count = 0; };

/// What has not come yet.
struct Lack {
  std::vector<u32> wanted;              // as in Needs
  std::vector<MissingSegments> missing;
  u64 wanted_bytes = 0;
};

struct Needs {
  std::vector<u32> wanted;              // indexes in desired.entries(), in directory order, one for each missing content
  std::vector<MissingSegments> missing; // of those wanted that an earlier run had begun; ascending
  u64 wanted_bytes = 0;                 // what there is to send
  u64 linked = 0, copied = 0;           // files taken from this host
  u64 bytes_read = 0, bytes_written = 0;
  Guarantee guarantee = Guarantee::atomic;
  std::vector<std::string> in_use;
};

struct Accepted {
  u32 generation = 0;
  std::optional<u32> adopted;           // number of the record made for the base
  Guarantee guarantee = Guarantee::atomic;
  bool recovery_pending = false;        // the tree is in place; something after the exchange must be finished by the next run
  std::vector<std::string> warnings;
  u64 bytes_read = 0, bytes_written = 0;
};

/// Borrows State and Lock: both must outlive it. Dropping one that is not committed leaves its staging as leftovers.
class Transaction {
 public:
  struct Impl;  // store's own
  /// Probes the place, checks space, builds what this host can give. `observed` is the scan of the live tree; it is
  /// moved in. After an error nothing is changed at the path; staging may hold leftovers.
  static Result<Transaction> begin(State&, const Lock&, Begin, scan::Scan observed, scan::StatCache& cache, const StepSink&);
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();

  const Needs& needs() const;
  /// Takes pieces of wanted contents; verifies, writes, and moves complete files into the tree. Thread-safe. `Piece::want`
  /// is an index in desired.entries().
  Result<void> put(const std::vector<content::Piece>& pieces, ByteView content);
  /// While no put() runs: pieces that came in part count as not come, and may come again; one that was built and became another
  /// content, too.
  Result<Lack> lack();
  /// The content of a wanted entry; none where it is not wanted, or there already.
  std::optional<content::ContentId> expects(u32 want) const;
  /// From now on that content is built from a base, whose bytes may not fit: what becomes another content is lacking, see lack().
  Result<void> build(u32 want);
  /// What is there of a content that came in part; bytes that did not come are of any value.
  Result<std::size_t> read_begun(u32 want, u64 offset, std::span<std::byte> into) const;
  /// All wanted contents are there: finishes directories and metadata, checks the staged root digest against the
  /// desired one, makes everything durable. After an error nothing is changed at the path.
  Result<void> seal(const StepSink&);
  /// Checks the live tree once more and exchanges. ErrorCode::changed_meanwhile, place_refused: nothing is changed.
  /// After success the desired tree is at the path; what is left is accept().
  Result<void> commit(const StepSink&);
  /// Moves contents to the pool, writes records, deletes the displaced tree, prunes. An error here never swaps back: the
  /// result then says recovery_pending.
  Result<Accepted> accept(const StepSink&);
  /// After commit(), before accept(): swaps the old tree back.
  Result<void> revert();
  /// Before commit(): drops the journal; received contents stay as leftovers.
  Result<void> abandon();

 private:
  explicit Transaction(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace envsync::store
