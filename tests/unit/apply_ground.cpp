// SPDX-License-Identifier: MIT
#include "apply/ground.hpp"

#include <doctest/doctest.h>

#include "support/tree_literal.hpp"

using namespace envsync;
using apply::TargetTrees;

namespace {

const tree::ComparePolicy kPolicy;

std::string paths(const tree::Tree& tree) {
  std::string out;
  for (const tree::Entry& entry : tree.entries()) {
    if (entry.path.is_root() || entry.is_dir()) continue;
    out += (out.empty() ? "" : " ") + entry.path.bytes() + (entry.file() != nullptr ? "=" + std::to_string(entry.file()->size) : "");
  }
  return out;
}

std::string paths(const std::vector<std::pair<char, tree::RelPath>>& changes) {
  std::string out;
  for (const auto& [kind, path] : changes) out += (out.empty() ? "" : " ") + std::string(1, kind) + path.bytes();
  return out;
}

}  // namespace

TEST_CASE("the ground takes over what changed where no overlay had been, and nothing of what overlays brought") {
  const tree::Tree ground = test::tree({"torch/a=1", "torch/old=1", "mine/m=1", "mine/gone=1"});
  const tree::Tree recorded = test::tree({"torch/a=22", "torch/new=22", "mine/m=1", "mine/gone=1"});
  const tree::Tree there = test::tree({"torch/a=333", "torch/new=22", "mine/m=4444", "later/l=1"});
  const TargetTrees trees{&ground, &recorded, &there, &there};
  CHECK(paths(*apply::ground_now(trees, kPolicy)) == "later/l=1 mine/m=4 torch/a=1 torch/old=1");
  // Laid onto again: what is there now but the patched file of the overlay.
  const tree::Tree desired = test::tree({"torch/a=22", "torch/new=22", "mine/m=4444", "later/l=1"});
  CHECK(paths(apply::discarded_drift(trees, desired, kPolicy)) == "~torch/a");
}

TEST_CASE("what is let go is not taken into the ground, and what is left has its folders") {
  const tree::Tree ground = test::tree({"torch/a=1"});
  const tree::Tree recorded = test::tree({"torch/a=22", "cu13/lib/x=1"});
  const tree::Tree there = test::tree({"torch/a=22", "torch/extra=1", "cu13/lib/x=1", "cu13/lib/mine=1"});
  const TargetTrees trees{&ground, &recorded, &there, &there};
  CHECK(paths(*apply::ground_now(trees, kPolicy)) == "cu13/lib/mine=1 torch/a=1 torch/extra=1");
  CHECK(paths(*apply::ground_now(trees, kPolicy, {*tree::RelPath::parse("torch/extra")})) == "cu13/lib/mine=1 torch/a=1");
  CHECK(paths(apply::discarded_drift(trees, recorded, kPolicy)) == "+cu13/lib/mine +torch/extra");
}

TEST_CASE("a file in the place of a folder, and the other way round, leaves a tree") {
  const tree::Tree ground = test::tree({"a/x=1", "b=1"});
  const tree::Tree there = test::tree({"a=1", "b/y=1"});
  CHECK(paths(*apply::ground_now({&ground, &ground, &there, &there}, kPolicy)) == "a=1 b/y=1");
}

TEST_CASE("paths that the exclude rules show or hide since are no changes of the tree: they come and go as they are") {
  const tree::Tree ground = test::tree({"a=1", "log=1"});
  const tree::Tree then = test::tree({"a=1", "log=1"}), now = test::tree({"a=1", "data=1"});
  const TargetTrees trees{&ground, &ground, &then, &now};
  CHECK(paths(*apply::ground_now(trees, kPolicy)) == "a=1 data=1");
  CHECK(apply::discarded_drift(trees, now, kPolicy).empty());
}
