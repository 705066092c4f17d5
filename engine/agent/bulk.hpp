// SPDX-License-Identifier: MIT
// What all pulls and all puts of one session share, so that several connections need hardly more memory than one.
#pragma once

#include <condition_variable>
#include <functional>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "content/level_governor.hpp"
#include "format/messages.hpp"
#include "protocol/frames.hpp"
#include "store/transaction.hpp"

namespace envsync::agent {

/// Packs that are made ahead. Each pull may have one without asking; all others come out of what is shared.
/// LIMIT: an agent stays near 96 MB; a pack has at most 9 MiB.
struct Packing {
  std::mutex mutex;                       // `spare`, and what the pulls know of themselves
  std::condition_variable_any changed;
  std::size_t spare = 3;
};

class Sender;

/// The pulls that are open.
class Pulls {
 public:
  /// A pull of this number on the control connection has begun: help that comes before its items waits for it.
  void announce(u32 number);
  /// Streams packs of the items, read beneath `root_fd`, under the request's credit. Reads and compresses on every core; packs
  /// go out in the order of the items. `number` was announced where `may_be_helped`.
  Result<void> send(protocol::Connection& connection, u32 number, bool may_be_helped, int root_fd, std::vector<format::PullItem> items,
                    content::LevelGovernor governor, std::stop_token stop);
  /// It is over, however it ended.
  void end(u32 number);
  /// Streams packs of that pull over another connection, until it has no more.
  Result<void> help(protocol::Connection& connection, u32 number, u32 pull, std::stop_token stop);

 private:
  std::shared_ptr<Sender> find(u32 pull, const std::stop_token& stop);

  Packing packing_;
  std::mutex mutex_;  // all below
  std::condition_variable_any changed_;
  std::map<u32, std::shared_ptr<Sender>> open_;  // null: announced
  std::deque<u32> over_;
};

/// The puts that are open.
class Puts {
 public:
  /// Takes packs from the request's blobs and puts them with several threads, until blob_end.
  Result<u64> receive(protocol::Connection& connection, u32 number, store::Transaction& transaction, const std::function<void(u64 bytes)>& progress);
  /// Ends those that are open and waits until they are over.
  void end_all();

 private:
  friend class Receiver;
  u64 credit_of_new();
  void take_slot();
  void give_slot();

  std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::list<std::stop_source> open_;
  std::size_t writing_ = 0;
};

}  // namespace envsync::agent
