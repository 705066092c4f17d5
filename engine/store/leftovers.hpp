// SPDX-License-Identifier: MIT
// What earlier runs received and did not use: files in the staging folders of transactions that have ended. Private to store.
#pragma once

#include <atomic>
#include <unordered_map>

#include "store/pool.hpp"
#include "store/transaction.hpp"

namespace envsync::store {

class Leftovers {
 public:
  struct File {
    int at = -1;           // borrowed from this object
    std::string path;
    os::Stat stat;
    bool may_move = false; // it has no other link
    bool may_trust = false;  // written in this boot: what the stat cache says of it holds
  };
  Leftovers() = default;
  /// Of all transactions but `own`. One that is not settled is ErrorCode::interference: recovery comes first.
  static Result<Leftovers> open(State& state, const std::string& own);
  bool empty() const { return files_.empty() && partial_.empty(); }
  /// What deleting them would free.
  u64 bytes() const;
  /// Finds which of them are `wanted`: by the stat cache, else by reading those whose size is that of a wanted one.
  Result<void> identify(const Contents& wanted, const scan::StatCache& cache, const StepSink& sink, std::atomic<u64>& bytes_read);
  const File* find(const ContentId& content) const;
  /// The folder of a transaction that had begun to receive the content.
  struct Partial {
    int at = -1;           // borrowed from this object
    bool may_trust = false;
  };
  std::optional<Partial> find_partial(const ContentId& content) const;
  /// Deletes the transactions' folders with all that was not taken.
  Result<void> remove(os::Files& files);

 private:
  Result<void> collect(int at, bool may_trust);
  Result<void> collect_partial(int at, bool may_trust);
  State* state_ = nullptr;             // outlives this
  std::vector<std::string> names_;
  std::vector<os::Fd> folders_;
  std::vector<File> files_;
  std::unordered_map<ContentId, std::size_t, content::ContentIdHash> known_;
  std::unordered_map<ContentId, Partial, content::ContentIdHash> partial_;
  u64 partial_bytes_ = 0;
};

}  // namespace envsync::store
