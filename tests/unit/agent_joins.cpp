// SPDX-License-Identifier: MIT
#include "os/sockets.hpp"
#include "support/agent_session.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

std::string code_of(const Result<void>& result) { return result ? "ok" : std::string(info(result.error().code).name); }

std::string large_text() { return large('j'); }

}  // namespace

TEST_CASE("a connection that joins is served by the session that scanned") {
  Served served;
  served.folder.write("src/lib/a.txt", "hello");
  served.scan(format::Role::source, "src");
  Login login(served.open_door());
  REQUIRE(login.endpoint->join("0123", {}));
  std::size_t packs = 0;
  REQUIRE(login.endpoint->pull({}, {{3, rel("lib/a.txt"), id_of("hello")}},
                               [&](Buffer pack) -> Result<void> {
                                 auto open = content::decode_pack(std::move(pack));
                                 CHECK(as_text(open->content()) == "hello");
                                 ++packs;
                                 return ok();
                               },
                               {}));
  CHECK(packs == 1);
  SUBCASE("its login ends when the connection does") {
    login.close();
    CHECK(login.status.get() == 0);
  }
  SUBCASE("it ends with the control connection") {
    served.close();
    CHECK(served.status.get() == 0);
    CHECK(login.status.get() == 0);
    CHECK(code_of(login.endpoint->pull({}, {{3, rel("lib/a.txt"), id_of("hello")}}, {}, {})) == "connection_lost");
  }
}

TEST_CASE("a connection with a wrong secret is refused, and the session goes on") {
  Served served;
  served.folder.write("src/a", "x");
  const std::string name = served.open_door("right");
  for (const char* secret : {"", "righ", "rights", "wrong"}) {
    CAPTURE(secret);
    Login login(name);
    const auto joined = login.endpoint->join(secret, {});
    REQUIRE(!joined);
    CHECK(joined.error().what == "the connection is not of this run");
    login.close();
    CHECK(login.status.get() == 0);
  }
  CHECK(served.scan(format::Role::source, "src").entries == 2);
  Login login(name);
  CHECK(login.endpoint->join("right", {}));
}

TEST_CASE("nothing but joining is heard from a connection before its secret") {
  Served served;
  served.folder.write("src/a", "x");
  served.scan(format::Role::source, "src");
  Login login(served.open_door());
  CHECK(code_of(login.endpoint->pull({}, {{1, rel("a"), id_of("x")}}, {}, {})) != "ok");
}

TEST_CASE("a connection to a session that is not on this host is told so") {
  Login login("envsync-that-nobody-has");
  const auto joined = login.endpoint->join("0123", {});
  REQUIRE(!joined);
  CHECK(joined.error().what == "the agent that this connection was to join is not here");
  CHECK(login.status.get() == 1);
}

TEST_CASE("the door has one name, and no secret but the first") {
  Served served;
  const std::string name = served.open_door("first");
  CHECK(served.open_door("second") == name);
  CHECK(name.starts_with("envsync-"));
  Login login(name);
  CHECK(!login.endpoint->join("second", {}));
}

TEST_CASE("a process that connects and hands nothing over does not hold the door") {
  Served served;
  const std::string name = served.open_door();
  { const auto silent = os::connect_to(name); REQUIRE(silent); }
  Login login(name);
  CHECK(login.endpoint->join("0123", {}));
}

TEST_CASE("a connection that is lost in the middle of its put costs what it carried, which comes over another") {
  Served served;
  served.scan(format::Role::target, "env");
  const std::string text = large_text();
  Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  const auto staged = stage(served, to.tree);
  REQUIRE(staged);
  REQUIRE(staged->wanted == std::vector<u32>{index});
  const auto segment = [&](u64 at) {
    const u64 begin = at * content::kSegmentBytes;
    return pack_of(index, begin, as_bytes(text).subspan(begin, std::min<u64>(content::kSegmentBytes, text.size() - begin)));
  };
  Login login(served.open_door());
  REQUIRE(login.endpoint->join("0123", {}));
  auto lost = login.endpoint->put();
  REQUIRE(lost);
  REQUIRE(lost->send(segment(1), {}));
  auto put = served.control->put();
  REQUIRE(put);
  REQUIRE(put->send(segment(0), {}));
  REQUIRE(put->finish({}, {}));
  login.close();  // never finished: segment 1 may have been written or not, segment 2 never came
  auto lack = served.control->lack({});
  REQUIRE(lack);
  CHECK(lack->wanted == std::vector<u32>{index});
  REQUIRE(!lack->missing.empty());
  CHECK(lack->missing.back().first + lack->missing.back().count == 3);
  CHECK(lack->missing.front().first >= 1);
  auto rest = served.control->put();
  REQUIRE(rest);
  for (const auto& range : lack->missing)
    for (u32 i = 0; i < range.count; ++i) REQUIRE(rest->send(segment(range.first + i), {}));
  REQUIRE(rest->finish({}, {}));
  const auto nothing = served.control->lack({});
  REQUIRE(nothing);
  CHECK(nothing->wanted.empty());
  CHECK(nothing->wanted_bytes == 0);
  REQUIRE(served.control->seal({}, {}));
  REQUIRE(served.control->commit({}));
  CHECK(served.folder.read("env/lib/large.so") == text);
}

TEST_CASE("several connections put into the one transaction at once") {
  Served served;
  served.scan(format::Role::target, "env");
  const std::string text = large_text();
  Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  REQUIRE(stage(served, to.tree));
  const std::string name = served.open_door();
  std::vector<std::unique_ptr<Login>> logins;
  std::vector<std::future<bool>> puts;
  for (u64 at = 0; at < 3; ++at) {
    Login& login = *logins.emplace_back(std::make_unique<Login>(name));
    REQUIRE(login.endpoint->join("0123", {}));
    puts.push_back(std::async(std::launch::async, [&, at] {
      const u64 begin = at * content::kSegmentBytes;
      auto put = login.endpoint->put();
      return put && put->send(pack_of(index, begin, as_bytes(text).subspan(begin, std::min<u64>(content::kSegmentBytes, text.size() - begin))), {}) && put->finish({}, {});
    }));
  }
  for (auto& put : puts) CHECK(put.get());
  REQUIRE(served.control->seal({}, {}));
  REQUIRE(served.control->commit({}));
  CHECK(served.folder.read("env/lib/large.so") == text);
}
