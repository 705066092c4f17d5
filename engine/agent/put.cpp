// SPDX-License-Identifier: MIT
// The receiving side of bulk: packs are opened, checked and written by several threads while more arrive.
#include <condition_variable>
#include <deque>
#include <thread>

#include "agent/session.hpp"
#include "content/pack.hpp"
#include "os/process.hpp"

namespace envsync::agent {

namespace {

class Receiver {
 public:
  Receiver(protocol::Connection& connection, u32 number, store::Transaction& transaction, const std::function<void(u64)>& progress)
      : connection_(connection), number_(number), transaction_(transaction), progress_(progress) {}

  Result<u64> run();

 private:
  void work();
  Result<u64> put(Buffer packed);
  Result<void> take_frames();
  void fail(Error error);

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
  TRY_STATUS(connection_.grant(number_, protocol::kCreditWindow));
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

}  // namespace

Result<u64> receive_packs(protocol::Connection& connection, u32 number, store::Transaction& transaction,
                          const std::function<void(u64 bytes)>& progress) {
  return Receiver(connection, number, transaction, progress).run();
}

}  // namespace envsync::agent
