// SPDX-License-Identifier: MIT
// A put over all lanes: each has a put of its own into the one transaction, and takes the next pack when it has sent the one before.
#include <utility>

#include "apply/lanes.hpp"
#include "apply/stopwatch.hpp"

namespace envsync::apply {

struct Lanes::Put::State final : Lanes::Work {
  State(Lanes& a, std::stop_token outer, protocol::Pacer p)
      : all(a), pacer(std::move(p)), on_outer(outer, [this] { stop.request_stop(); }) {}
  ~State() override { give_up(); }

  void start_on(const Lane& lane) override {
    {
      const std::lock_guard lock(mutex);
      if (is_over) return;
    }
    senders.emplace_back([this, lane] { run(lane); });
  }

  Seconds waited() const override { return blocked.total(); }

  /// One lane's: until the packs end.
  void run(const Lane& lane) {
    bool has_taken = false;
    const auto done = [&]() -> Result<format::PutReply> {
      TRY(protocol::Endpoint::Put put, lane.endpoint->put());
      while (const auto pack = next()) {
        has_taken = true;
        TRY_STATUS(put.send(*pack, stop.get_token(), pacer));
        all.note_moved(*pack);
      }
      if (stop.stop_requested()) return Error{ErrorCode::interrupted, "the run was stopped"};
      return put.finish({}, stop.get_token());
    }();
    const bool is_lost = !done && !lane.is_control && (done.error().code == ErrorCode::connection_lost || lane.endpoint->ended());
    if (is_lost) all.note_lost(lane.endpoint);
    const std::lock_guard lock(mutex);
    if (done) result.bytes_written += done->bytes_written;
    else if (is_lost) result.arrived = has_taken ? Arrived::some : result.arrived;
    else if (!error) error = done.error();
    if (error) stop.request_stop();
    changed.notify_all();
  }

  std::shared_ptr<const Buffer> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, stop.get_token(), [this] { return offered || is_over; });
    if (stop.stop_requested()) return nullptr;
    changed.notify_all();
    return std::exchange(offered, nullptr);
  }

  void give_up() {
    stop.request_stop();
    close();
  }

  void close() {
    {
      const std::lock_guard lock(mutex);
      is_over = true;
      changed.notify_all();
    }
    all.end(*this);
    senders.clear();
  }

  Lanes& all;
  const protocol::Pacer pacer;
  std::stop_source stop;
  std::stop_callback<std::function<void()>> on_outer;
  Stopwatch blocked;                       // a pack waits for a lane
  std::mutex mutex;                        // all below but the senders
  std::condition_variable_any changed;
  std::shared_ptr<const Buffer> offered;
  bool is_over = false;
  std::optional<Error> error;
  Done result;
  std::vector<std::jthread> senders;       // under the mutex of the lanes, until end(); last
};

Lanes::Put::Put(Lanes& lanes, std::stop_token stop, protocol::Pacer pacer) : state_(std::make_unique<State>(lanes, std::move(stop), std::move(pacer))) {
  lanes.begin(*state_);
}

Lanes::Put::~Put() = default;

Result<void> Lanes::Put::send(std::shared_ptr<const Buffer> pack) {
  State& s = *state_;
  s.blocked.begin();
  std::unique_lock lock(s.mutex);
  s.offered = std::move(pack);
  s.changed.notify_all();
  s.changed.wait(lock, s.stop.get_token(), [&] { return !s.offered; });
  s.blocked.end();
  if (s.error) return *s.error;
  if (s.offered) return Error{ErrorCode::interrupted, "the run was stopped"};
  return ok();
}

Result<Lanes::Put::Done> Lanes::Put::finish() {
  State& s = *state_;
  s.close();
  if (s.error) return *s.error;
  return s.result;
}

}  // namespace envsync::apply
