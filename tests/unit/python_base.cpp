// SPDX-License-Identifier: MIT
#include "python/base_python.hpp"

#include "support/tree_literal.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::string root_of(std::string_view home, std::string_view program) {
  const auto base = base_python("home = " + std::string(home) + "\nversion = 3.12.4\n", program);
  return base ? base->root : base.error().what;
}

}  // namespace

TEST_CASE("the base is the folder above home's bin, and holds the program") {
  CHECK(root_of("/root/.local/share/uv/python/cpython-3.12/bin", "/root/.local/share/uv/python/cpython-3.12/bin/python3.12") == "/root/.local/share/uv/python/cpython-3.12");
  CHECK(root_of("/opt/conda/bin/", "/opt/conda/bin/python3.12") == "/opt/conda");
  CHECK(root_of("/a/bin", "/b/bin/python3") == "the base interpreter has its home in '/a/bin' and its program at '/b/bin/python3', which are two places");
  CHECK(root_of("/a/bin", "/a_b/bin/python3").find("which are two places") != std::string::npos);
}

TEST_CASE("the system's Python is never brought") {
  for (const char* home : {"/usr/bin", "/bin", "/usr/local/bin", "/usr/../usr/bin", "/usr/lib/python/bin"})
    CHECK_MESSAGE(root_of(home, std::string(home) + "/python3").find("is the system's") != std::string::npos, home);
  CHECK(root_of("/a/programs", "/a/programs/python3") == "the base interpreter lies in '/a/programs', not in a folder 'bin' of its own");
  CHECK_FALSE(base_python("version = 3.12\n", "/a/bin/python3"));
}

TEST_CASE("uv's and conda's are known, and what is no whole Python is told") {
  const tree::Tree whole = test::tree({"", "bin/", "bin/python3.12=x", "conda-meta/", "lib/", "lib/python3.12/", "lib/python3.12/os.py=x"});
  CHECK(kind_of({"/opt/conda", ""}, whole) == BaseKind::conda);
  const tree::Tree plain = test::tree({"", "bin/", "bin/python3.12=x"});
  CHECK(kind_of({"/root/.local/share/uv/python/cpython-3.12", ""}, plain) == BaseKind::uv);
  CHECK(kind_of({"/root/.pyenv/versions/3.12.4", ""}, plain) == BaseKind::other);
  CHECK(wrong_with_base({"/p", "/p/bin/python3.12"}, whole, "3.12").empty());
  CHECK(wrong_with_base({"/p", "/p/bin/python3.11"}, whole, "3.12") == "it has no '/p/bin/python3.11'");
  CHECK(wrong_with_base({"/p", "/p/bin/python3.12"}, plain, "3.12") == "its standard library is not in 'lib/python3.12'");
  CHECK(wrong_with_base({"/p", "/p/bin/python3.12"}, whole, "3.11") == "its standard library is not in 'lib/python3.11'");
}

TEST_CASE("libraries that the tree brings itself are not asked of the host") {
  CHECK(needed_outside({{"bin/python3", "", "libpython3.12.so.1.0:libc.so.6"}, {"lib/libpython3.12.so.1.0", "libpython3.12.so.1.0", "libm.so.6:libc.so.6"}, {"lib/x/_ssl.so", "", "libssl.so.3:libown.so"}, {"lib/libown.so", "", ""}}) ==
        std::vector<std::string>{"libc.so.6", "libm.so.6", "libssl.so.3"});
}
