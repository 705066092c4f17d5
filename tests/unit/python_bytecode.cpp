// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include "support/tree_literal.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::vector<std::string> stale(const tree::Tree& from, const tree::Tree& to) { return stale_bytecode(tree::diff(from, to, {})); }

using Prefixes = std::vector<std::string>;

}  // namespace

TEST_CASE("bytecode of a source that changed, went or came goes, that of an unchanged one stays") {
  CHECK(stale(test::tree({"a/keep.py=1", "a/change.py=1", "a/go.py=1"}), test::tree({"a/keep.py=1", "a/change.py=2", "a/come.py=1"})) ==
        Prefixes{"a/__pycache__/change.", "a/__pycache__/come.", "a/__pycache__/go.", "a/change.pyc", "a/come.pyc", "a/go.pyc"});
}

TEST_CASE("a source at the root of the tree has its bytecode at the root") {
  CHECK(stale(test::tree({"m.py=1"}), test::tree({"m.py=2"})) == Prefixes{"__pycache__/m.", "m.pyc"});
}

TEST_CASE("a folder that goes takes its whole __pycache__ along") {
  CHECK(stale(test::tree({"a/b/m.py=1", "a/n.py=1"}), test::tree({"a/n.py=1"})) == Prefixes{"a/b/__pycache__/", "a/b/m.pyc"});
}

TEST_CASE("a folder that comes finds no bytecode of an older one") {
  CHECK(stale(test::tree({"n.py=1"}), test::tree({"a/m.py=1", "n.py=1"})) == Prefixes{"a/__pycache__/"});
}

TEST_CASE("a folder that becomes a link, and a source that does, lose their bytecode") {
  CHECK(stale(test::tree({"a/m.py=1", "n.py=1"}), test::tree({"a -> /elsewhere", "n.py -> m.py"})) ==
        Prefixes{"__pycache__/n.", "a/__pycache__/", "a/m.pyc", "n.pyc"});
}

TEST_CASE("a change of mode alone, and files that are no source, leave bytecode alone") {
  CHECK(stale(test::tree({"m.py=1", "x.so=1", "pyvenv.cfg=1", ".py=1"}), test::tree({"0755 m.py=1", "x.so=2", "pyvenv.cfg=2", ".py=2"})).empty());
}

TEST_CASE("a first apply has no bytecode to drop") { CHECK(stale(tree::Tree{}, test::tree({"a/m.py=1"})).empty()); }
