// SPDX-License-Identifier: MIT
// The sending side of bulk: items become packs on all cores, and leave in their order.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "agent/bulk.hpp"
#include "base/guard.hpp"
#include "content/level_governor.hpp"
#include "content/pack.hpp"
#include "os/process.hpp"

namespace envsync::agent {

namespace {

using content::PackBuilder;
using format::PullItem;

constexpr std::size_t kAheadMax = 4;  // LIMIT: packs in work, waiting, or being sent; some 40 MB at most

/// Some bytes of a file.
struct Part { std::size_t item = 0; u64 offset = 0, length = 0; };

/// One pack to be: whole small files [first, last), a segment of one large file, or parts [first, last).
struct Job {
  std::size_t first = 0, last = 0;
  u64 offset = 0, length = 0;  // of a segment; length 0: whole files
  bool by_part = false;
};

/// No part is longer than a segment.
std::vector<Part> parts_of(const std::vector<PullItem>& items) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const format::ByteRange& range : items[i].ranges)
      for (u64 done = 0; done < range.length; done += content::kSegmentBytes)
        parts.push_back({i, range.offset + done, std::min(content::kSegmentBytes, range.length - done)});
  return parts;
}

void add_part_jobs(std::vector<Job>& jobs, const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size();) {
    Job job{i, i, 0, 0, true};
    u64 bytes = 0;
    while (job.last < parts.size() && job.last - job.first < content::kPackPiecesMax) {
      if (job.last > job.first && bytes + parts[job.last].length > content::kSegmentBytes) break;
      bytes += parts[job.last++].length;
    }
    i = job.last;
    jobs.push_back(job);
  }
}

std::vector<Job> make_jobs(const std::vector<PullItem>& items) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < items.size();) {
    if (!items[i].ranges.empty()) {
      ++i;
      continue;
    }
    const u64 size = items[i].content.size;
    if (size > content::kSegmentBytes) {
      const u64 begin = items[i].first * content::kSegmentBytes;
      const u64 end = items[i].count == 0 ? size : std::min(size, begin + items[i].count * content::kSegmentBytes);
      for (u64 at = begin; at < end; at += content::kSegmentBytes)
        jobs.push_back({i, i + 1, at, std::min(content::kSegmentBytes, size - at), false});
      ++i;
      continue;
    }
    Job job{i, i, 0, 0, false};
    u64 bytes = 0;
    while (job.last < items.size() && job.last - job.first < content::kPackPiecesMax) {
      const u64 next = items[job.last].content.size;
      if (next > content::kSegmentBytes || !items[job.last].ranges.empty() || (job.last > job.first && bytes + next > content::kPackTarget)) break;
      bytes += next;
      ++job.last;
    }
    i = job.last;
    jobs.push_back(job);
  }
  return jobs;
}

struct Packed {
  Buffer bytes;
  int level = 0;
  u64 content = 0;
};

}  // namespace

/// One pull's packs, in their order, for whichever connection is free.
class Sender {
 public:
  Sender(Packing& packing, int root_fd, std::vector<PullItem> items, const content::LevelGovernor& governor)
      : packing_(packing), root_fd_(root_fd), items_(std::move(items)), parts_(parts_of(items_)), jobs_(make_jobs(items_)), governor_(governor) {
    add_part_jobs(jobs_, parts_);
    for (u32 i = 0; i < os::cpu_count(); ++i) workers_.emplace_back([this] { work(); });
  }
  ~Sender() { stop_workers(); }

  /// Sends packs until there are no more. Several connections may, each in a thread of its own.
  Result<void> send_on(protocol::Connection& connection, u32 number, const std::stop_token& stop);
  /// One connection's end is everybody's: a cancelled pull, or an error of the source.
  void stop_workers();

 private:
  void work();
  Result<Packed> pack(const Job& job, int level) const;
  Result<Packed> pack_parts(std::span<const Part> parts, int level) const;
  Result<os::Fd> open(const PullItem& item) const;
  Result<void> append(PackBuilder& pack, const PullItem& item, int fd, u64 offset, u64 length) const;
  Result<std::optional<Packed>> take(const std::stop_token& stop);
  void note_sent(const Packed& packed, Seconds waited, Seconds sending);
  bool may_take() const { return next_job_ < sent_ + kAheadMax && (next_job_ == sent_ || packing_.spare > 0); }

  Packing& packing_;
  int root_fd_;
  const std::vector<PullItem> items_;
  const std::vector<Part> parts_;
  std::vector<Job> jobs_;
  // All below under the mutex of packing_.
  content::LevelGovernor governor_;
  std::size_t next_job_ = 0, taken_ = 0, sent_ = 0, borrowed_ = 0;
  unsigned connections_ = 0;
  std::map<std::size_t, Result<Packed>> ready_;
  bool is_stopped_ = false;
  std::vector<std::jthread> workers_;  // last
};

static Error changed(const PullItem& item) {
  return Error{ErrorCode::source_changed, fmt::format("'{}' changed after it was scanned", printable(item.path.bytes()))}
      .note("nothing was changed on the target")
      .hint("run again when the source is quiet");
}

Result<os::Fd> Sender::open(const PullItem& item) const {
  TRY(os::Fd fd, os::open_file(root_fd_, item.path.bytes()));
  TRY(const os::Stat st, os::stat_fd(fd.get()));
  if (st.size != item.content.size) return changed(item);
  return fd;
}

Result<void> Sender::append(PackBuilder& pack, const PullItem& item, int fd, u64 offset, u64 length) const {
  const std::span<std::byte> place = pack.add({item.want, offset, narrow<u32>(length)});
  TRY(const std::size_t n, os::read_at(fd, offset, place, item.path.bytes()));
  if (n != length) return changed(item);
  return ok();
}

Result<Packed> Sender::pack_parts(std::span<const Part> parts, int level) const {
  u64 bytes = 0;
  for (const Part& part : parts) bytes += part.length;
  PackBuilder pack(parts.size(), static_cast<std::size_t>(bytes));
  os::Fd fd;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PullItem& item = items_[parts[i].item];
    if (i == 0 || parts[i].item != parts[i - 1].item) {
      TRY(fd, open(item));
    }
    TRY_STATUS(append(pack, item, fd.get(), parts[i].offset, parts[i].length));
  }
  return Packed{std::move(pack).finish(level), level, bytes};
}

Result<Packed> Sender::pack(const Job& job, int level) const {
  if (job.by_part) return pack_parts(std::span(parts_).subspan(job.first, job.last - job.first), level);
  u64 bytes = job.length;
  for (std::size_t i = job.first; i < job.last && job.length == 0; ++i) bytes += items_[i].content.size;
  PackBuilder pack(job.last - job.first, static_cast<std::size_t>(bytes));
  for (std::size_t i = job.first; i < job.last; ++i) {
    TRY(const os::Fd fd, open(items_[i]));
    TRY_STATUS(append(pack, items_[i], fd.get(), job.offset, job.length > 0 ? job.length : items_[i].content.size));
  }
  return Packed{std::move(pack).finish(level), level, bytes};
}

void Sender::work() {
  for (;;) {
    std::size_t index = 0;
    int level = 0;
    {
      std::unique_lock lock(packing_.mutex);
      // A worker takes no job further ahead than the sender can hold: memory stays bounded.
      packing_.changed.wait(lock, [&] { return is_stopped_ || next_job_ >= jobs_.size() || may_take(); });
      if (is_stopped_ || next_job_ >= jobs_.size()) return;
      if (next_job_ != sent_) {
        --packing_.spare;
        ++borrowed_;
      }
      index = next_job_++;
      level = governor_.level();
    }
    Result<Packed> packed = pack(jobs_[index], level);
    const std::lock_guard lock(packing_.mutex);
    ready_.emplace(index, std::move(packed));
    packing_.changed.notify_all();
  }
}

/// The next pack; nothing after the last.
Result<std::optional<Packed>> Sender::take(const std::stop_token& stop) {
  std::unique_lock lock(packing_.mutex);
  const bool is_there = packing_.changed.wait(lock, stop, [&] { return is_stopped_ || taken_ >= jobs_.size() || ready_.contains(taken_); });
  if (!is_there || is_stopped_) return Error{ErrorCode::interrupted, "the request was cancelled"};
  if (taken_ >= jobs_.size()) return Result<std::optional<Packed>>(tl::in_place, std::nullopt);
  Result<Packed> packed = std::move(ready_.extract(taken_++).mapped());
  packing_.changed.notify_all();
  if (!packed) return std::move(packed).error();
  return std::optional(std::move(*packed));
}

void Sender::note_sent(const Packed& packed, Seconds waited, Seconds sending) {
  const std::lock_guard lock(packing_.mutex);
  ++sent_;
  if (borrowed_ > 0) {
    --borrowed_;
    ++packing_.spare;
  }
  // Of a time that several connections share, each has its part.
  governor_.sent(packed.level, packed.content, waited / std::max(1u, connections_), sending / std::max(1u, connections_));
  packing_.changed.notify_all();
}

void Sender::stop_workers() {
  const std::lock_guard lock(packing_.mutex);
  is_stopped_ = true;
  packing_.spare += std::exchange(borrowed_, 0);
  packing_.changed.notify_all();
}

Result<void> Sender::send_on(protocol::Connection& connection, u32 number, const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const auto count = [this](unsigned more) {
    const std::lock_guard lock(packing_.mutex);
    connections_ += more;
  };
  count(1);
  const ScopeGuard leave([&] { count(~0u); });
  for (;;) {
    const auto asked = Clock::now();
    TRY(std::optional<Packed> packed, take(stop));
    if (!packed) return ok();
    const auto taken = Clock::now();
    auto sent = connection.send_blob(number, packed->bytes, stop);
    packed->bytes = {};
    note_sent(*packed, taken - asked, Clock::now() - taken);
    if (!sent) return sent;
  }
}

void Pulls::announce(u32 number) {
  const std::lock_guard lock(mutex_);
  open_.try_emplace(number);
}

Result<void> Pulls::send(protocol::Connection& connection, u32 number, bool may_be_helped, int root_fd, std::vector<PullItem> items,
                         content::LevelGovernor governor, std::stop_token stop) {
  const auto sender = std::make_shared<Sender>(packing_, root_fd, std::move(items), governor);
  if (may_be_helped) {
    const std::lock_guard lock(mutex_);
    open_[number] = sender;
    changed_.notify_all();
  }
  auto sent = sender->send_on(connection, number, stop);
  // Those who help have the last packs in hand, and their own way to fail.
  if (!sent) sender->stop_workers();
  return sent;
}

void Pulls::end(u32 number) {
  constexpr std::size_t kRemembered = 1000;
  const std::lock_guard lock(mutex_);
  open_.erase(number);
  over_.push_back(number);
  if (over_.size() > kRemembered) over_.pop_front();
  changed_.notify_all();
}

/// Null where it is over.
std::shared_ptr<Sender> Pulls::find(u32 pull, const std::stop_token& stop) {
  constexpr std::chrono::seconds kPatience{10};  // the two requests came over different connections
  std::unique_lock lock(mutex_);
  std::shared_ptr<Sender> found;
  changed_.wait_for(lock, stop, kPatience, [&] {
    const auto at = open_.find(pull);
    if (at != open_.end()) found = at->second;
    return found || std::ranges::find(over_, pull) != over_.end();
  });
  return found;
}

Result<void> Pulls::help(protocol::Connection& connection, u32 number, u32 pull, std::stop_token stop) {
  const auto sender = find(pull, stop);
  return sender ? sender->send_on(connection, number, stop) : ok();
}

}  // namespace envsync::agent
