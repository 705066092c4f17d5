// SPDX-License-Identifier: MIT
#include "apply/feed.hpp"

#include <algorithm>
#include <utility>

#include "content/digest.hpp"

namespace envsync::apply {

namespace {

constexpr std::size_t kQueueMax = 3;  // LIMIT: packs that wait for one target

content::Digest key_of(format::PullRequest request, const std::vector<format::PullItem>& items) {
  request.first_level.reset();  // where to begin is a hint; the level follows the slowest way anyhow
  Bytes bytes = format::encode(format::Request{request});
  const Bytes list = format::encode_pull_items(items);
  bytes.insert(bytes.end(), list.begin(), list.end());
  return content::digest_of(bytes);
}

}  // namespace

/// One target's part of a pass.
struct Feed::Part {
  std::deque<std::shared_ptr<const Buffer>> waiting;
  Seconds waited_for{};      // by others that had nothing left
  bool has_missed = false;
  bool is_busy = false;      // with one that it took
  bool has_room() const { return waiting.size() < kQueueMax; }
};

struct Feed::Pass {
  content::Digest key;
  std::list<Part*> parts;    // that still take
  std::size_t users = 0;     // in take_part()
  bool has_begun = false;    // a pack has come
  std::optional<Result<Arrived>> result;
  std::stop_source stop;
  Deadline began;
  std::jthread reader;
};

Feed::Ticket& Feed::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  if (feed_ != nullptr) feed_->leave();
  feed_ = std::exchange(other.feed_, nullptr);
  return *this;
}

Feed::Ticket::~Ticket() {
  if (feed_ != nullptr) feed_->leave();
}

Feed::Ticket Feed::announce() {
  const std::lock_guard lock(mutex_);
  ++coming_;
  return Ticket(*this);
}

u32 Feed::coming() const {
  const std::lock_guard lock(mutex_);
  return coming_;
}

void Feed::leave() {
  const std::lock_guard lock(mutex_);
  --coming_;
  changed_.notify_all();
}

Feed::Feed(Pull pull) : Feed(std::move(pull), Patience{}) {}
Feed::Feed(Pull pull, Patience patience) : pull_(std::move(pull)), patience_(patience) {}

Feed::~Feed() {
  for (const auto& pass : passes_) pass->stop.request_stop();
}

Result<Arrived> Feed::pull(const format::PullRequest& request, const std::vector<format::PullItem>& items, const Sink& sink, Ticket ticket, std::stop_token stop) {
  const content::Digest key = key_of(request, items);
  const bool was_announced = ticket.is_held();
  Pass* pass = nullptr;
  Part part;
  {
    const std::lock_guard lock(mutex_);
    if (was_announced) {
      --coming_;
      ticket.feed_ = nullptr;
      changed_.notify_all();
    }
    std::erase_if(passes_, [](const auto& old) { return old->result && old->users == 0; });
    const auto found = std::ranges::find_if(passes_, [&](const auto& one) { return one->key == key && !one->result && !one->stop.stop_requested(); });
    if (found != passes_.end()) pass = found->get();
    else if (was_announced && coming_ > 0) pass = passes_.emplace_back(std::make_unique<Pass>()).get();
    if (pass != nullptr) {
      ++pass->users;
      part.has_missed = pass->has_begun;
      pass->parts.push_back(&part);
    }
    if (pass != nullptr && !pass->reader.joinable()) {
      pass->key = key;
      // Who began with this one is about as far.
      const Seconds prepared = std::chrono::steady_clock::now() - ticket.since_;
      const Deadline gathered = deadline_in(std::max(patience_.gathering, std::min(prepared, kGatheringMax)));
      // Whoever began it may leave before it ends: its list is copied.
      pass->reader = std::jthread([this, pass, gathered, request, items] { read(*pass, gathered, request, items); });
    }
  }
  // Nobody else is there to share with.
  if (pass == nullptr) return pull_(request, items, [&](Buffer pack) { return sink(std::make_shared<const Buffer>(std::move(pack))); }, std::move(stop));
  auto taken = take_part(*pass, part, sink, stop);
  const std::lock_guard lock(mutex_);
  --pass->users;
  return taken;
}

/// The pass's own thread.
void Feed::read(Pass& pass, Deadline gathered, const format::PullRequest& request, const std::vector<format::PullItem>& items) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, pass.stop.get_token(), gathered, [&] { return coming_ == 0; });
    pass.began = std::chrono::steady_clock::now();
  }
  auto result = pull_(request, items, [&](Buffer pack) { return hand_out(pass, std::make_shared<const Buffer>(std::move(pack))); }, pass.stop.get_token());
  const std::lock_guard lock(mutex_);
  pass.result = std::move(result);
  changed_.notify_all();
}

Result<void> Feed::hand_out(Pass& pass, std::shared_ptr<const Buffer> pack) {
  std::unique_lock lock(mutex_);
  pass.has_begun = true;
  const auto lags = [](const Part* part) { return !part->has_room(); };
  const auto starves = [](const Part* part) { return part->waiting.empty() && !part->is_busy; };
  const auto sight = [&] { return std::pair(std::ranges::count_if(pass.parts, lags), std::ranges::any_of(pass.parts, starves)); };
  for (;;) {
    const auto before = sight();
    const auto& [lagging, is_any_starving] = before;
    if (lagging == 0) break;
    const auto asked = std::chrono::steady_clock::now();
    const auto has_changed = [&] { return sight() != before; };
    if (!is_any_starving) {  // the others have enough until then
      changed_.wait(lock, pass.stop.get_token(), has_changed);
    } else {
      const Seconds allowed = patience_.lagging + (asked - pass.began) * patience_.lagging_part;
      Seconds left{};
      std::vector<Part*> slow;
      std::ranges::copy_if(pass.parts, std::back_inserter(slow), lags);
      for (const Part* part : slow) left = std::max(left, allowed - part->waited_for);
      if (left <= Seconds{}) break;
      changed_.wait_until(lock, pass.stop.get_token(), deadline_in(left), has_changed);
      for (Part* part : pass.parts)
        if (std::ranges::find(slow, part) != slow.end()) part->waited_for += std::chrono::steady_clock::now() - asked;
    }
    if (pass.stop.stop_requested()) return Error{ErrorCode::interrupted, "the run was stopped"};
  }
  if (pass.parts.empty()) return Error{ErrorCode::interrupted, "nobody takes it any more"};
  for (Part* part : pass.parts) {
    if (part->has_room()) part->waiting.push_back(pack);
    else part->has_missed = true;
  }
  changed_.notify_all();
  return ok();
}

/// The part of one target, which is in the pass already.
Result<Arrived> Feed::take_part(Pass& pass, Part& part, const Sink& sink, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto leave_it = [&](Error why) {
    pass.parts.remove(&part);
    if (pass.parts.empty() && !pass.result) pass.stop.request_stop();
    changed_.notify_all();
    return why;
  };
  for (;;) {
    changed_.wait(lock, stop, [&] { return !part.waiting.empty() || pass.result; });
    if (stop.stop_requested()) return leave_it(Error{ErrorCode::interrupted, "the run was stopped"});
    if (part.waiting.empty()) break;
    const auto pack = std::move(part.waiting.front());
    part.waiting.pop_front();
    part.is_busy = true;
    changed_.notify_all();
    lock.unlock();
    auto sunk = sink(pack);
    lock.lock();
    part.is_busy = false;
    changed_.notify_all();
    if (!sunk) return leave_it(std::move(sunk).error());
  }
  pass.parts.remove(&part);
  if (!*pass.result) return pass.result->error();
  return part.has_missed ? Arrived::some : **pass.result;
}

}  // namespace envsync::apply
