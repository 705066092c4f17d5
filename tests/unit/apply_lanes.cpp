// SPDX-License-Identifier: MIT
#include "apply/lanes.hpp"

#include <map>
#include <set>

#include <sys/socket.h>

#include "support/agent_session.hpp"

using namespace envsync;
using namespace envsync::testing;
using apply::Arrived;
using apply::LaneGate;
using apply::Lanes;

namespace {

/// Further logins of a session, and the wires that they hang on.
struct Logins {
  std::vector<std::unique_ptr<Login>> all;

  Lanes::Opener opener() {
    return [this](const std::string& name, const std::string& secret, std::stop_token stop) -> Result<std::unique_ptr<Endpoint>> {
      Login& login = *all.emplace_back(std::make_unique<Login>(name));
      TRY_STATUS(login.endpoint->join(secret, stop));
      return std::move(login.endpoint);
    };
  }
  void cut(std::size_t which) { ::shutdown(all[which]->wire.get(), SHUT_RDWR); }
};

constexpr u64 kSegments = 9;

std::string text_of_segments() {
  std::string text(content::kSegmentBytes * (kSegments - 1) + 1234, 'x');
  for (std::size_t i = 0; i < text.size(); i += 4096) text[i] = static_cast<char>(i >> 15);
  return text;
}

/// Which segments came, and how often.
struct Came {
  std::map<u64, int> segments;
  Result<void> take(Buffer pack) {
    const auto open = content::decode_pack(std::move(pack));
    REQUIRE(open);
    for (const content::Piece& piece : open->pieces) ++segments[piece.offset / content::kSegmentBytes];
    return ok();
  }
};

struct Source {
  Served served;
  Logins logins;
  std::vector<format::PullItem> items;
  Source() {
    const std::string text = text_of_segments();
    served.folder.write("src/big", text);
    served.scan(format::Role::source, "src");
    items = {{7, rel("big"), id_of(text)}};
  }
};

ByteView segment_of(const std::string& text, u64 at) {
  const u64 begin = at * content::kSegmentBytes;
  return as_bytes(text).subspan(begin, std::min<u64>(content::kSegmentBytes, text.size() - begin));
}

std::shared_ptr<const Buffer> shared_pack(u32 want, const std::string& text, u64 segment) {
  return std::make_shared<const Buffer>(pack_of(want, segment * content::kSegmentBytes, segment_of(text, segment)));
}

}  // namespace

TEST_CASE("lanes: a pull goes over each of them, and each pack comes once") {
  Source source;
  Lanes lanes(*source.served.control, source.logins.opener());
  REQUIRE(lanes.open_one());
  REQUIRE(lanes.open_one());
  CHECK(lanes.count() == 3);
  Came came;
  const u64 before = lanes.bytes_received();
  const auto arrived = lanes.pull({}, source.items, [&](Buffer pack) { return came.take(std::move(pack)); }, {});
  REQUIRE(arrived);
  CHECK(*arrived == Arrived::all);
  CHECK(came.segments.size() == kSegments);
  for (const auto& [segment, times] : came.segments) CHECK(times == 1);
  CHECK(lanes.bytes_received() > before);
}

TEST_CASE("lanes: one that comes in the middle of a pull takes part") {
  Source source;
  Lanes lanes(*source.served.control, source.logins.opener());
  Came came;
  const auto arrived = lanes.pull({}, source.items, [&](Buffer pack) {
    if (came.segments.empty()) CHECK(lanes.open_one());
    return came.take(std::move(pack));
  }, {});
  REQUIRE(arrived);
  CHECK(came.segments.size() == kSegments);
  CHECK(lanes.most() == 2);
}

TEST_CASE("lanes: one that is lost in the middle of a pull ends nothing, and what it carried is told to be missing") {
  Source source;
  Lanes lanes(*source.served.control, source.logins.opener());
  REQUIRE(lanes.open_one());
  Came came;
  const auto arrived = lanes.pull({}, source.items, [&](Buffer pack) {
    if (came.segments.empty()) source.logins.cut(0);
    return came.take(std::move(pack));
  }, {});
  REQUIRE(arrived);
  CHECK(*arrived == Arrived::some);
  CHECK(lanes.count() == 1);
  CHECK(lanes.why_no_more() == "a connection was lost");
  CHECK(!lanes.open_one());
  for (const auto& [segment, times] : came.segments) CHECK(times == 1);
}

TEST_CASE("lanes: an error of the source is one error, however many pull") {
  Source source;
  source.served.folder.write("src/big", "became small");
  Lanes lanes(*source.served.control, source.logins.opener());
  REQUIRE(lanes.open_one());
  Came came;
  const auto arrived = lanes.pull({}, source.items, [&](Buffer pack) { return came.take(std::move(pack)); }, {});
  REQUIRE(!arrived);
  CHECK(arrived.error().code == ErrorCode::source_changed);
}

TEST_CASE("lanes: the control connection's end is the end of a pull") {
  Source source;
  Lanes lanes(*source.served.control, source.logins.opener());
  REQUIRE(lanes.open_one());
  Came came;
  const auto arrived = lanes.pull({}, source.items, [&](Buffer pack) {
    if (came.segments.empty()) ::shutdown(source.served.wire.get(), SHUT_RDWR);
    return came.take(std::move(pack));
  }, {});
  REQUIRE(!arrived);
  CHECK(arrived.error().code == ErrorCode::connection_lost);
}

TEST_CASE("lanes: a put over three of them, one of which is lost, is completed by what the target lacks") {
  Served served;
  served.scan(format::Role::target, "env");
  const std::string text = text_of_segments();
  const Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  REQUIRE(stage(served, to.tree));
  Logins logins;
  Lanes lanes(*served.control, logins.opener());
  REQUIRE(lanes.open_one());
  REQUIRE(lanes.open_one());
  Lanes::Put put(lanes, {}, {});
  for (u64 at = 0; at < kSegments; ++at) {
    if (at == 4) logins.cut(1);
    REQUIRE(put.send(shared_pack(index, text, at)));
  }
  const auto done = put.finish();
  REQUIRE(done);
  const auto lack = served.control->lack({});
  REQUIRE(lack);
  CHECK((done->arrived == Arrived::some || lack->wanted.empty()));
  Lanes::Put rest(lanes, {}, {});
  for (const format::SegmentRange& range : lack->missing)
    for (u32 i = 0; i < range.count; ++i) REQUIRE(rest.send(shared_pack(index, text, range.first + i)));
  REQUIRE(rest.finish());
  REQUIRE(served.control->seal({}, {}));
  REQUIRE(served.control->commit({}));
  CHECK(served.folder.read("env/lib/large.so") == text);
}

TEST_CASE("lanes: what a target cannot take is an error of the put") {
  Served served;
  served.scan(format::Role::target, "env");
  const std::string text = text_of_segments();
  const Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  REQUIRE(stage(served, to.tree));
  Logins logins;
  Lanes lanes(*served.control, logins.opener());
  REQUIRE(lanes.open_one());
  Lanes::Put put(lanes, {}, {});
  const auto twice = [&]() -> Result<void> {
    for (int i = 0; i < 9; ++i) TRY_STATUS(put.send(shared_pack(index, text, 0)));
    TRY_STATUS(put.finish());
    return ok();
  }();
  REQUIRE(!twice);
  CHECK(twice.error().code == ErrorCode::protocol);
}

TEST_CASE("lanes: where no more are let in the first goes on alone, and why is kept") {
  Source source;
  Lanes lanes(*source.served.control, [](const std::string&, const std::string&, std::stop_token) -> Result<std::unique_ptr<Endpoint>> {
    return Error{ErrorCode::connect_failed, "cannot reach 'a'"}.cause("no session was opened");
  });
  CHECK(!lanes.open_one());
  CHECK(lanes.why_no_more() == "cannot reach 'a': no session was opened");
  Came came;
  REQUIRE(lanes.pull({}, source.items, [&](Buffer pack) { return came.take(std::move(pack)); }, {}));
  CHECK(came.segments.size() == kSegments);
}

TEST_CASE("lanes: a controller has no more than its own limit, and a host no more than eight") {
  Source source;
  const auto gate = std::make_shared<LaneGate>();
  {
    Lanes lanes(*source.served.control, source.logins.opener(), gate);
    while (lanes.open_one()) {}
    CHECK(lanes.count() == apply::kLanesMax);
    CHECK(gate->open == apply::kLanesMax - 1);
  }
  CHECK(gate->open == 0);
  gate->open = LaneGate::kInAllMax;
  Lanes lanes(*source.served.control, source.logins.opener(), gate);
  CHECK(!lanes.open_one());
}

TEST_CASE("lanes: this machine and hosts behind a command have one connection") {
  Source source;
  Lanes lanes(*source.served.control);
  CHECK(!lanes.open_one());
  lanes.expect(u64{1} << 40);
  CHECK(lanes.count() == 1);
}
