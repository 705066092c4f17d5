// SPDX-License-Identifier: MIT
#include "python/inspection.hpp"

#include "support/python_environment.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

constexpr std::string_view kUv = "home = /opt/python/bin\nimplementation = CPython\nuv = 0.9.2\nversion_info = 3.12.4\n";

Inspection inspected(const test::Environment& there, std::string_view pyvenv = kUv) {
  DistributionSet set = there.set();
  set.learn(there.sums);
  return inspect(set, {}, pyvenv, "/srv/env");
}

}  // namespace

TEST_CASE("distributions are told with what is there of them, largest first") {
  const auto found = inspected(test::environment({{"small", "1", {"small.py=1"}}, {"large", "2.0", {"large/a.py=0123456789", "!large/gone.py=1", "/bin/large=#!x"}}}));
  REQUIRE(found.distributions.size() == 2);
  CHECK(found.distributions[0].name == "large");
  CHECK(found.distributions[0].version == "2.0");
  CHECK(found.distributions[0].missing == 1);
  CHECK(found.distributions[0].files == 4);  // METADATA and RECORD too
  CHECK(found.distributions[1].name == "small");
  CHECK(found.distributions[1].missing == 0);
  CHECK(found.files == 8);  // and pyvenv.cfg
}

TEST_CASE("shared paths are told by who shares them, and whether what is there is what one of them says") {
  // As with pip, who is installed last writes last; "lost.py" was then edited by nobody's RECORD.
  auto there = test::environment({{"a", "1", {"same.py=1", "won.py=a", "lost.py=a"}}, {"b", "1", {"same.py=1", "won.py=b", "lost.py=b"}}, {"c", "1", {"c.py=1"}}});
  there.sums[std::string(test::kSite) + "lost.py"] = test::sum_of("edited");
  const auto found = inspected(there);
  REQUIRE(found.shared.size() == 1);
  CHECK(found.shared[0].owners == std::vector<std::string>{"a", "b"});
  CHECK(found.shared[0].paths == 3);
  CHECK(found.shared[0].differing == 2);
  CHECK(found.shared[0].unmatched == 1);
}

TEST_CASE("files of no distribution are counted below site-packages, bytecode aside") {
  const std::string site(test::kSite);
  const auto found = inspected(test::environment({{"a", "1", {"a.py=1"}}}, {site + "mine.py=12345", site + "__pycache__/a.cpython-312.pyc=x", "bin/mine=x"}));
  CHECK(found.unowned_files == 1);
  CHECK(found.unowned_bytes == 5);
}

TEST_CASE("bytecode is told by its state: older than its source, of a source that went, run without one") {
  const std::string site(test::kSite);
  const auto made = test::environment({{"a", "1", {"a.py=1", "b.py=1", "c/d.py=1"}}},
                                      {site + "__pycache__/a.cpython-312.pyc=x", site + "__pycache__/b.cpython-312.opt-1.pyc=x", site + "c/__pycache__/d.cpython-312.pyc=x",
                                       site + "__pycache__/gone.cpython-312.pyc=x", site + "only.pyc=xyz"});
  std::vector<tree::Entry> entries(made.tree.entries().begin(), made.tree.entries().end());
  for (tree::Entry& entry : entries) {
    if (entry.file() == nullptr) continue;
    entry.mtime_ns = entry.path.bytes().ends_with(".pyc") ? 20 : 10;
    if (entry.path.name() == "b.py") entry.mtime_ns = 30;
  }
  test::Environment there = made;
  there.tree = std::move(*tree::Tree::from_sorted(std::move(entries)));
  const BytecodeFacts code = inspected(there).bytecode;
  CHECK(code.files == 5);
  CHECK(code.older == 1);
  CHECK(code.orphaned == 1);
  CHECK(code.sourceless == 1);
  CHECK(code.bytes == 7);
}

TEST_CASE("who made it and for which Python is what pyvenv.cfg says") {
  const auto there = test::environment({});
  const auto by_uv = inspected(there);
  CHECK(by_uv.made_by == "uv 0.9.2");
  CHECK(by_uv.python_version == "3.12.4");
  CHECK(by_uv.implementation == "CPython");
  CHECK(by_uv.base == "/opt/python/bin");
  const auto by_venv = inspected(there, "home = /usr/bin\nversion = 3.11.2\n");
  CHECK(by_venv.made_by.empty());
  CHECK(by_venv.python_version == "3.11.2");
  CHECK(inspected(there, "").python_version.empty());
}

TEST_CASE("what a plan would say of the environment is said") {
  auto there = test::environment({{"a", "1", {"a.py=1"}}}, {std::string(test::kSite) + "~orch/x.so=12345"});
  const auto found = inspected(there);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].code == "leftover");
}
