// SPDX-License-Identifier: MIT
// The road of changed files: what the target has of their older versions is taken there, and only the rest travels. Large ones by chunks
// that are matched here, small ones by rolling checksums; which of them is decided by what costs less time (delta/cost.hpp).
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "apply/source.hpp"
#include "delta/cost.hpp"
#include "delta/match.hpp"

namespace envsync::apply {

/// Whether a file of that size, or its base, goes by chunks.
bool is_large(u64 size, u64 base_size);

/// A wanted content that has a base on the target.
struct Changed {
  format::PullItem item;              // all of it
  Source* place = nullptr;
  std::vector<delta::Range> missing;  // what of it is not there yet; all but for a run that goes on
  tree::RelPath base;
  u64 base_size = 0;
};

/// What is known of the way, and whether anything is to be decided at all.
struct DeltaChoice {
  delta::Way way;
  bool is_forced = false;
};

/// What became of the files that went this way.
struct DeltaCounts {
  u64 files = 0, bytes = 0;           // large ones
  u64 copied_coarse = 0, copied_fine = 0, repeated = 0, literal = 0;
  u64 small_files = 0, small_bytes = 0, small_sent = 0;
  std::optional<delta::Grain> grain;  // of the fine chunks, where they were used
  std::string why_fine;
  double rate = 0;                    // of what had to travel, content bytes a second; 0: too little to know
};

class DeltaRoad {
 public:
  /// Sends one pack into the put, and counts.
  using Deliver = std::function<Result<void>(Lanes::Put& put, Buffer pack)>;
  using OpenPut = std::function<std::unique_ptr<Lanes::Put>(u64 content_bytes)>;
  DeltaRoad(Run& run, protocol::Endpoint& target, DeltaChoice choice, std::vector<Changed> files, OpenPut open_put, Deliver deliver)
      : run_(&run), target_(&target), choice_(choice), files_(std::move(files)), open_put_(std::move(open_put)), deliver_(std::move(deliver)) {}

  /// All of it; blocks. What did not become what it should is lacking then.
  Result<DeltaCounts> run();

 private:
  struct Plan {
    const Changed* file = nullptr;
    std::vector<delta::Copy> copies;  // of bases, and of the file itself
    std::vector<delta::Range> rest;
    std::vector<delta::Range> missing;  // of the file, less what has been pulled
    u32 base = 0;                     // of bases_
    void settle();
  };
  Result<void> run_large();
  Result<void> run_small();
  Result<void> small_round(Source& place, std::span<const Changed* const> files);
  Result<std::vector<delta::ChunkList>> base_chunks();
  Result<std::map<const Changed*, delta::ChunkList>> wanted_chunks();
  Result<void> match_coarse();
  Result<void> probe();
  bool choose_fine();
  Result<void> match_fine();
  Result<void> fine_batch(std::span<Plan* const> plans);
  Result<void> ask_source(Source& place, const std::vector<Plan*>& plans, const std::map<u32, std::vector<u64>>& names);
  enum class Of : u8 { bases, itself };
  Result<void> copy(Of of);
  struct Pulled { u64 content = 0, wire = 0; };
  Result<Pulled> pull(u64 bytes_max);

  Run* run_;                          // outlives this
  protocol::Endpoint* target_;        // outlives this
  DeltaChoice choice_;
  delta::Grain grain_ = delta::Grain::fine;
  const std::vector<Changed> files_;
  const OpenPut open_put_;
  const Deliver deliver_;
  std::vector<tree::RelPath> bases_;  // of the large files, each once
  std::vector<u64> base_sizes_;
  std::vector<std::vector<delta::Range>> unused_;  // of each base, after the coarse match
  std::vector<Plan> plans_;
  DeltaCounts counts_;
};

}  // namespace envsync::apply
