// SPDX-License-Identifier: MIT
// A large content that comes in segments, and what is written down of it, so that a run that ends in the middle is gone on with:
//
//   segments := ( index:u32le digest[16] check:u32le )*        check: the low half of XXH3-64 of the 20 bytes before it
//
// A record is appended when a segment's bytes are in the file. Private to store.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "os/files.hpp"
#include "store/layout.hpp"
#include "store/transaction.hpp"

namespace envsync::store {

struct Receiving {
  std::mutex mutex;                        // guards all below but fd's own writes
  os::Fd fd, list;
  content::ContentId content;
  std::map<u64, u64> ranges;               // begin to end of what came or is being written; none touch or overlap
  std::vector<u64> written;                // bytes of each segment that are in the file
  std::vector<std::optional<content::Digest>> digests;
  std::size_t segments_left = 0;
  u64 listed = 0;                          // bytes of the list

  /// Makes both files beneath `dir`.
  static Result<std::shared_ptr<Receiving>> make(os::Files& files, int dir, const content::ContentId& content);
  /// Moves those of an earlier run, in `from`, to `dir` and goes on with them. Null where they cannot be used. Without `may_trust`
  /// every segment is read again; `bytes_read` counts.
  static Result<std::shared_ptr<Receiving>> take_over(os::Files& files, int dir, int from, const content::ContentId& content, bool may_trust,
                                                      std::atomic<u64>& bytes_read);
  u64 segment_size(std::size_t segment) const {
    return std::min<u64>(content::kSegmentBytes, content.size - segment * content::kSegmentBytes);
  }
  /// Forgets a segment, which then comes again.
  void give_back(std::size_t segment);
  /// Forgets what came of segments that did not become whole.
  void forget_unfinished();
  /// Under the mutex: the segment is whole. Appends to the list.
  Result<void> add(os::Files& files, std::size_t segment, const content::Digest& digest);

 private:
  void note(std::size_t segment, const content::Digest& digest);
  Result<void> read_list(int dir, bool may_trust, std::atomic<u64>& bytes_read);
};

/// Appends the runs of segments that are not there; the bytes of those that are.
u64 list_missing(u32 index, const Receiving& into, std::vector<MissingSegments>& missing);

/// False where a byte of it was there before.
bool reserve(std::map<u64, u64>& ranges, u64 begin, u64 end);

}  // namespace envsync::store
