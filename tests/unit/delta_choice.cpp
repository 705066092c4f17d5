// SPDX-License-Identifier: MIT
// Which base, and which road.
#include <doctest/doctest.h>

#include <algorithm>

#include "delta/base_finder.hpp"
#include "delta/cost.hpp"
#include "support/tree_literal.hpp"

using namespace envsync;
using namespace envsync::delta;

namespace {

tree::Tree tree_of(std::vector<std::pair<const char*, std::size_t>> files) {
  std::vector<tree::Entry> entries{test::entry("")};
  for (const auto& [path, size] : files) {
    for (std::string_view at(path); at.find('/') != std::string_view::npos;) {
      at = at.substr(0, at.rfind('/'));
      if (std::ranges::none_of(entries, [&](const tree::Entry& e) { return e.path.bytes() == at; })) entries.push_back(test::entry(std::string(at)));
    }
    entries.push_back(test::entry(std::string(path) + "=" + std::string(size, 'x')));
  }
  return tree::Tree::from_unsorted(std::move(entries)).value();
}

std::string base_of(const tree::Tree& tree, const char* path, u64 size) {
  const tree::Entry* base = BaseFinder(tree).find(tree::RelPath::parse(path).value(), size);
  return base != nullptr ? base->path.bytes() : "-";
}

}  // namespace

TEST_CASE("the file at the same path is the base, whatever its size") {
  const tree::Tree tree = tree_of({{"a/x.so", 3}, {"b/x.so", 1000}});
  CHECK(base_of(tree, "a/x.so", 1000) == "a/x.so");
}

TEST_CASE("a renamed folder is found by what paths have in common") {
  const tree::Tree tree = tree_of({{"lib/python3.11/site-packages/p/__init__.py", 100}, {"lib/python3.11/site-packages/q/__init__.py", 100},
                                   {"lib/python3.11/site-packages/p/sub/__init__.py", 100}});
  CHECK(base_of(tree, "lib/python3.12/site-packages/q/__init__.py", 110) == "lib/python3.11/site-packages/q/__init__.py");
  CHECK(base_of(tree, "lib/python3.12/site-packages/p/sub/__init__.py", 110) == "lib/python3.11/site-packages/p/sub/__init__.py");
}

TEST_CASE("a name alone is no base where the size is another, or the file is empty") {
  const tree::Tree tree = tree_of({{"a/x.so", 100}, {"e/y.so", 0}});
  CHECK(base_of(tree, "b/x.so", 201) == "a/x.so");
  CHECK(base_of(tree, "b/x.so", 202) == "-");
  CHECK(base_of(tree, "b/x.so", 49) == "-");
  CHECK(base_of(tree, "e/y.so", 10) == "-");
  CHECK(base_of(tree, "z.so", 10) == "-");
}

TEST_CASE("chunks pay on a slow link, and not where the link is faster than the cores") {
  constexpr u64 k1GB = 1'000'000'000;
  CHECK(choose_coarse(k1GB, k1GB, {25e6, 0.02}).is_taken);
  CHECK(choose_fine(k1GB, k1GB, {25e6, 0.02}).is_taken);
  CHECK(choose_coarse(k1GB, k1GB, {200e6, 0.001}).is_taken);
  CHECK_FALSE(choose_fine(k1GB, k1GB, {200e6, 0.001}).is_taken);
  CHECK_FALSE(choose_coarse(k1GB, k1GB, {2e9, 0.0001}).is_taken);
}

TEST_CASE("a few kilobytes are not worth round trips") {
  CHECK_FALSE(choose_small(100'000, {50e6, 0.02}).is_taken);
  CHECK_FALSE(choose_small(100'000, {400e6, 0.0001}).is_taken);
  CHECK(choose_small(60'000'000, {25e6, 0.02}).is_taken);
  CHECK_FALSE(choose_coarse(300'000, 300'000, {50e6, 0.02}).is_taken);
}

TEST_CASE("fine chunks cost what the bases have, too, and find no more than they hold") {
  CHECK_FALSE(choose_fine(1'000'000'000, 1'000'000, {25e6, 0.02}).is_taken);
}

TEST_CASE("of an unknown link the round trip says the most") {
  CHECK(rate_of({0, 0.1}) < rate_of({0, 0.01}));
  CHECK(rate_of({0, 0.01}) < rate_of({0, 0.001}));
  CHECK(rate_of({12e6, 0.0001}) == 12e6);
  CHECK(is_slow({0, 0.04}));
  CHECK_FALSE(is_slow({0, 0.0005}));
  CHECK(fine_grain({20e6, 0}) == Grain::finest);
  CHECK(fine_grain({100e6, 0}) == Grain::fine);
}

TEST_CASE("content that packs unusually well says less of a link than its size") {
  CHECK(rate_from(100'000'000, 1'000'000, 1) == doctest::Approx(2.7e6));
  CHECK(rate_from(100'000'000, 100'000'000, 2) == doctest::Approx(50e6));
}
