// SPDX-License-Identifier: MIT
#include "python/lint.hpp"

#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;

Lines found(const test::Environment& there, const tree::Exclude* exclude = nullptr) {
  Lines out;
  for (const Finding& one : lint(there.set(), exclude)) {
    CHECK(one.severity != Severity::error);
    out.push_back(fmt::format("{} {}: {}", std::string_view("nwe")[static_cast<std::size_t>(one.severity)], one.code, one.what));
  }
  return out;
}

}  // namespace

TEST_CASE("an environment as installers leave it is clean") {
  CHECK(found(test::environment({{"a", "1", {"a.py=1", "/bin/a=1"}, {}, {}, "[console_scripts]\na=a:main\n"}, {"b", "2", {"b.py=1"}}})).empty());
}

TEST_CASE("leftovers of an interrupted uninstall are told with their size") {
  CHECK(found(test::environment({}, {std::string(test::kSite) + "~orch/x.so=12345", std::string(test::kSite) + "~orch-2.9.dist-info/RECORD=x"})) ==
        Lines{"w leftover: an interrupted uninstall left ~orch, ~orch-2.9.dist-info with 6 B; delete them, or name them in source.exclude"});
}

TEST_CASE("distributions without a RECORD, and names that are installed twice, are told") {
  auto there = test::environment({{"a", "1", {"a.py=1"}}, {"a", "2", {"a2.py=1"}}, {"b", "1", {"b.py=1"}}});
  there.files.erase(std::string(test::kSite) + "b-1.dist-info/RECORD");
  CHECK(found(there) == Lines{"w installed_twice: 'a' is installed 2 times (1, 2); Python takes one of them, and which one is not defined",
                              "w record_unusable: b 1 has no RECORD: an overlay can neither replace nor remove it"});
}

TEST_CASE("rows without files are told, and apart from them those that the manifest left out") {
  const auto there = test::environment({{"torch", "2.11", {"!torch/include/a.h=1", "!torch/include/b.h=1", "!torch/lib/x.so=1", "torch/__init__.py=1"}}});
  const auto exclude = tree::Exclude::parse({"**/include/"});
  REQUIRE(exclude);
  CHECK(found(there, &*exclude) == Lines{"w excluded_files: source.exclude leaves out 2 files of 'torch 2.11'; on the target they stay as they are, or are missing",
                                                      "w incomplete: 'torch 2.11' lacks a file that its RECORD lists"});
  CHECK(found(there) == Lines{"w incomplete: 'torch 2.11' lacks 3 files that its RECORD lists"});
}

TEST_CASE("hard links of an installer's cache are one note") {
  CHECK_FALSE(shared_inodes(0, 78'572));
  CHECK(shared_inodes(77'900, 78'572)->what ==
        "77900 of 78572 files are hard links of files elsewhere, as uv makes them of its cache: whoever writes into one writes into the other; the target gets files of its own");
}
