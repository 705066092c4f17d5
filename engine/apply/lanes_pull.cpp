// SPDX-License-Identifier: MIT
// A pull over all lanes: lane 0 asks, the others help with the same packs.
#include "apply/lanes.hpp"
#include "apply/stopwatch.hpp"

namespace envsync::apply {

struct Lanes::Pulling final : Lanes::Work {
  Pulling(Lanes& a, const PackSink& s, const std::stop_token& outer)
      : all(a), sink(s), began(std::chrono::steady_clock::now()), on_outer(outer, [this] { stop.request_stop(); }) {}
  ~Pulling() override {
    all.end(*this);
    stop.request_stop();
  }

  void start_on(const Lane& lane) override {
    if (lane.is_control) return;
    helpers.emplace_back([this, endpoint = lane.endpoint] {
      auto helped = endpoint->help_pull(number, [this](Buffer pack) { return take(std::move(pack)); }, stop.get_token());
      if (!helped) failed(endpoint, std::move(helped).error());
    });
  }

  Seconds waited() const override { return std::chrono::steady_clock::now() - began - in_sink.total(); }

  Result<void> take(Buffer pack) {
    const std::lock_guard lock(sink_mutex);
    all.note_moved(pack);
    in_sink.begin();
    auto taken = sink(std::move(pack));
    in_sink.end();
    if (!taken) fail(taken.error());
    return taken;
  }

  void fail(Error why) {
    const std::lock_guard lock(result_mutex);
    if (!error && !stop.stop_requested()) error = std::move(why);
    stop.request_stop();
  }

  void failed(const std::shared_ptr<protocol::Endpoint>& endpoint, Error why) {
    {
      // What the sink says may be the end of another host's connection.
      const std::lock_guard lock(result_mutex);
      if (error) return;
      // The place ends every lane's part when the request of lane 0 ends, which has the reason.
      if (why.code == ErrorCode::interrupted) {
        arrived = Arrived::some;
        return;
      }
    }
    if (why.code != ErrorCode::connection_lost && !endpoint->ended()) return fail(std::move(why));
    all.note_lost(endpoint);
    const std::lock_guard lock(result_mutex);
    arrived = Arrived::some;
  }

  /// Waits until every lane has given what it had.
  Result<Arrived> finish(Result<void> control) {
    if (!control) {
      const std::lock_guard lock(result_mutex);
      if (!error) error = std::move(control).error();
      stop.request_stop();
    }
    all.end(*this);
    helpers.clear();
    if (error) return std::move(*error);
    return arrived;
  }

  Lanes& all;
  const PackSink& sink;
  u32 number = 0;                 // set before anything helps
  const std::chrono::steady_clock::time_point began;
  Stopwatch in_sink;
  std::stop_source stop;
  std::stop_callback<std::function<void()>> on_outer;
  std::mutex sink_mutex;          // one at a time
  std::mutex result_mutex;        // the two below
  std::optional<Error> error;
  Arrived arrived = Arrived::all;
  std::vector<std::jthread> helpers;  // under the mutex of the lanes, until end(); last
};

Result<Arrived> Lanes::pull(const format::PullRequest& request, const std::vector<format::PullItem>& items, const PackSink& sink, std::stop_token stop) {
  std::shared_ptr<protocol::Endpoint> control;
  {
    const std::lock_guard lock(mutex_);
    control = lanes_.front().endpoint;
  }
  Pulling pulling(*this, sink, stop);
  const auto is_open = [&](u32 number) {
    pulling.number = number;
    begin(pulling);
  };
  return pulling.finish(control->pull(request, items, [&](Buffer pack) { return pulling.take(std::move(pack)); }, pulling.stop.get_token(), is_open));
}

}  // namespace envsync::apply
