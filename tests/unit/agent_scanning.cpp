// SPDX-License-Identifier: MIT
#include "support/agent_session.hpp"
#include "support/scan_folder.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

/// What another agent that is started on the same host later says of `rel`.
format::ScanReply scan_again(const Served& first, const std::string& rel) {
  Served later;
  ::setenv("XDG_CACHE_HOME", first.folder.path("cache").c_str(), 1);
  format::ScanRequest request;
  request.run = "r2";
  request.operator_name = "ada";
  request.role = format::Role::target;
  request.path = first.folder.path(rel);
  request.lock = format::LockMode::exclusive;
  auto reply = later.control->scan(request, {}, {});
  REQUIRE(reply);
  return std::move(*reply);
}

}  // namespace

TEST_CASE("a target that is not known yet is read once, and its state is not made by looking") {
  Served served;
  served.folder.write("place/env/a.py", "one");
  served.folder.write("place/env/lib/b.py", "two");
  settle();
  CHECK(served.scan(format::Role::target, "place/env").files_hashed == 2);
  served.close();
  served.status.get();
  const format::ScanReply again = scan_again(served, "place/env");
  CHECK(again.files_hashed == 0);
  CHECK_FALSE(again.state_exists);
  CHECK_FALSE(os::stat_if_exists(served.folder.fd(), "place/.envsync")->has_value());
  SUBCASE("what changed since is read again") {
    served.folder.write("place/env/a.py", "six");
    CHECK(scan_again(served, "place/env").files_hashed == 1);
  }
}
