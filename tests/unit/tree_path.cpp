// SPDX-License-Identifier: MIT
#include "tree/path.hpp"

#include <doctest/doctest.h>

using envsync::tree::RelPath;

namespace {
RelPath path(const char* bytes) { return *RelPath::parse(bytes); }
}  // namespace

TEST_CASE("a path is components between single slashes") {
  for (const char* good : {"", "a", "a/b", ".hidden", "...", "a b\n\xff", "-", "a/..b/c."}) CHECK(RelPath::parse(good));
  for (const char* bad : {"/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "../a"}) CHECK_FALSE(RelPath::parse(bad));
  CHECK_FALSE(RelPath::parse(std::string("a\0b", 3)));
}

TEST_CASE("a component has at most 255 bytes and a path at most 16,384") {
  CHECK(RelPath::parse(std::string(255, 'x')));
  CHECK_FALSE(RelPath::parse(std::string(256, 'x')));
  std::string deep(16384, 'x');
  for (std::size_t i = 1; i < deep.size() - 1; i += 2) deep[i] = '/';
  deep.back() = 'x';
  CHECK(RelPath::parse(deep.substr(0, 16383)));
  CHECK(RelPath::parse(deep + "x") == std::nullopt);
}

TEST_CASE("a path knows its parent, its name and what lies beneath it") {
  CHECK(path("a/b/c").parent() == path("a/b"));
  CHECK(path("a").parent().is_root());
  CHECK(RelPath().parent().is_root());
  CHECK(path("a/b").name() == "b");
  CHECK(RelPath().name() == "");
  CHECK(RelPath().child("a") == path("a"));
  CHECK(path("a").child("b") == path("a/b"));
  CHECK(path("a").join(path("b/c")) == path("a/b/c"));
  CHECK(RelPath().join(path("b")) == path("b"));
  CHECK(path("b").join(RelPath()) == path("b"));
  CHECK(path("a").contains(path("a")));
  CHECK(path("a").contains(path("a/b")));
  CHECK(RelPath().contains(path("a")));
  CHECK_FALSE(path("a").contains(path("ab")));
  CHECK_FALSE(path("a/b").contains(path("a")));
  CHECK(path("a").relative(path("a/b/c")) == path("b/c"));
  CHECK(path("a").relative(path("a")).is_root());
  CHECK(RelPath().relative(path("a/b")) == path("a/b"));
}
