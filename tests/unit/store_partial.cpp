// SPDX-License-Identifier: MIT
// Large contents that came in part.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/store_large.hpp"

using namespace envsync;
using namespace envsync::testing;

TEST_CASE("leftovers: a large content that came in part is gone on with, and only its missing segments are wanted") {
  Env env;
  const std::string text = large('p');
  const Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  const auto put_segment = [&](Run& run, u64 segment) {
    const u64 at = segment * content::kSegmentBytes;
    const ByteView part = as_bytes(text).subspan(at, std::min<u64>(content::kSegmentBytes, text.size() - at));
    return run.transaction->put({{index, at, narrow<u32>(part.size())}}, part);
  };
  const auto missing = [](const Run& run) {
    std::string out;
    for (const auto& range : run.transaction->needs().missing) out += fmt::format("{}+{} ", range.first, range.count);
    return out;
  };
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    CHECK(missing(run).empty());
    REQUIRE(put_segment(run, 1));
    REQUIRE(run.transaction->put({{index, 0, 1000}}, as_bytes(text).first(1000)));  // a segment that never became whole
  }
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    CHECK(missing(run) == "0+1 2+1 ");
    CHECK(run.transaction->needs().wanted == std::vector<u32>{index});
    CHECK(run.transaction->needs().wanted_bytes == text.size() - content::kSegmentBytes);
    CHECK(told(put_segment(run, 1)).starts_with("protocol"));
    REQUIRE(put_segment(run, 0));
  }
  CHECK(env.staging() == 1);
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(missing(run) == "2+1 ");
  REQUIRE(put_segment(run, 2));
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
  CHECK(env.staging() == 0);
}

TEST_CASE("leftovers: a segment that a list names and whose bytes are not there comes again after another boot") {
  Env env;
  const std::string text = large('p');
  const Desired to = with_large(text);
  const u32 index = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    for (const u64 at : {u64{0}, content::kSegmentBytes})
      REQUIRE(run.transaction->put({{index, at, narrow<u32>(content::kSegmentBytes)}}, as_bytes(text).subspan(at, content::kSegmentBytes)));
  }
  age_staging(env);
  {
    const auto partial = staging_of(env) + "partial/" + to.tree.entries()[index].file()->content().name();
    std::fstream file(env.folder.path(partial), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5);
    file.put('X');
  }
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  REQUIRE(run.transaction->needs().missing.size() == 2);
  CHECK(run.transaction->needs().missing[0].first == 0);
  CHECK(run.transaction->needs().missing[0].count == 1);
  CHECK(run.transaction->needs().missing[1].first == 2);
}
