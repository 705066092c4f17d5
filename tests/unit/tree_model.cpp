// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/tree_literal.hpp"
#include "tree/tree.hpp"

using namespace envsync;
using namespace envsync::tree;
using test::entry;

namespace {

RelPath path(const char* bytes) { return *RelPath::parse(bytes); }

/// The tree whose root digests were computed outside of this program, from the grammar.
Tree golden() {
  const Tree plain = test::tree({"02755 a/", "a-b=1", "a/c.py=A", "a/d.py == a/c.py", "bin/python -> python3", "0755 bin/tool=x"});
  std::vector<Entry> entries(plain.entries().begin(), plain.entries().end());
  entries[2].owner = {5, 6};
  entries[2].xattrs = {{"user.k", "v"}};
  return *Tree::from_sorted(std::move(entries));
}

Result<Tree> sorted(std::vector<Entry> entries) { return Tree::from_sorted(std::move(entries)); }

}  // namespace

TEST_CASE("the root digest is what its grammar says, under each policy") {
  const Tree tree = golden();
  CHECK(tree.root({}).hex() == "3de073e3049448e6da3c125a562dd909");
  const std::pair<u8, std::string_view> by_policy[] = {
      {0, "a1d1e8f6950503a13456e304f8f84449"},  {1, "3d805aff569cce4271e69b71dad961e8"}, {2, "431125ec6b1bbcff812b26dfe92b4f63"},
      {4, "7e2c2a12df774bc4c37a34165cbc5a93"},  {8, "0149e03e15c676ccc859eac309d1a5c1"}, {16, "afa0af7e8df4e7bdcaef514219acad2b"},
      {31, "7289222a62bbb4dfdd272a35da570d9c"}};
  for (const auto& [bits, hex] : by_policy) {
    CAPTURE(int{bits});
    CHECK(tree.root(*ComparePolicy::from_bits(bits)).hex() == hex);
  }
}

TEST_CASE("a policy is a byte and back") {
  for (u8 bits = 0; bits < 32; ++bits) CHECK(ComparePolicy::from_bits(bits)->bits() == bits);
  CHECK_FALSE(ComparePolicy::from_bits(32));
  CHECK(ComparePolicy{}.bits() == 12);
}

TEST_CASE("an absent tree has the zero digest, an empty directory does not") {
  CHECK(Tree{}.is_absent());
  CHECK(Tree{}.root({}).is_zero());
  CHECK(Tree{}.full().is_zero());
  CHECK_FALSE(test::tree({}).root({}).is_zero());
}

TEST_CASE("entries are found by path, and below a path in byte order although they are not neighbours") {
  const Tree tree = test::tree({"a/x=1", "a-b=2", "a/y/z=3", "a.txt=4", "ab=5"});
  CHECK(tree.find(path("a/y/z"))->file()->size == 1);
  CHECK(tree.find(path("a/q")) == nullptr);
  CHECK(tree.find(RelPath())->is_dir());
  std::string names;
  for (const std::size_t i : tree.below(path("a"))) names += tree.entries()[i].path.bytes() + " ";
  CHECK(names == "a a/x a/y a/y/z ");
  CHECK(tree.below(RelPath()).size() == tree.entries().size());
  CHECK(tree.below(path("q")).empty());
}

TEST_CASE("content counts once for each link group") {
  const Tree tree = test::tree({"a=12345", "b == a", "c == a", "d=1"});
  CHECK(tree.content_bytes() == 6);
  CHECK(tree.file_count() == 4);
  CHECK(tree.entries()[1].file()->link_group == 2);
  CHECK(tree.entries()[3].file()->link_group == 2);
}

TEST_CASE("unsorted entries with any group numbers become a tree with the right ones") {
  std::vector<Entry> entries{entry("c=1"), entry("a=1"), entry("b=2"), entry(""), entry("d=3")};
  for (const std::size_t i : {0u, 1u}) std::get<File>(entries[i].body).link_group = 77;
  std::get<File>(entries[4].body).link_group = 78;  // alone
  const auto tree = Tree::from_unsorted(entries);
  REQUIRE(tree);
  CHECK(tree->find(path("a"))->file()->link_group == 2);
  CHECK(tree->find(path("c"))->file()->link_group == 2);
  CHECK(tree->find(path("d"))->file()->link_group == 0);
}

TEST_CASE("a tree that breaks its promises is refused, with the path") {
  const auto refused = [](std::vector<Entry> entries, const char* why) {
    const auto tree = sorted(std::move(entries));
    CAPTURE(why);
    REQUIRE_FALSE(tree);
    CHECK(tree.error().what.find(why) != std::string::npos);
  };
  refused({entry("a=1")}, "where the root must be");
  refused({entry(""), entry("b=1"), entry("a=1")}, "'a': it is not in order");
  refused({entry(""), entry("a=1"), entry("a=1")}, "'a': it is there twice");
  refused({entry(""), entry("d/a=1")}, "'d/a': its parent");
  refused({entry(""), entry("d=file"), entry("d/a=1")}, "'d/a': its parent");
  refused({entry(""), entry("d -> e"), entry("d/a=1")}, "'d/a': its parent");
  refused({entry(""), entry("d/"), entry("d-/"), entry("d/a=1"), entry("e/b=1")}, "");
}

TEST_CASE("an entry that no disk can hold, or that belongs to the host, is refused") {
  const auto refused = [](const char* line, auto change, const char* why) {
    Entry bad = entry(line);
    change(bad);
    const auto tree = sorted({entry(""), bad});
    CAPTURE(why);
    REQUIRE_FALSE(tree);
    CHECK(tree.error().what.find(why) != std::string::npos);
  };
  refused("a=1", [](Entry& e) { e.mode = 010000; }, "mode 10000");
  refused("a -> b", [](Entry& e) { e.mode = 0777; }, "a mode on a link");
  refused("a -> b", [](Entry& e) { e.mtime_ns = 1; }, "an mtime on what is no file");
  refused("a/", [](Entry& e) { e.mtime_ns = 1; }, "an mtime on what is no file");
  refused("a -> b", [](Entry& e) { e.body = Symlink{}; }, "a link target");
  refused("a -> b", [](Entry& e) { e.body = Symlink{std::string(4096, 'x')}; }, "a link target");
  refused("a -> b", [](Entry& e) { e.body = Symlink{std::string("a\0b", 3)}; }, "a link target");
  refused("a=1", [](Entry& e) { e.xattrs = {{"security.selinux", "x"}}; }, "'security.selinux', which belongs to the host");
  refused("a=1", [](Entry& e) { e.xattrs = {{"user.", "x"}}; }, "which belongs to the host");
  refused("a=1", [](Entry& e) { e.xattrs = {{"user.b", ""}, {"user.a", ""}}; }, "not sorted");
  refused("a=1", [](Entry& e) { e.xattrs = {{"user.a", ""}, {"user.a", ""}}; }, "not sorted");
  refused("a=1", [](Entry& e) { e.xattrs = {{"user.a", std::string(65537, 'x')}}; }, "65537 bytes");
}

TEST_CASE("link groups that are none are refused") {
  const auto with_groups = [](u32 a, u32 b, const char* second) {
    std::vector<Entry> entries{entry(""), entry("a=1"), entry(second)};
    std::get<File>(entries[1].body).link_group = a;
    std::get<File>(entries[2].body).link_group = b;
    return sorted(std::move(entries));
  };
  CHECK(with_groups(2, 2, "b=1"));
  CHECK_FALSE(with_groups(2, 2, "b=2"));
  CHECK_FALSE(with_groups(2, 2, "0755 b=1"));
  CHECK_FALSE(with_groups(2, 0, "b=1"));
  CHECK_FALSE(with_groups(0, 2, "b=1"));
  CHECK_FALSE(with_groups(3, 3, "b=1"));
  CHECK_FALSE(with_groups(1, 1, "b=1"));
  CHECK_FALSE(with_groups(~0u, ~0u, "b=1"));
}
