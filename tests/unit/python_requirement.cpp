// SPDX-License-Identifier: MIT
#include "python/requirement.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::string read(std::string_view text) {
  const auto requirement = Requirement::parse(text);
  if (!requirement) return "none";
  return fmt::format("{} [{}] {} {}{}", requirement->name, fmt::join(requirement->extras, ","), requirement->versions.specifiers().size(), requirement->url,
                     requirement->marker ? "; marker" : "");
}

bool holds(std::string_view marker, const Extras& extras = {}) {
  const auto parsed = Marker::parse(marker);
  REQUIRE_MESSAGE(parsed.has_value(), marker);
  return parsed->holds(MarkerEnvironment::for_python("3.11.7"), extras);
}

}  // namespace

TEST_CASE("requirements are read in each of their forms") {
  CHECK(read("filelock") == "filelock [] 0 ");
  CHECK(read("Cuda.Toolkit[cublas, CUDA_rt]==13.0.2; platform_system == \"Linux\"") == "cuda-toolkit [cublas,cuda-rt] 1 ; marker");
  CHECK(read("cuda-bindings<14,>=13.0.3 ;platform_system=='Linux'") == "cuda-bindings [] 2 ; marker");
  CHECK(read("zope.interface (>=5.0)") == "zope-interface [] 1 ");
  CHECK(read("zope.interface ( >=5.0 , <6 ) ; extra == 'x'") == "zope-interface [] 2 ; marker");
  CHECK(read("pip @ https://host/a;b.whl ; extra == 'x'") == "pip [] 0 https://host/a;b.whl; marker");
  CHECK(read("pip[a]@file:///x") == "pip [a] 0 file:///x");
  CHECK(read("a []") == "a [] 0 ");
}

TEST_CASE("what is no requirement is refused") {
  for (const std::string_view none : {"", ";", "-a", "a b", "a[", "a[b", "a[b c]", "a[,]", "a==", "a (==1", "a==1)", "a @", "a; ", "a; x == 'y'", "a==1 extra == 'x'",
                                      "a @ https://host/a;b.whl; extra == 'x' y"})
    CHECK_MESSAGE(read(none) == "none", none);
  CHECK(read(std::string(70'000, 'a')) == "none");
}

TEST_CASE("a pin is an equality or an address") {
  CHECK(Requirement::parse("triton==3.6.0; platform_system == 'Linux'")->is_pin());
  CHECK(Requirement::parse("a @ https://host/a.whl")->is_pin());
  CHECK_FALSE(Requirement::parse("setuptools<82")->is_pin());
  CHECK(Requirement::parse("triton==3.6.0 ; platform_system == 'Linux'")->short_text() == "triton==3.6.0");
  CHECK(Requirement::parse("a @ https://host/a;b.whl ; extra == 'x'")->short_text() == "a @ https://host/a;b.whl");
}

TEST_CASE("markers ask the environment") {
  CHECK(holds("platform_system == \"Linux\""));
  CHECK(holds("sys.platform == 'linux' and os.name == 'posix'"));
  CHECK_FALSE(holds("platform_machine == 'aarch64'"));
  CHECK(holds("platform_machine in 'x86_64 amd64'"));
  CHECK(holds("'linux' in sys_platform"));
  CHECK(holds("platform_machine not in 'arm64 aarch64'"));
  CHECK(holds("platform_python_implementation != 'PyPy'"));
  CHECK_FALSE(holds("platform_release >= '20.0'"));
}

TEST_CASE("Python versions are compared as versions") {
  CHECK(holds("python_version >= '3.9'"));
  CHECK_FALSE(holds("python_version < '3.9'"));
  CHECK(holds("'3.9' < python_version"));
  CHECK(holds("python_full_version >= '3.11.4'"));
  CHECK(holds("python_version == '3.11.*'"));
  CHECK(holds("python_version ~= '3.10'"));
  CHECK(holds("python_version in '3.10, 3.11'"));
  CHECK(MarkerEnvironment::for_python("3.12").python_full_version == "3.12.0");
  CHECK(MarkerEnvironment::for_python("3.12.4.final.0").python_full_version == "3.12.4");
}

TEST_CASE("an extra holds for those that were asked for, in any spelling") {
  CHECK_FALSE(holds("extra == 'all'"));
  CHECK(holds("extra == 'CUDA_rt'", {"cuda-rt", "cublas"}));
  CHECK(holds("'cublas' == extra", {"cuda-rt", "cublas"}));
  CHECK_FALSE(holds("extra == 'all'", {"cublas"}));
  CHECK(holds("extra != 'all'", {"cublas"}));
  CHECK(holds("(sys_platform == 'linux' or sys_platform == 'win32') and extra == 'cublas'", {"cublas"}));
  CHECK_FALSE(holds("(sys_platform == 'linux' or sys_platform == 'win32') and extra == 'cublas'"));
}

TEST_CASE("and binds closer than or, and parentheses closer than both") {
  CHECK(holds("os_name == 'posix' or os_name == 'nt' and extra == 'x'"));
  CHECK_FALSE(holds("(os_name == 'posix' or os_name == 'nt') and extra == 'x'"));
  CHECK(holds("((os_name=='posix'))and(python_version>'3')"));
}

TEST_CASE("what is no marker is refused, a nest that fills the stack too") {
  for (const std::string_view none : {"", "os_name", "os_name ==", "'a' == 'b'", "os_name == sys_platform", "nothing == 'x'", "os_name == 'x", "(os_name == 'x'",
                                      "os_name == 'x' and", "os_name == 'x' nand os_name == 'y'", "os_name not 'x'", "os_name = 'x'"})
    CHECK_MESSAGE(!Marker::parse(none), none);
  const std::string deep(60'000, '(');
  CHECK_FALSE(Marker::parse(deep + "os_name == 'x'"));
}
