// SPDX-License-Identifier: MIT
#include "python/wheel_tags.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::string wrong(std::string_view file, std::string_view python = "3.12", std::string_view machine = "x86_64") {
  const auto wheel = parse_wheel_name(file);
  return wheel ? wrong_with_tags(*wheel, python, machine) : "no wheel";
}

}  // namespace

TEST_CASE("The name of a wheel is taken apart, with a build number and compressed tags") {
  const auto wheel = parse_wheel_name("Flash_Attn-2.8.0+cu130-1-cp311.cp312-none.abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl");
  REQUIRE(wheel);
  CHECK(wheel->name == "flash-attn");
  CHECK(wheel->version == "2.8.0+cu130");
  CHECK(wheel->pythons == std::vector<std::string>{"cp311", "cp312"});
  CHECK(wheel->abis == std::vector<std::string>{"none", "abi3"});
  CHECK(wheel->platforms == std::vector<std::string>{"manylinux_2_17_x86_64", "manylinux2014_x86_64"});
  for (const char* none : {"x.zip", "demo-1.0.whl", "demo-1.0-py3-none.whl", "demo--py3-none-any.whl", ".whl"}) CHECK_FALSE(parse_wheel_name(none));
}

TEST_CASE("Wheels that run on CPython 3.12 of this machine are taken") {
  for (const char* file : {"x-1-py3-none-any.whl", "x-1-py2.py3-none-any.whl", "x-1-py312-none-any.whl", "x-1-py38-none-any.whl", "x-1-cp312-cp312-linux_x86_64.whl",
                           "x-1-cp312-cp312-manylinux_2_28_x86_64.whl", "x-1-cp37-abi3-manylinux1_x86_64.whl", "x-1-cp312-none-any.whl", "x-1-py3-none-manylinux2014_x86_64.whl"})
    CHECK_MESSAGE(wrong(file).empty(), file);
}

TEST_CASE("Wheels for another Python, ABI, machine or system are told with what they are for") {
  CHECK(wrong("x-1-cp311-cp311-linux_x86_64.whl") == "it is for cp311 (cp311), not for Python 3.12");
  CHECK(wrong("x-1-cp313-abi3-linux_x86_64.whl") == "it is for cp313 (abi3), not for Python 3.12");
  CHECK(wrong("x-1-cp312-cp312t-linux_x86_64.whl") == "it is for cp312 (cp312t), not for Python 3.12");
  CHECK(wrong("x-1-py2-none-any.whl") == "it is for py2 (none), not for Python 3.12");
  CHECK(wrong("x-1-py313-none-any.whl") == "it is for py313 (none), not for Python 3.12");
  CHECK(wrong("x-1-pp310-pypy310_pp73-linux_x86_64.whl") == "it is for pp310 (pypy310_pp73), not for Python 3.12");
  CHECK(wrong("x-1-py3-none-manylinux_2_28_aarch64.whl") == "it is for manylinux_2_28_aarch64, not for Linux on x86_64");
  CHECK(wrong("x-1-py3-none-musllinux_1_2_x86_64.whl") == "it is for musllinux_1_2_x86_64, not for Linux on x86_64");
  CHECK(wrong("x-1-py3-none-win_amd64.whl") == "it is for win_amd64, not for Linux on x86_64");
  CHECK(wrong("x-1-cp39-cp39-linux_x86_64.whl", "3.10").starts_with("it is for cp39"));
  CHECK(wrong("x-1-cp310-cp310-linux_x86_64.whl", "3.10.4").empty());
  CHECK(wrong("x-1-cp311-cp311-linux_x86_64.whl", "").empty());
}

TEST_CASE("Each wheel that does not run there is a finding") {
  const auto findings = check_wheel_tags({"a-1-py3-none-any.whl", "b-1-cp311-cp311-linux_x86_64.whl", "odd.whl"}, "3.12", "x86_64");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "wheel_tag");
  CHECK(findings[0].severity == Severity::error);
  CHECK(findings[0].what == "the wheel 'b-1-cp311-cp311-linux_x86_64.whl' does not run there: it is for cp311 (cp311), not for Python 3.12");
  CHECK(findings[1].what.starts_with("the wheel 'odd.whl' does not run there: its file name is none of a wheel"));
}
