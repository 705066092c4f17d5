// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/cli_bench.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

Inspection inspection() {
  Inspection found;
  found.host = "ct200";
  found.path = "/root/venv";
  found.python_version = "3.12.4";
  found.implementation = "CPython";
  found.made_by = "uv 0.9.2";
  found.base = "/usr/bin";
  found.program = "/usr/bin/python3.12";
  found.answer = "3.12.4";
  found.files = 78'572;
  found.bytes = 10'900'000'000;
  for (int i = 0; i < 23; ++i) {
    DistributionFacts one;
    one.name = i == 0 ? "torch" : "dist-" + std::to_string(i);
    one.version = "2.11.0";
    one.installer = i == 1 ? "pip" : "uv";
    one.files = static_cast<u64>(100 - i);
    one.bytes = static_cast<u64>(1'000'000 * (100 - i));
    found.distributions.push_back(one);
  }
  found.distributions[1].missing = 2;
  found.distributions[2].editable = true;
  found.distributions[3].unreadable = "no RECORD";
  found.shared = {{{"cutlass-base", "cutlass-cu13"}, 181, 100, 0}, {{"a", "b"}, 3, 2, 1}, {{"c", "d"}, 1, 0, 0}};
  found.unowned_files = 12;
  found.unowned_bytes = 3'400;
  found.bytecode = {20'000, 210'000'000, 12, 3, 1};
  found.findings = {{"leftover", Severity::warning, "lib/python3.12/site-packages/~orch", "an interrupted uninstall left ~orch with 6 B"},
                    {"shared_inodes", Severity::note, "", "77,900 of 78,572 files are hard links into an installer's cache"}};
  return found;
}

}  // namespace

TEST_CASE("inspect shows what an environment is, its largest distributions and its warnings") {
  Bench bench;
  bench.engine.inspection = inspection();
  CHECK(bench({"inspect", "ct200:/root/venv"}) == 0);
  CHECK(bench.engine.calls == std::vector<std::string>{"inspect ct200:/root/venv"});
  check_golden("cli_inspect", bench.out);
}

TEST_CASE("inspect -v shows every distribution and notes, --json one object") {
  Bench bench;
  bench.engine.inspection = inspection();
  CHECK(bench({"inspect", "/root/venv", "-v"}) == 0);
  check_golden("cli_inspect_all", bench.out);
  bench.out.clear();
  CHECK(bench({"inspect", "/root/venv", "--json"}) == 0);
  check_golden("cli_inspect_json", bench.out);
}

TEST_CASE("an environment whose Python does not run says so; inspect of nothing is an error and no more") {
  Bench bench;
  Inspection dead;
  dead.host = "local";
  dead.path = "/x";
  dead.program = "/gone/python3.12";
  bench.engine.inspection = dead;
  CHECK(bench({"inspect", "/x"}) == 0);
  check_golden("cli_inspect_dead", bench.out);
  bench.out.clear();
  bench.engine.inspection = Error(ErrorCode::source_missing, "the environment '/x' on local does not exist");
  CHECK(bench({"inspect", "/x"}) == 13);
  CHECK(bench.out.empty());
  CHECK(bench.err.find("error[source_missing]: the environment '/x' on local does not exist") != std::string::npos);
  CHECK(bench({"inspect"}) == 2);
  CHECK(bench({"inspect", "a", "b"}) == 2);
}
