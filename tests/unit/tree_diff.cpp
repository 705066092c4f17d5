// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/tree_literal.hpp"
#include "tree/tree.hpp"

using namespace envsync;
using namespace envsync::tree;

namespace {

/// "+a ~b mc -d ta": added, content, metadata, removed, type.
std::string changes(const Tree& from, const Tree& to, const ComparePolicy& policy = {}) {
  std::string text;
  for (const Change& change : diff(from, to, policy)) {
    constexpr std::string_view kLetters = "+-~mt";
    if (!text.empty()) text += ' ';
    text += kLetters[static_cast<std::size_t>(change.kind)];
    text += (change.to ? change.to : change.from)->path.bytes();
  }
  return text;
}

Tree with(const Tree& tree, const char* path, auto change) {
  std::vector<Entry> entries(tree.entries().begin(), tree.entries().end());
  for (Entry& entry : entries)
    if (entry.path.bytes() == path) change(entry);
  return *Tree::from_unsorted(std::move(entries));
}

}  // namespace

TEST_CASE("each way in which two trees differ has its own kind") {
  const Tree from = test::tree({"gone=1", "kept=1", "mode=1", "text=1", "type=1", "link -> a", "d/"});
  const Tree to = test::tree({"kept=1", "0755 mode=1", "new=1", "text=2", "type/", "link -> b", "d/x=1"});
  CHECK(changes(from, to) == "+d/x -gone ~link mmode +new ~text ttype");
  CHECK(changes(from, from).empty());
  CHECK(changes(Tree{}, test::tree({"a=1"})) == "+ +a");
  CHECK(changes(test::tree({"a=1"}), Tree{}) == "- -a");
}

TEST_CASE("owner, mtime and attributes count only where the policy says so") {
  const Tree tree = test::tree({"a.py=1", "b=1", "d/"});
  const Tree owner = with(tree, "b", [](Entry& e) { e.owner = {1, 1}; });
  const Tree mtime = with(tree, "a.py", [](Entry& e) { e.mtime_ns += 1; });
  const Tree mtime_b = with(tree, "b", [](Entry& e) { e.mtime_ns += 1; });
  const Tree xattr = with(tree, "b", [](Entry& e) { e.xattrs = {{"user.a", "1"}}; });
  const Tree setgid = with(tree, "d", [](Entry& e) { e.mode |= 02000; });
  CHECK(changes(tree, owner).empty());
  CHECK(changes(tree, owner, {.owner = true}) == "mb");
  CHECK(changes(tree, mtime).empty());
  CHECK(changes(tree, mtime, {.mtime = true}) == "ma.py");
  CHECK(changes(tree, mtime, {.source_mtimes = true}) == "ma.py");
  CHECK(changes(tree, mtime_b, {.source_mtimes = true}).empty());
  CHECK(changes(tree, xattr) == "mb");
  CHECK(changes(tree, xattr, {.xattrs = false}).empty());
  CHECK(changes(tree, setgid).empty());
  CHECK(changes(tree, setgid, {.owner = true}) == "md");
}

TEST_CASE("a link group whose members differ shows as metadata of its members, and only where hard links count") {
  const Tree two = test::tree({"a=1", "b == a", "c=1"});
  const Tree three = test::tree({"a=1", "b == a", "c == a"});
  CHECK(changes(two, three) == "ma mb mc");
  CHECK(changes(two, three, {.hardlinks = false}).empty());
  CHECK(changes(test::tree({"a=1", "b=1"}), test::tree({"a=1", "b == a"})) == "ma mb");
  SUBCASE("a group that only moved in the list does not") {
    CHECK(changes(test::tree({"m=1", "n == m"}), test::tree({"a=0", "m=1", "n == m"})) == "+a");
  }
}

TEST_CASE("a difference holds what changed and nothing else") {
  const Tree base = test::tree({"a=1", "b=2", "d/x=3", "m=1", "n == m"});
  const Tree result = test::tree({"a=1", "b=two", "d/", "e=5", "m=1", "n == m"});
  const TreeDelta delta = make_delta(base, result);
  REQUIRE(delta.put.size() == 2);
  CHECK(delta.put[0].path.bytes() == "b");
  CHECK(delta.put[1].path.bytes() == "e");
  REQUIRE(delta.gone.size() == 1);
  CHECK(delta.gone[0].bytes() == "d/x");
  CHECK(apply_delta(base, delta)->full() == result.full());
}

TEST_CASE("a difference to another base, or to another result, is refused") {
  const Tree base = test::tree({"a=1", "b=2"}), result = test::tree({"a=1", "b=3"}), other = test::tree({"a=2", "b=2"});
  TreeDelta delta = make_delta(base, result);
  CHECK(apply_delta(base, delta));
  CHECK_FALSE(apply_delta(other, delta));
  SUBCASE("another result") { delta.result.bytes[0] ^= std::byte{1}; }
  SUBCASE("removing what is not there") { delta.gone.push_back(*RelPath::parse("zz")); }
  SUBCASE("removing what it puts") { delta.gone.push_back(*RelPath::parse("b")); }
  SUBCASE("putting what has no parent") { delta.put.push_back(test::entry("q/r=1")); }
  CHECK_FALSE(apply_delta(base, delta));
}

TEST_CASE("a tree comes and goes as a difference to the absent tree") {
  const Tree tree = test::tree({"a=1", "d/b -> c"});
  CHECK(apply_delta(Tree{}, make_delta(Tree{}, tree))->full() == tree.full());
  CHECK(apply_delta(tree, make_delta(tree, Tree{}))->is_absent());
}
