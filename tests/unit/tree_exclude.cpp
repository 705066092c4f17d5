// SPDX-License-Identifier: MIT
#include "tree/exclude.hpp"

#include <doctest/doctest.h>

#include "base/bytes.hpp"

using namespace envsync;
using namespace envsync::tree;

namespace {

/// Paths of `lines` that the patterns exclude; a slash at the end means a folder.
std::string excluded(const std::vector<std::string>& patterns, const std::vector<std::string>& lines) {
  const auto exclude = Exclude::parse(patterns);
  REQUIRE(exclude);
  std::string text;
  for (const std::string& line : lines) {
    const bool is_dir = line.ends_with('/');
    if (exclude->matches(*RelPath::parse(is_dir ? line.substr(0, line.size() - 1) : line), is_dir)) text += (text.empty() ? "" : " ") + line;
  }
  return text;
}

}  // namespace

TEST_CASE("a pattern without a slash matches at every depth, one with a slash only from the root") {
  CHECK(excluded({"*.log"}, {"a.log", "b/c/a.log", "a.log/", "a.logs"}) == "a.log b/c/a.log a.log/");
  CHECK(excluded({"/a"}, {"a", "b/a"}) == "a");
  CHECK(excluded({"b/a"}, {"b/a", "c/b/a"}) == "b/a");
  CHECK(excluded({"b/*"}, {"b/a", "b/c/d", "b"}) == "b/a");
}

TEST_CASE("a slash at the end means folders only") {
  CHECK(excluded({"build/"}, {"build/", "build", "x/build/", "x/build"}) == "build/ x/build/");
  CHECK(excluded({"x/build/"}, {"x/build/", "y/x/build/"}) == "x/build/");
}

TEST_CASE("two stars stand for any number of folders") {
  CHECK(excluded({"**/tests"}, {"tests", "a/tests", "a/b/tests", "a/testsx"}) == "tests a/tests a/b/tests");
  CHECK(excluded({"a/**/z"}, {"a/z", "a/b/z", "a/b/c/z", "b/a/z"}) == "a/z a/b/z a/b/c/z");
  CHECK(excluded({"a/**"}, {"a/", "a/b", "a/b/c", "b/a/c"}) == "a/b a/b/c");
  CHECK(excluded({"**/a/**"}, {"a/", "a/b", "x/a/b/c", "x/a/"}) == "a/b x/a/b/c");
  CHECK(excluded({"a**b"}, {"ab", "axxb", "a/b"}) == "ab axxb");
  CHECK(excluded({"**"}, {"a", "b/c"}) == "a b/c");
}

TEST_CASE("the last pattern that matches decides, and '!' takes back") {
  CHECK(excluded({"*.so", "!keep.so"}, {"a.so", "keep.so", "d/keep.so"}) == "a.so");
  CHECK(excluded({"!keep.so", "*.so"}, {"keep.so"}) == "keep.so");
  CHECK(excluded({"*", "!*.py", "bad.py"}, {"a.py", "bad.py", "c"}) == "bad.py c");
}

TEST_CASE("stars, question marks and sets match within one component, byte by byte") {
  CHECK(excluded({"a?c"}, {"abc", "ac", "a/c", "abbc"}) == "abc");
  CHECK(excluded({"[a-c]x"}, {"ax", "dx", "bx"}) == "ax bx");
  CHECK(excluded({"[!a-c]x", }, {"ax", "dx"}) == "dx");
  CHECK(excluded({"[^a]x"}, {"ax", "dx"}) == "dx");
  CHECK(excluded({"[]]x", "[]-]y", "[a-]z"}, {"]x", "-y", "-z", "bz"}) == "]x -y -z");
  CHECK(excluded({"[[:digit:][:upper:]]x"}, {"1x", "Ax", "ax"}) == "1x Ax");
  CHECK(excluded({"*a*b*c"}, {"xaxbxc", "abc", "acb"}) == "xaxbxc abc");
  CHECK(excluded({"?"}, {"\xff", "\xc3\xbc"}) == "\xff");
}

TEST_CASE("a backslash takes the meaning away") {
  CHECK(excluded({"\\*"}, {"*", "a"}) == "*");
  CHECK(excluded({"\\!a", "\\#b"}, {"!a", "#b"}) == "!a #b");
  CHECK(excluded({"[\\]]x"}, {"]x", "\\x"}) == "]x");
  CHECK(excluded({"a\\ "}, {"a ", "a"}) == "a ");
  CHECK(excluded({"a  "}, {"a", "a  "}) == "a");
  CHECK(excluded({"a\\\\ "}, {"a\\", "a\\ "}) == "a\\");
}

TEST_CASE("comments and blank lines match nothing") {
  CHECK(excluded({"", "# *", "   "}, {"a", "# *", "#"}) == "");
}

TEST_CASE("envsync's own folders are never managed, whatever the patterns say") {
  CHECK(excluded({"!.envsync"}, {".envsync/", "a/.envsync-0/", ".envsyncx", "envsync"}) == ".envsync/ a/.envsync-0/ .envsyncx");
}

TEST_CASE("the root is never excluded") {
  CHECK_FALSE(Exclude::parse({"*", "**"})->matches(RelPath(), true));
}

TEST_CASE("a pattern that can match nothing is an error that names it") {
  for (const char* bad : {"/", "!", "!/", "//", "a//b", "../x", "./x", "[abc", "[[:nope:]]", "a\\", "x/\\"}) {
    const auto exclude = Exclude::parse({"good", bad});
    CAPTURE(bad);
    REQUIRE_FALSE(exclude);
    CHECK(exclude.error().code == ErrorCode::manifest_invalid);
    CHECK(exclude.error().what.find("exclude pattern '" + printable(bad) + "'") != std::string::npos);
  }
  CHECK_FALSE(Exclude::parse({std::string("a\0b", 3)}));
  CHECK_FALSE(Exclude::parse({"a\nb"}));
  CHECK_FALSE(Exclude::parse({std::string(5000, 'a')}));
}

TEST_CASE("patterns of many stars take no time") {
  std::string stars, deep;
  for (int i = 0; i < 30; ++i) stars += "*a";
  for (int i = 0; i < 30; ++i) deep += "**/a/";
  const std::string name(200, 'a');
  std::string path = "a";
  for (int i = 0; i < 200; ++i) path += "/a";
  CHECK(excluded({stars + "b", "/" + deep + "b"}, {name, path}) == "");
}

TEST_CASE("bytecode is known by its name and its source") {
  CHECK(source_beside("x.pyc") == "x.py");
  CHECK(source_beside("x.pyo") == "x.py");
  for (const char* other : {"x.py", ".pyc", "pyc", "x.pycx", ""}) CHECK(source_beside(other) == "");
  CHECK(is_pycache_dir("__pycache__"));
  CHECK_FALSE(is_pycache_dir("x__pycache__"));
}

TEST_CASE("a cached bytecode file tells its module") {
  CHECK(module_of_cached("m.cpython-312.pyc") == "m");
  CHECK(module_of_cached("m.cpython-312.opt-1.pyc") == "m");
  CHECK(module_of_cached("m.pypy39.pyc") == "m");
  CHECK(module_of_cached("test_x.cpython-312-pytest-8.2.0.pyc") == "test_x");
  CHECK(module_of_cached("foo.bar.cpython-311.pyc") == "foo.bar");
  CHECK(module_of_cached("m.newpython-1.pyc") == "m");
  CHECK(module_of_cached("m.newpython-1.opt-2.pyc") == "m");
  for (const char* other : {"m.pyc", "m.py", ".cpython-312.pyc", "m.cpython-312.nbi", ""}) CHECK(module_of_cached(other) == "");
}
