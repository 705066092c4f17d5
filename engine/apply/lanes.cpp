// SPDX-License-Identifier: MIT
#include "apply/lanes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "content/pack.hpp"
#include "os/process.hpp"

namespace envsync::apply {

namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr u64 kWatchFrom = 32u << 20;  // below, no second connection pays
constexpr double kCpuFull = 0.9;

}  // namespace

Lanes::Lanes(protocol::Endpoint& control, Opener opener, std::shared_ptr<LaneGate> gate, std::string hop)
    : opener_(std::move(opener)), gate_(gate ? std::move(gate) : std::make_shared<LaneGate>()), hop_(std::move(hop)) {
  lanes_.push_back({std::shared_ptr<protocol::Endpoint>(&control, [](protocol::Endpoint*) {}), true});
}

Lanes::~Lanes() {
  watcher_ = {};
  const std::lock_guard lock(gate_->mutex);
  gate_->open -= narrow<unsigned>(lanes_.size() - 1);
}

void Lanes::expect(u64 content_bytes) {
  const std::lock_guard lock(mutex_);
  expected_ += content_bytes;
  if (!opener_ || watcher_.joinable() || expected_ - std::min(expected_, moved_) < kWatchFrom) return;
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void Lanes::begin(Work& work) {
  const std::lock_guard lock(mutex_);
  works_.push_back(&work);
  for (const Lane& lane : lanes_) work.start_on(lane);
  changed_.notify_all();
}

void Lanes::end(Work& work) {
  const std::lock_guard lock(mutex_);
  if (std::erase(works_, &work) > 0) waited_before_ += work.waited();
}

/// A relay looks at nothing of a pack but its header.
void Lanes::note_moved(ByteView pack) {
  const u64 content = content::raw_bytes_of(pack);
  const std::lock_guard lock(mutex_);
  moved_ += content;
}

void Lanes::note_lost(const std::shared_ptr<protocol::Endpoint>& endpoint) {
  const std::lock_guard lock(mutex_);
  const auto lost = std::ranges::find(lanes_, endpoint, &Lane::endpoint);
  if (lost == lanes_.end()) return;
  gone_sent_ += endpoint->bytes_sent();
  gone_received_ += endpoint->bytes_received();
  lanes_.erase(lost);
  why_no_more_ = "a connection was lost";
  const std::lock_guard all(gate_->mutex);
  --gate_->open;
}

void Lanes::refuse(std::string why) {
  const std::lock_guard lock(mutex_);
  if (why_no_more_.empty()) why_no_more_ = std::move(why);
}

Result<std::unique_ptr<protocol::Endpoint>> Lanes::connect(const std::stop_token& stop) {
  std::shared_ptr<std::mutex> hop;
  {
    const std::lock_guard lock(gate_->mutex);
    if (gate_->open >= LaneGate::kInAllMax) return Error{ErrorCode::failed, fmt::format("there are {} connections", gate_->open)};
    std::shared_ptr<std::mutex>& found = gate_->hops[hop_];
    if (!found) found = std::make_shared<std::mutex>();
    hop = found;
  }
  if (name_.empty()) {
    secret_ = os::random_token() + os::random_token();
    TRY(format::LanesReply reply, lanes_.front().endpoint->lanes({secret_}, stop));
    name_ = std::move(reply.name);
  }
  const std::lock_guard one_at_a_time(*hop);
  return opener_(name_, secret_, stop);
}

bool Lanes::open_one() {
  {
    const std::lock_guard lock(mutex_);
    if (!opener_ || !why_no_more_.empty() || lanes_.size() >= kLanesMax) return false;
  }
  const std::stop_token stop = watcher_.get_stop_token();
  auto made = connect(stop);
  if (!made) {
    const Error& error = made.error();
    refuse(error.causes.empty() ? error.what : fmt::format("{}: {}", error.what, error.causes.front()));
    return false;
  }
  {
    const std::lock_guard lock(gate_->mutex);
    ++gate_->open;
  }
  const std::lock_guard lock(mutex_);
  const Lane& lane = lanes_.emplace_back(Lane{std::move(*made), false});
  most_ = std::max(most_, narrow<unsigned>(lanes_.size()));
  for (Work* work : works_) work->start_on(lane);
  return true;
}

void Lanes::watch(const std::stop_token& stop) {
  Ramp ramp;
  Seconds active{}, waited_until{};
  auto before = std::chrono::steady_clock::now();
  Seconds cpu_before = os::cpu_time();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kTick, [] { return false; });
      // Between two transfers nobody is waited for, and time stands still.
      if (works_.empty()) changed_.wait(lock, stop, [this] { return !works_.empty(); });
      if (stop.stop_requested() || !why_no_more_.empty()) return;
    }
    const auto now = std::chrono::steady_clock::now();
    const Seconds passed = std::min<Seconds>(now - before, 2 * kTick);
    before = now;
    active += passed;
    const Seconds cpu = os::cpu_time();
    Ramp::Sight sight = look();
    const Seconds waited{sight.busy};
    sight.at = active;
    sight.busy = std::clamp((waited - waited_until) / passed, 0.0, 1.0);
    sight.is_cpu_full = cpu - cpu_before > kCpuFull * os::cpu_count() * passed;
    waited_until = waited;
    cpu_before = cpu;
    if (ramp.has_settled()) return;
    for (unsigned more = ramp.more(sight); more > 0 && open_one(); --more) {}
  }
}

/// `busy` holds the seconds that the host was waited for in all.
Ramp::Sight Lanes::look() const {
  Ramp::Sight sight;
  sight.wire_bytes = bytes_sent() + bytes_received();
  const std::lock_guard lock(mutex_);
  Seconds waited = waited_before_;
  for (const Work* work : works_) waited += work->waited();
  sight.busy = waited.count();
  sight.content_moved = moved_;
  sight.content_left = expected_ - std::min(expected_, moved_);
  sight.lanes = narrow<unsigned>(lanes_.size());
  return sight;
}

unsigned Lanes::count() const {
  const std::lock_guard lock(mutex_);
  return narrow<unsigned>(lanes_.size());
}

unsigned Lanes::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

std::string Lanes::why_no_more() const {
  const std::lock_guard lock(mutex_);
  return why_no_more_;
}

u64 Lanes::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  u64 sum = gone_sent_;
  for (const Lane& lane : lanes_) sum += lane.endpoint->bytes_sent();
  return sum;
}

u64 Lanes::bytes_received() const {
  const std::lock_guard lock(mutex_);
  u64 sum = gone_received_;
  for (const Lane& lane : lanes_) sum += lane.endpoint->bytes_received();
  return sum;
}

}  // namespace envsync::apply
