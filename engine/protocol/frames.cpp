// SPDX-License-Identifier: MIT
#include "protocol/frames.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace envsync::protocol {

namespace {

constexpr std::size_t kHeaderBytes = 9;
constexpr std::size_t kWritePiece = 256u << 10;
constexpr std::size_t kStreamPiece = 1u << 20;
constexpr std::size_t kWaitingFramesMax = 64;  // LIMIT: frames of a request that are no blobs and were not taken yet

std::size_t length_limit(FrameType type) {
  switch (type) {
    case FrameType::hello:
    case FrameType::request:
    case FrameType::reply:
    case FrameType::error:
    case FrameType::progress: return format::kControlBytesMax;
    case FrameType::blob: return kBlobMax;
    case FrameType::credit: return 8;
    case FrameType::blob_end:
    case FrameType::cancel:
    case FrameType::ping:
    case FrameType::pong: return 0;
  }
  return 0;
}

bool ends_request(FrameType type) { return type == FrameType::reply || type == FrameType::error; }

struct Mailbox {
  std::deque<Frame> frames;
  std::size_t waiting = 0;      // frames that are no blobs
  u64 may_receive = 0;          // granted to the peer and not used
  u64 may_send = 0;             // granted by the peer and not used
  bool is_ended = false;        // a reply or an error came
  std::stop_source stop;
};

}  // namespace

struct Connection::State {
  std::unique_ptr<channel::Channel> channel;
  std::function<void(Frame)> on_new;
  std::function<void()> on_end;

  std::mutex write_mutex;  // one frame at a time on the channel

  mutable std::mutex mutex;  // all below
  std::condition_variable_any changed;
  std::map<u32, Mailbox> boxes;
  bool has_ended = false;
  bool is_pong_due = false, is_ping_due = false;
  std::optional<std::chrono::steady_clock::time_point> pinged;  // and no pong came yet
  double round_trip = 0;       // seconds that the quickest pong took; 0: none came
  Error reason{ErrorCode::connection_lost, "the connection was closed"};

  std::atomic<u64> sent{0}, received{0};
  std::thread reader, pinger;

  Result<void> read_exactly(std::span<std::byte> out);
  Result<Frame> read_frame();
  Result<void> dispatch(Frame frame);
  Result<void> deliver(Mailbox& box, Frame frame);
  Result<void> write_frame(FrameType type, u32 request, ByteView payload, const Pacer& pacer = {});
  void read_loop();
  void ping();
  void ping_loop();
  void end(Error why);
};

Result<void> Connection::State::read_exactly(std::span<std::byte> out) {
  while (!out.empty()) {
    TRY(const std::size_t n, channel->read(out, deadline_in(kSilenceMax)));
    if (n == 0) return Error{ErrorCode::connection_lost, "the other side closed the connection"};
    received += n;
    out = out.subspan(n);
  }
  return ok();
}

Result<Frame> Connection::State::read_frame() {
  std::array<std::byte, kHeaderBytes> header;
  TRY_STATUS(read_exactly(header));
  ByteView in = header;
  const u32 length = *take_le<u32>(in);
  const u8 type = *take_le<u8>(in);
  const u32 request = *take_le<u32>(in);
  if (type < static_cast<u8>(FrameType::hello) || type > static_cast<u8>(FrameType::pong))
    return Error{ErrorCode::protocol, fmt::format("a frame of type {} came, which does not exist", type)};
  Frame frame{static_cast<FrameType>(type), request, {}};
  if (length > length_limit(frame.type))
    return Error{ErrorCode::protocol, fmt::format("a frame of type {} has {} bytes, more than its limit", type, length)};
  frame.payload = Buffer(length);
  TRY_STATUS(read_exactly({frame.payload.data(), length}));
  return frame;
}

Result<void> Connection::State::deliver(Mailbox& box, Frame frame) {
  if (frame.type == FrameType::credit) {
    ByteView in = frame.payload;
    const auto bytes = take_le<u64>(in);
    const auto sum = bytes ? checked_add(box.may_send, *bytes) : std::nullopt;
    if (!sum) return Error{ErrorCode::protocol, "a credit frame does not decode"};
    box.may_send = *sum;
    return ok();
  }
  if (frame.type == FrameType::cancel) {
    box.stop.request_stop();
    return ok();
  }
  if (frame.type == FrameType::blob) {
    if (frame.payload.empty() || frame.payload.size() > box.may_receive)
      return Error{ErrorCode::protocol, "a blob came that was not asked for"};
    box.may_receive -= frame.payload.size();
  } else if (frame.type == FrameType::progress && !box.frames.empty() && box.frames.back().type == FrameType::progress) {
    box.frames.back() = std::move(frame);  // only the latest matters
    return ok();
  } else if (++box.waiting > kWaitingFramesMax) {
    return Error{ErrorCode::protocol, "too many frames for one request"};
  }
  if (ends_request(frame.type)) box.is_ended = true;
  box.frames.push_back(std::move(frame));
  return ok();
}

Result<void> Connection::State::dispatch(Frame frame) {
  if (frame.type == FrameType::ping) {
    // RACE: answering here could block the reader behind a bulk write while the peer does the same: both would stand.
    const std::lock_guard lock(mutex);
    is_pong_due = true;
    changed.notify_all();
    return ok();
  }
  if (frame.type == FrameType::pong) {
    const std::lock_guard lock(mutex);
    if (!pinged) return ok();
    const double took = Seconds(std::chrono::steady_clock::now() - *std::exchange(pinged, {})).count();
    round_trip = round_trip == 0 ? took : std::min(round_trip, took);
    return ok();
  }
  const u32 request = frame.request;
  if (frame.type == FrameType::request) {
    if (!on_new) return Error{ErrorCode::protocol, "a request came to the side that asks"};
    {
      const std::lock_guard lock(mutex);
      if (boxes.contains(request)) return Error{ErrorCode::protocol, fmt::format("request {} came twice", request)};
      boxes[request];
    }
    on_new(std::move(frame));
    return ok();
  }
  const std::lock_guard lock(mutex);
  const auto box = boxes.find(request);
  if (box == boxes.end()) return ok();  // closed meanwhile: a late progress or credit
  TRY_STATUS(deliver(box->second, std::move(frame)));
  changed.notify_all();
  return ok();
}

Result<void> Connection::State::write_frame(FrameType type, u32 request, ByteView payload, const Pacer& pacer) {
  Bytes header;
  header.reserve(kHeaderBytes + std::min(payload.size(), kWritePiece));
  put_le(header, narrow<u32>(payload.size()));
  put_le(header, static_cast<u8>(type));
  put_le(header, request);
  // The first piece travels with the header, so that a small frame is one write.
  const ByteView first = payload.first(std::min(payload.size(), kWritePiece - kHeaderBytes));
  header.insert(header.end(), first.begin(), first.end());
  payload = payload.subspan(first.size());
  const std::lock_guard lock(write_mutex);
  if (pacer) pacer(header.size());
  TRY_STATUS(channel->write(header, deadline_in(kSilenceMax * 2)));
  sent += header.size();
  while (!payload.empty()) {
    const ByteView piece = payload.first(std::min(payload.size(), kWritePiece));
    if (pacer) pacer(piece.size());
    TRY_STATUS(channel->write(piece, deadline_in(kSilenceMax * 2)));
    sent += piece.size();
    payload = payload.subspan(piece.size());
  }
  return ok();
}

void Connection::State::end(Error why) {
  {
    const std::lock_guard lock(mutex);
    if (has_ended) return;
    has_ended = true;
    reason = std::move(why);
    for (auto& [number, box] : boxes) box.stop.request_stop();
  }
  changed.notify_all();
  channel->abort();
  if (on_end) on_end();
}

void Connection::State::read_loop() {
  for (bool is_first = true;; is_first = false) {
    auto frame = read_frame();
    if (!frame) return end(std::move(frame).error());
    if (auto done = dispatch(std::move(*frame)); !done) return end(std::move(done).error());
    // The side that asks measures the way as soon as somebody is there to answer.
    if (is_first && !on_new) ping();
  }
}

void Connection::State::ping() {
  const std::lock_guard lock(mutex);
  is_ping_due = true;
  changed.notify_all();
}

void Connection::State::ping_loop() {
  std::unique_lock lock(mutex);
  while (!has_ended) {
    const auto wake = deadline_in(kPingEvery);
    changed.wait_until(lock, wake, [&] { return has_ended || is_pong_due || is_ping_due; });
    if (has_ended) return;
    const FrameType type = is_pong_due ? FrameType::pong : FrameType::ping;
    (type == FrameType::pong ? is_pong_due : is_ping_due) = false;
    if (type == FrameType::ping) pinged = std::chrono::steady_clock::now();
    lock.unlock();
    (void)write_frame(type, 0, {});  // an error shows in the reader
    lock.lock();
  }
}

Connection::Connection(std::unique_ptr<channel::Channel> channel) : state_(std::make_unique<State>()) {
  state_->channel = std::move(channel);
}

double Connection::round_trip() const {
  const std::lock_guard lock(state_->mutex);
  return state_->round_trip;
}

Connection::~Connection() {
  abort();
  if (state_->reader.joinable()) state_->reader.join();
  if (state_->pinger.joinable()) state_->pinger.join();
}

void Connection::start(std::function<void(Frame)> on_new, std::function<void()> on_end) {
  state_->on_new = std::move(on_new);
  state_->on_end = std::move(on_end);
  state_->reader = std::thread([s = state_.get()] { s->read_loop(); });
  state_->pinger = std::thread([s = state_.get()] { s->ping_loop(); });
}

void Connection::open(u32 request) {
  const std::lock_guard lock(state_->mutex);
  Mailbox& box = state_->boxes[request];
  if (state_->has_ended) box.stop.request_stop();
}

void Connection::close(u32 request) {
  const std::lock_guard lock(state_->mutex);
  state_->boxes.erase(request);
}

std::stop_token Connection::stop_of(u32 request) const {
  const std::lock_guard lock(state_->mutex);
  const auto box = state_->boxes.find(request);
  return box == state_->boxes.end() ? std::stop_token{} : box->second.stop.get_token();
}

Result<Frame> Connection::next(u32 request, std::stop_token stop) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const auto at = s.boxes.find(request);
  ENVSYNC_CHECK(at != s.boxes.end());
  Mailbox& box = at->second;
  s.changed.wait(lock, stop, [&] { return !box.frames.empty() || s.has_ended; });
  if (box.frames.empty()) {
    if (s.has_ended) return s.reason;
    return Error{ErrorCode::interrupted, "the run was stopped"};
  }
  Frame frame = std::move(box.frames.front());
  box.frames.pop_front();
  if (frame.type != FrameType::blob && box.waiting > 0) --box.waiting;
  return frame;
}

Result<void> Connection::send(FrameType type, u32 request, ByteView payload) {
  ENVSYNC_CHECK(payload.size() <= length_limit(type));
  return state_->write_frame(type, request, payload);
}

Result<void> Connection::send_blob(u32 request, ByteView payload, std::stop_token stop, const Pacer& pacer) {
  ENVSYNC_CHECK(!payload.empty() && payload.size() <= kBlobMax);
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    const auto at = s.boxes.find(request);
    ENVSYNC_CHECK(at != s.boxes.end());
    Mailbox& box = at->second;
    const std::stop_token cancelled = box.stop.get_token();
    const auto ready = [&] { return s.has_ended || box.is_ended || cancelled.stop_requested() || box.may_send >= payload.size(); };
    s.changed.wait(lock, stop, ready);
    if (s.has_ended) return s.reason;
    if (box.is_ended || cancelled.stop_requested() || !ready()) return Error{ErrorCode::interrupted, "the request was ended"};
    box.may_send -= payload.size();
  }
  return s.write_frame(FrameType::blob, request, payload, pacer);
}

Result<void> Connection::grant(u32 request, u64 bytes) {
  {
    const std::lock_guard lock(state_->mutex);
    const auto box = state_->boxes.find(request);
    ENVSYNC_CHECK(box != state_->boxes.end());
    box->second.may_receive += bytes;
  }
  Bytes payload;
  put_le(payload, bytes);
  return state_->write_frame(FrameType::credit, request, payload);
}

Result<void> Connection::send_stream(u32 request, ByteView bytes, std::stop_token stop) {
  while (!bytes.empty()) {
    const ByteView piece = bytes.first(std::min(bytes.size(), kStreamPiece));
    TRY_STATUS(send_blob(request, piece, stop));
    bytes = bytes.subspan(piece.size());
  }
  return send(FrameType::blob_end, request, {});
}

Result<Bytes> Connection::receive_stream(u32 request, std::size_t limit, std::stop_token stop) {
  Bytes out;
  TRY_STATUS(grant(request, 2 * kStreamPiece));
  for (;;) {
    TRY(const Frame frame, next(request, stop));
    if (frame.type == FrameType::blob_end) return out;
    if (frame.type == FrameType::error) {
      TRY(Error error, format::decode_error(frame.payload));
      return error;
    }
    if (frame.type != FrameType::blob) return Error{ErrorCode::protocol, "something else came where a blob was due"};
    if (out.size() + frame.payload.size() > limit) return Error{ErrorCode::protocol, "a blob exceeds its limit"};
    out.insert(out.end(), frame.payload.begin(), frame.payload.end());
    TRY_STATUS(grant(request, frame.payload.size()));
  }
}

u64 Connection::bytes_sent() const { return state_->sent; }
u64 Connection::bytes_received() const { return state_->received; }

bool Connection::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_ended;
}

Error Connection::end_reason() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reason;
}

void Connection::abort() noexcept { state_->end(Error{ErrorCode::connection_lost, "the connection was closed"}); }

}  // namespace envsync::protocol
