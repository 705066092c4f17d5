// SPDX-License-Identifier: MIT
#include "protocol/frames.hpp"

#include <future>
#include <set>

#include <doctest/doctest.h>

#include "os/process.hpp"

using namespace envsync;
using namespace envsync::protocol;

namespace {

/// Two connections back to back; what the second gets as new requests lands in `asked`.
struct Pair {
  // Before the connections, which call back until they are destroyed.
  std::promise<Frame> asked;
  std::promise<void> far_ended;
  std::unique_ptr<Connection> near, far;

  Pair() {
    auto sockets = os::make_socket_pair();
    REQUIRE(sockets);
    near = std::make_unique<Connection>(channel::make_fd_channel(std::move(sockets->first), {}));
    far = std::make_unique<Connection>(channel::make_fd_channel(std::move(sockets->second), {}));
    far->start([this](Frame frame) { asked.set_value(std::move(frame)); }, [this] { far_ended.set_value(); });
    near->start({}, {});
  }
  /// Opens request 7 on both sides.
  void ask() {
    near->open(7);
    REQUIRE(near->send(FrameType::request, 7, as_bytes("what is there")));
    CHECK(as_text(asked.get_future().get().payload) == "what is there");
  }
};

/// A raw peer: bytes go to a connection as they are.
struct RawPeer {
  std::promise<void> ended;  // before the connection, which calls back until it is destroyed
  std::unique_ptr<channel::Channel> raw;
  std::unique_ptr<Connection> connection;
  RawPeer() {
    auto sockets = os::make_socket_pair();
    REQUIRE(sockets);
    raw = channel::make_fd_channel(std::move(sockets->first), {});
    connection = std::make_unique<Connection>(channel::make_fd_channel(std::move(sockets->second), {}));
    connection->open(1);
    connection->start({}, [this] { ended.set_value(); });
  }
  void send(u32 length, u8 type, u32 request, std::string_view payload = {}) {
    Bytes bytes;
    put_le(bytes, length);
    put_le(bytes, type);
    put_le(bytes, request);
    for (const char c : payload) bytes.push_back(static_cast<std::byte>(c));
    REQUIRE(raw->write(bytes, deadline_in(Seconds{10})));
  }
};

}  // namespace

TEST_CASE("a stream of many windows arrives whole while credit is granted as it is taken") {
  Pair pair;
  pair.ask();
  Bytes sent(20u << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  auto sending = std::async(std::launch::async, [&] { return pair.far->send_stream(7, sent); });
  auto got = pair.near->receive_stream(7, sent.size());
  REQUIRE(got);
  CHECK(*got == sent);
  CHECK(sending.get());
  CHECK(pair.near->bytes_received() > sent.size());
}

TEST_CASE("a stream over its limit is refused") {
  Pair pair;
  pair.ask();
  auto sending = std::async(std::launch::async, [&] { return pair.far->send_stream(7, Bytes(3u << 20)); });
  auto got = pair.near->receive_stream(7, 2u << 20);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::protocol);
  pair.near->abort();
  (void)sending.get();
}

TEST_CASE("without credit nothing is sent, and the peer's answer ends the wait") {
  Pair pair;
  pair.ask();
  auto sending = std::async(std::launch::async, [&] { return pair.near->send_blob(7, as_bytes("pack")); });
  REQUIRE(pair.far->send(FrameType::error, 7, format::encode(Error{ErrorCode::no_space, "no space left"})));
  CHECK_FALSE(sending.get());
  auto frame = pair.near->next(7);
  REQUIRE(frame);
  CHECK(frame->type == FrameType::error);
}

TEST_CASE("cancel reaches the request's stop token and wakes a sender without credit") {
  Pair pair;
  pair.ask();
  const std::stop_token stop = pair.far->stop_of(7);
  auto sending = std::async(std::launch::async, [&] { return pair.far->send_blob(7, as_bytes("pack")); });
  REQUIRE(pair.near->send(FrameType::cancel, 7, {}));
  CHECK_FALSE(sending.get());
  CHECK(stop.stop_requested());
}

TEST_CASE("the end of one side ends every wait on the other with connection_lost") {
  Pair pair;
  pair.ask();
  auto waiting = std::async(std::launch::async, [&] { return pair.near->next(7); });
  pair.far.reset();
  auto frame = waiting.get();
  REQUIRE_FALSE(frame);
  CHECK(frame.error().code == ErrorCode::connection_lost);
  CHECK_FALSE(pair.near->send(FrameType::cancel, 7, {}));
}

TEST_CASE("only the latest of progress frames in a row is kept") {
  Pair pair;
  pair.ask();
  for (u64 i = 1; i <= 500; ++i) REQUIRE(pair.far->send(FrameType::progress, 7, format::encode(format::Progress{Phase::scan, i, 0, 0, 0})));
  REQUIRE(pair.far->send(FrameType::reply, 7, {}));
  u64 last = 0;
  std::size_t seen = 0;
  for (;;) {
    auto frame = pair.near->next(7);
    REQUIRE(frame);
    if (frame->type == FrameType::reply) break;
    ++seen;
    last = format::decode_progress(frame->payload)->files_done;
  }
  CHECK(seen >= 1);
  CHECK(last == 500);
}

TEST_CASE("frames of a closed request are dropped and the connection lives on") {
  Pair pair;
  pair.ask();
  pair.near->close(7);
  REQUIRE(pair.far->send(FrameType::reply, 7, as_bytes("late")));
  pair.near->open(8);
  REQUIRE(pair.far->send(FrameType::reply, 8, as_bytes("due")));
  auto frame = pair.near->next(8);
  REQUIRE(frame);
  CHECK(as_text(frame->payload) == "due");
}

TEST_CASE("a hostile length, an unknown type, a request to the asking side and an unasked blob end the connection") {
  struct Hostile { u32 length; u8 type; std::string_view payload; };
  for (const Hostile& hostile : {Hostile{0xffffffffu, 2, ""}, Hostile{0, 77, ""}, Hostile{0, 0, ""}, Hostile{1, 2, "x"},
                                 Hostile{4, 6, "blob"}, Hostile{1, 10, "x"}, Hostile{3, 8, "abc"}}) {
    RawPeer peer;
    peer.send(hostile.length, hostile.type, 1, hostile.payload);
    auto frame = peer.connection->next(1);
    REQUIRE_FALSE(frame);
    CHECK(frame.error().code == ErrorCode::protocol);
    peer.ended.get_future().get();
  }
}

TEST_CASE("a frame cut at any byte is an end, never a frame") {
  Bytes whole;
  put_le(whole, u32{5});
  put_le(whole, u8{3});
  put_le(whole, u32{1});
  for (const char c : std::string_view("reply")) whole.push_back(static_cast<std::byte>(c));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    RawPeer peer;
    if (cut > 0) REQUIRE(peer.raw->write(ByteView(whole).first(cut), deadline_in(Seconds{10})));
    peer.raw->close_write();
    auto frame = peer.connection->next(1);
    REQUIRE_FALSE(frame);
    CHECK(frame.error().code == ErrorCode::connection_lost);
    peer.ended.get_future().get();
  }
}

/// The type of the next frame, which has no payload.
u8 next_type(RawPeer& peer) {
  Bytes header(9);
  std::size_t have = 0;
  while (have < header.size()) {
    auto n = peer.raw->read(std::span(header).subspan(have), deadline_in(Seconds{10}));
    REQUIRE(n);
    REQUIRE(*n > 0);
    have += *n;
  }
  return std::to_integer<u8>(header[4]);
}

TEST_CASE("a ping is answered while the answering side's reader is busy with nothing else, and the first frame brings a ping") {
  RawPeer peer;
  peer.send(0, 10, 0);
  CHECK(std::set{next_type(peer), next_type(peer)} == std::set<u8>{10, 11});
}

TEST_CASE("a pong tells how long the way is, and one that nobody asked for tells nothing") {
  RawPeer peer;
  peer.send(0, 11, 0);
  CHECK(next_type(peer) == 10);
  CHECK(peer.connection->round_trip() == 0);
  peer.send(0, 11, 0);
  peer.send(2, 3, 1, "ok");  // what comes after it was read after it
  REQUIRE(peer.connection->next(1));
  CHECK(peer.connection->round_trip() > 0);
}
