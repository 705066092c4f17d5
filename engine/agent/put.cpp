// SPDX-License-Identifier: MIT
// The receiving side of bulk: packs are opened, checked and written by several threads while more arrive.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>

#include "agent/bulk.hpp"
#include "base/guard.hpp"
#include "content/pack.hpp"
#include "os/process.hpp"

namespace envsync::agent {

class Receiver {
 public:
  Receiver(Puts& all, std::stop_token end, protocol::Connection& connection, u32 number, store::Transaction& transaction,
           const std::function<void(u64)>& progress)
      : all_(all), end_(std::move(end)), connection_(connection), number_(number), transaction_(transaction), progress_(progress) {}

  Result<u64> run();

 private:
  void work();
  Result<u64> put(Buffer packed);
  Result<void> take_frames();
  void fail(Error error);

  Puts& all_;
  std::stop_token end_;
  protocol::Connection& connection_;
  const u32 number_;
  store::Transaction& transaction_;
  const std::function<void(u64)>& progress_;
  std::stop_source stop_;

  std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::deque<Buffer> waiting_;  // bounded by the credit that was granted
  bool is_complete_ = false;
  std::optional<Error> error_;
  u64 bytes_ = 0;
};

Result<u64> Receiver::put(Buffer packed) {
  all_.take_slot();
  const ScopeGuard done([&] { all_.give_slot(); });
  TRY(const content::OpenPack pack, content::decode_pack(std::move(packed)));
  TRY_STATUS(transaction_.put(pack.pieces, pack.content()));
  return pack.content().size();
}

void Receiver::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }
  stop_.request_stop();  // wakes the thread that waits for frames
}

void Receiver::work() {
  for (;;) {
    Buffer packed;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return error_ || is_complete_ || !waiting_.empty(); });
      if (error_ || waiting_.empty()) return;
      packed = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const u64 size = packed.size();
    auto written = put(std::move(packed));
    if (!written) return fail(std::move(written).error());
    if (auto granted = connection_.grant(number_, size); !granted) return fail(std::move(granted).error());
    const std::lock_guard lock(mutex_);
    bytes_ += *written;
    progress_(bytes_);
  }
}

Result<void> Receiver::take_frames() {
  const std::stop_callback on_cancel(connection_.stop_of(number_), [this] { stop_.request_stop(); });
  const std::stop_callback on_end(end_, [this] { stop_.request_stop(); });
  for (;;) {
    TRY(protocol::Frame frame, connection_.next(number_, stop_.get_token()));
    if (frame.type == protocol::FrameType::blob_end) return ok();
    if (frame.type != protocol::FrameType::blob) return Error{ErrorCode::protocol, "something else came where a pack was due"};
    const std::lock_guard lock(mutex_);
    if (error_) return ok();
    waiting_.push_back(std::move(frame.payload));
    changed_.notify_all();
  }
}

Result<u64> Receiver::run() {
  TRY_STATUS(connection_.grant(number_, all_.credit_of_new()));
  std::vector<std::jthread> workers;
  for (u32 i = 0; i < std::max(2u, os::cpu_count()); ++i) workers.emplace_back([this] { work(); });
  if (auto taken = take_frames(); !taken) fail(std::move(taken).error());
  {
    const std::lock_guard lock(mutex_);
    is_complete_ = true;
    changed_.notify_all();
  }
  workers.clear();
  if (error_) return std::move(*error_);
  return bytes_;
}

Result<u64> Puts::receive(protocol::Connection& connection, u32 number, store::Transaction& transaction, const std::function<void(u64 bytes)>& progress) {
  std::list<std::stop_source>::iterator own;
  {
    const std::lock_guard lock(mutex_);
    own = open_.emplace(open_.end());
  }
  auto received = Receiver(*this, own->get_token(), connection, number, transaction, progress).run();
  const std::lock_guard lock(mutex_);
  open_.erase(own);
  changed_.notify_all();
  return received;
}

void Puts::end_all() {
  std::unique_lock lock(mutex_);
  for (std::stop_source& open : open_) open.request_stop();
  changed_.wait(lock, [this] { return open_.empty(); });
}

/// LIMIT: each but the first has only as much as a pack may need.
u64 Puts::credit_of_new() {
  const std::lock_guard lock(mutex_);
  return open_.size() > 1 ? protocol::kBlobMax : protocol::kCreditWindow;
}

/// A pack that is opened is twice there: as many at once as there are cores to open them.
void Puts::take_slot() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return writing_ < std::max(2u, os::cpu_count()); });
  ++writing_;
}

void Puts::give_slot() {
  const std::lock_guard lock(mutex_);
  --writing_;
  changed_.notify_all();
}

}  // namespace envsync::agent
