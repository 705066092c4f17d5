// SPDX-License-Identifier: MIT
// The source of a run: connected and scanned once, by its own thread, for all targets; its tree is fetched when the first
// target needs it.
#pragma once

#include <future>
#include <mutex>

#include "apply/run.hpp"

namespace envsync::apply {

class Source {
 public:
  explicit Source(Run& run) : run_(&run) {}
  /// Starts connecting and scanning in a thread of its own.
  void start();
  /// Waits for the scan. The same error for every target.
  Result<const format::ScanReply*> scan();
  Result<const tree::Tree*> tree();
  /// Only after scan() succeeded.
  Session& session() { return *session_; }
  /// Channel bytes from it so far.
  u64 bytes_received() const { return session_ ? session_->endpoint->bytes_received() : 0; }

 private:
  Result<Session> open();
  Run* run_;  // outlives this
  std::shared_future<void> opened_;
  std::optional<Session> session_;
  std::optional<Error> error_;
  std::mutex tree_mutex_;  // tree_
  std::optional<Result<tree::Tree>> tree_;
};

}  // namespace envsync::apply
