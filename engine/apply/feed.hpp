// SPDX-License-Identifier: MIT
// Several targets that want the same of one place: it is read there once, compressed once, sent here once, and handed to each of them.
//
// Targets whose lists of wanted contents are equal share a pass. Who comes while one runs takes part from there on, and who is much slower than
// the others misses packs: both hear so at the end (Arrived::some), and ask their target what it lacks (Endpoint::lack).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "apply/lanes.hpp"

namespace envsync::apply {

class Feed {
 public:
  using Pull = std::function<Result<Arrived>(const format::PullRequest&, const std::vector<format::PullItem>&, const Lanes::PackSink&, std::stop_token)>;
  using Sink = std::function<Result<void>(std::shared_ptr<const Buffer> pack)>;  // called by the thread of pull()

  /// How long a pass waits for those that are about to ask (or as long as the first took to ask, up to kGatheringMax), and for one of them
  /// that is slower than the others: a part of the time that the pass took, and this.
  static constexpr Seconds kGatheringMax{10};
  struct Patience {
    Seconds gathering{1}, lagging{0.25};
    double lagging_part = 0.05;
  };

  explicit Feed(Pull pull);
  Feed(Pull pull, Patience patience);
  ~Feed();

  /// Somebody who is about to ask, until it does or this goes.
  class Ticket {
   public:
    Ticket() = default;
    explicit Ticket(Feed& feed) : feed_(&feed) {}
    Ticket(Ticket&& other) noexcept : feed_(std::exchange(other.feed_, nullptr)) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();
    bool is_held() const { return feed_ != nullptr; }

   private:
    friend class Feed;
    Feed* feed_ = nullptr;  // outlives this
    Deadline since_ = std::chrono::steady_clock::now();
  };
  Ticket announce();
  u32 coming() const;  // that were announced and have not asked

  /// As Lanes::pull. Who was announced shares with those who still are. An error of the place is the same for all; an error of the sink ends this one's part alone.
  Result<Arrived> pull(const format::PullRequest&, const std::vector<format::PullItem>&, const Sink&, Ticket, std::stop_token);

 private:
  struct Part;
  struct Pass;
  void read(Pass& pass, Deadline gathered, const format::PullRequest& request, const std::vector<format::PullItem>& items);
  Result<void> hand_out(Pass& pass, std::shared_ptr<const Buffer> pack);
  Result<Arrived> take_part(Pass& pass, Part& part, const Sink& sink, const std::stop_token& stop);
  void leave();

  const Pull pull_;
  const Patience patience_;
  mutable std::mutex mutex_;            // what follows
  std::condition_variable_any changed_;
  u32 coming_ = 0;
  std::list<std::unique_ptr<Pass>> passes_;
};

}  // namespace envsync::apply
