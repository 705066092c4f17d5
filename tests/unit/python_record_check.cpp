// SPDX-License-Identifier: MIT
#include "python/record_check.hpp"

#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;

Lines said(const std::vector<Finding>& findings) {
  Lines out;
  for (const Finding& finding : findings) out.push_back(fmt::format("{} {}: {}", finding.code, finding.file, finding.what));
  return out;
}

}  // namespace

TEST_CASE("every file must be what one of its owners says, bytecode aside") {
  auto there = test::environment({{"base", "1", {"dsl/x.py=old", "dsl/__pycache__/x.cpython-312.pyc=p"}}, {"cu13", "1", {"dsl/x.py=new", "cu13.py=c"}}});
  const DistributionSet set = there.set();
  const std::vector<ExpectedFile> expected = expected_files(set);
  REQUIRE(expected.size() == 2);
  CHECK(expected[1].any_of.size() == 2);
  CHECK(said(check_sums(expected, there.sums, Severity::error)).empty());
  CHECK(expected_files(set, {"base"}).size() == 1);
  there.sums["lib/python3.12/site-packages/dsl/x.py"] = test::sum_of("edited");
  there.sums.erase("lib/python3.12/site-packages/cu13.py");
  CHECK(said(check_sums(expected, there.sums, Severity::error)) ==
        Lines{"record_mismatch lib/python3.12/site-packages/cu13.py: a file that is not there, against what the RECORD of 'cu13 1' says",
              "record_mismatch lib/python3.12/site-packages/dsl/x.py: other content than what the RECORD of 'base 1' says"});
}

TEST_CASE("rows without files and scripts without modules are told") {
  const std::string scripts = "[console_scripts]\na = pkg.main:run\nb = fast:run\nc = pkg:run\nd = gone.main:run\ne = not_installed:run\n";
  const auto there = test::environment({{"a", "1", {"pkg/main.py=1", "fast.cpython-312-x86_64-linux-gnu.so=1", "!pkg/lost.py=1", "/bin/a=1", "/bin/b=1", "/bin/c=1", "/bin/d=1"}, {}, {}, scripts}});
  CHECK(said(check_complete(there.set(), {}, Severity::error)) ==
        Lines{"incomplete lib/python3.12/site-packages/pkg/lost.py: 'a 1' lacks 1 of the files that its RECORD lists", "script_without_module bin/d: 'd' of 'a 1' starts gone.main, which is not there"});
  CHECK(check_complete(there.set(), {"b"}, Severity::error).empty());
}
