// SPDX-License-Identifier: MIT
// Every operation that changes the disk fails once: the path holds exactly the tree from before or the desired one, the answer
// says which, and the next run succeeds.
#include <doctest/doctest.h>

#include "support/store_scenario.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

u64 operations_of(const Scenario& s) {
  Stage stage(s);
  FaultyFiles files(*Fault::parse("any:1:count"));
  REQUIRE(apply(files, stage.env, s.to, s.settings));
  REQUIRE(stage.holds(s.to, s));
  return files.total();
}

void fail_each(const Scenario& s, std::string_view effect, u64 step = 1) {
  const u64 total = operations_of(s);
  REQUIRE(total > 30);
  u64 applied = 0, pending = 0, refused = 0;
  for (u64 n = 1; n <= total; n += step) {
    Stage stage(s);
    FaultyFiles files(*Fault::parse(fmt::format("any:{}:{}", n, effect)));
    const auto accepted = apply(files, stage.env, s.to, s.settings);
    CAPTURE(std::string(s.name));
    CAPTURE(n);
    CAPTURE(effect);
    CAPTURE(told(accepted));
    const bool is_base = stage.holds(s.base, s), is_desired = stage.holds(s.to, s);
    CHECK((is_base || is_desired));
    CHECK(is_desired == accepted.has_value());
    CHECK(stage.lost_unmanaged(s) == "");
    CHECK(stage.next_run(s) == "");
    (accepted ? accepted->recovery_pending ? pending : applied : refused) += 1;
  }
  CHECK(refused > 0);
  if (step == 1 && effect == "EIO") CHECK(pending > 0);
  MESSAGE(std::string(s.name) << ", " << std::string(effect) << ": " << total << " operations, " << refused << " refused, " << pending << " pending, " << applied << " applied all the same");
}

}  // namespace

TEST_CASE("faults: EIO at each operation of a rich run, a large file included") { fail_each(rich_scenario(Large::yes), "EIO"); }
TEST_CASE("faults: no space at each operation of a rich run") { fail_each(rich_scenario(), "ENOSPC", 2); }
TEST_CASE("faults: a short write at each operation of a rich run") { fail_each(rich_scenario(), "short", 3); }
TEST_CASE("faults: EXDEV at each operation of a rich run") { fail_each(rich_scenario(), "EXDEV", 2); }
TEST_CASE("faults: EPERM at each operation of a rich run") { fail_each(rich_scenario(), "EPERM", 3); }
TEST_CASE("faults: an interrupted call at each operation of a rich run") { fail_each(rich_scenario(), "EINTR", 3); }
TEST_CASE("faults: EIO at each operation of a first apply") { fail_each(first_apply_scenario(), "EIO"); }
TEST_CASE("faults: EIO at each operation of a commit of one file") { fail_each(file_scenario(), "EIO"); }
TEST_CASE("faults: EIO at each operation of an adoption below the root") { fail_each(adoption_scenario(), "EIO"); }

TEST_CASE("faults: links that the filesystem refuses become copies") {
  const Scenario s = rich_scenario();
  for (const char* fault : {"link:1:EMLINK", "link:1:EPERM", "link:1:EXDEV"}) {
    CAPTURE(std::string(fault));
    Stage stage(s);
    FaultyFiles files(*Fault::parse(fault));
    const auto accepted = apply(files, stage.env, s.to, s.settings);
    CHECK(files.has_struck());
    CHECK(told(accepted) == "");
    CHECK(stage.holds(s.to, s));
    CHECK(stage.next_run(s) == "");
  }
}

TEST_CASE("faults: an exchange that the place cannot do is refused as such, and nothing is swapped") {
  const Scenario s = rich_scenario();
  for (const char* fault : {"rename_exchange:1:EOPNOTSUPP", "rename_exchange:2:EXDEV", "rename_exchange:2:EPERM", "rename_exchange:2:EROFS"}) {
    CAPTURE(std::string(fault));
    Stage stage(s);
    FaultyFiles files(*Fault::parse(fault));
    CHECK(told(apply(files, stage.env, s.to, s.settings)).starts_with("place_refused"));
    CHECK(files.has_struck());
    CHECK(stage.holds(s.base, s));
    CHECK(stage.next_run(s) == "");
  }
}
