// SPDX-License-Identifier: MIT
// A place that content is read from: the source of a run, or the origin of an overlay. Connected and scanned once, by its own
// thread, for all targets that need it; its tree is fetched when the first of them does.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>

#include "apply/feed.hpp"
#include "apply/run.hpp"
#include "python/distribution_set.hpp"

namespace envsync::apply {

/// inspected: looked at only, so what cannot be copied is no error.
enum class Reading : u8 { environment, origin, base, inspected };

class Source {
 public:
  Source(Run& run, manifest::Source place, Reading reading);
  ~Source();
  /// Starts connecting and scanning in a thread of its own.
  void start();
  /// Itself; where its connection is over, another one that connects anew, the same for all who ask.
  Source& live();
  /// Waits for the scan. The same error for every target.
  Result<const format::ScanReply*> scan();
  Result<const tree::Tree*> tree();
  /// Texts of its dist-infos, by their paths there; read once, so `paths` are the same for every target.
  Result<const python::SmallFiles*> texts(const std::vector<tree::RelPath>& paths);
  Result<python::SmallFiles> read(const std::string& label, const std::vector<tree::RelPath>& paths);
  Reading reading() const { return reading_; }
  const manifest::Source& place() const { return place_; }
  /// "ct129:/root/venv"; a folder of this machine is its path.
  std::string text() const;
  /// Only after scan() succeeded.
  Session& session() { return *session_; }
  Feed& feed() { return feed_; }
  const Session& session() const { return *session_; }
  /// Channel bytes from it so far.
  u64 bytes_received() const { return session_ ? session_->lanes->bytes_received() : 0; }

 private:
  Result<Session> open();
  Result<const tree::Tree*> fetched();
  Run* run_;  // outlives this
  manifest::Source place_;
  Reading reading_;
  std::shared_future<void> opened_;
  std::optional<Session> session_;
  std::optional<Error> error_;
  std::mutex next_mutex_;   // next_
  std::unique_ptr<Source> next_;
  std::mutex tree_mutex_;   // tree_
  std::mutex texts_mutex_;  // texts_
  std::optional<Result<tree::Tree>> tree_;
  std::optional<Result<python::SmallFiles>> texts_;
  std::future<void> ahead_;
  Feed feed_;  // last: it reads from the session
};

}  // namespace envsync::apply
