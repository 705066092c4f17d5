// SPDX-License-Identifier: MIT
// Contents that are built from parts, some of them taken from a base that may not fit.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/store_large.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

struct Building {
  Env env;
  const std::string text = large('b');
  Desired to;
  u32 big = 0, small = 0;
  std::unique_ptr<Run> run = std::make_unique<Run>();

  Building() {
    to = with_large(text);
    std::vector<tree::Entry> entries(to.tree.entries().begin(), to.tree.entries().end());
    entries.push_back(test::entry("small=abcdef"));
    to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
    big = static_cast<u32>(*to.tree.index_of(rel("lib/large.so")));
    small = static_cast<u32>(*to.tree.index_of(rel("small")));
    REQUIRE(run->open(env.files, env.path, env.settings));
    REQUIRE(run->begin(to.tree, env.settings));
  }
  store::Transaction& tx() { return *run->transaction; }
  Result<void> part(u32 want, u64 at, std::string_view bytes) { return tx().put({{want, at, narrow<u32>(bytes.size())}}, as_bytes(bytes)); }
  Result<void> parts(std::string_view text_of, u64 size) {
    for (u64 at = 0; at < text_of.size(); at += size) TRY_STATUS(part(big, at, text_of.substr(at, size)));
    return ok();
  }
  /// Paths in byte order, each with its missing segments where some are there.
  std::string lacking() {
    const store::Lack lack = tx().lack().value();
    std::string out;
    for (const auto& entry : to.tree.entries()) {
      const u32 index = static_cast<u32>(*to.tree.index_of(entry.path));
      if (std::ranges::find(lack.wanted, index) == lack.wanted.end()) continue;
      out += entry.path.bytes() + " ";
      for (const auto& range : lack.missing)
        if (range.want == index) out += fmt::format("{}+{} ", range.first, range.count);
    }
    return out;
  }
  void finish() {
    REQUIRE(tx().seal({}));
    REQUIRE(tx().commit({}));
    REQUIRE(tx().accept({}));
    CHECK(differences(to.tree, env.path) == "");
    CHECK(env.staging() == 0);
  }
};

}  // namespace

TEST_CASE("built: parts in any order and of any size become the file") {
  Building b;
  REQUIRE(b.tx().build(b.big));
  REQUIRE(b.tx().build(b.small));
  REQUIRE(b.part(b.small, 3, "def"));
  REQUIRE(b.part(b.small, 0, "a"));
  CHECK(told(b.part(b.small, 0, "ab")).starts_with("protocol"));
  REQUIRE(b.part(b.small, 1, "bc"));
  REQUIRE(b.parts(b.text, 1'000'003));
  CHECK(b.lacking() == "");
  b.finish();
}

TEST_CASE("built: what became another content is told, and then comes whole") {
  Building b;
  std::string wrong = b.text;
  wrong[9'000'000] = '!';
  REQUIRE(b.tx().build(b.big));
  REQUIRE(b.tx().build(b.small));
  REQUIRE(b.parts(wrong, 3'000'000));
  REQUIRE(b.part(b.small, 0, "abcdeX"));
  CHECK(b.lacking() == "lib/large.so small ");
  CHECK(b.lacking() == "lib/large.so small ");
  REQUIRE(b.parts(b.text, content::kSegmentBytes));
  REQUIRE(b.part(b.small, 0, "abcdef"));
  CHECK(b.lacking() == "");
  b.finish();
}

TEST_CASE("built: what comes whole and is another content again is the source's change") {
  Building b;
  REQUIRE(b.tx().build(b.small));
  REQUIRE(b.part(b.small, 0, "abcdeX"));
  CHECK(b.lacking() == "lib/large.so small ");
  CHECK(told(b.part(b.small, 0, "abcdeX")).starts_with("source_changed"));
}

TEST_CASE("built: what never became whole is lacking, begun or not") {
  Building b;
  REQUIRE(b.tx().build(b.big));
  REQUIRE(b.tx().build(b.small));
  REQUIRE(b.part(b.big, 100, "abc"));
  CHECK(b.lacking() == "lib/large.so 0+3 small ");
  REQUIRE(b.part(b.small, 0, "ab"));
  CHECK(b.lacking() == "lib/large.so 0+3 small ");
  REQUIRE(b.parts(b.text, content::kSegmentBytes));
  REQUIRE(b.part(b.small, 0, "abcdef"));
  b.finish();
}

TEST_CASE("built: without a base another content is the source's change") {
  Building b;
  CHECK(told(b.part(b.small, 0, "abcdeX")).starts_with("source_changed"));
  CHECK_FALSE(b.tx().expects(77));
  CHECK(told(b.tx().build(77)).starts_with("protocol"));
  CHECK(b.tx().expects(b.big)->size == b.text.size());
}

TEST_CASE("built: segments that are whole outlive a run that was cut") {
  Building b;
  REQUIRE(b.tx().build(b.big));
  REQUIRE(b.part(b.big, 0, std::string_view(b.text).substr(0, 5'000'000)));
  REQUIRE(b.part(b.big, 5'000'000, std::string_view(b.text).substr(5'000'000, 6'000'000)));
  b.run.reset();
  Run again;
  REQUIRE(again.open(b.env.files, b.env.path, b.env.settings));
  REQUIRE(again.begin(b.to.tree, b.env.settings));
  const auto& missing = again.transaction->needs().missing;
  REQUIRE(missing.size() == 1);
  CHECK((missing[0].want == b.big && missing[0].first == 1 && missing[0].count == 2));
}
