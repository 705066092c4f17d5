// SPDX-License-Identifier: MIT
#include "os/paths.hpp"

#include <cstdlib>

#include <sys/stat.h>

#include <doctest/doctest.h>

#include "os/process.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::os;
using envsync::testing::Folder;

namespace {

/// A variable of the environment for the length of a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (old_) ::setenv(name_, old_->c_str(), 1);
    else ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("a tilde is the home of this user only at the beginning and alone") {
  const Variable home("HOME", "/home/op");
  CHECK(expand_home("~") == "/home/op");
  CHECK(expand_home("~/env") == "/home/op/env");
  CHECK(expand_home("~other/env") == "~other/env");
  CHECK(expand_home("/a/~") == "/a/~");
}

TEST_CASE("the real path follows every link, a missing one has none") {
  const Folder folder;
  folder.write("d/f", "");
  folder.symlink("d", "l");
  CHECK(real_path(folder.path("l/f")) == real_path(folder.path("d/f")));
  CHECK_FALSE(real_path(folder.path("l/g")));
}

TEST_CASE("only a regular file with an execute bit is executable") {
  const Folder folder;
  folder.write("prog", "", 0755);
  folder.write("data", "", 0644);
  CHECK(is_executable(folder.path("prog")));
  CHECK_FALSE(is_executable(folder.path("data")));
  CHECK_FALSE(is_executable(folder.path()));
}

TEST_CASE("the cache folder is ours alone, or there is none") {
  const Folder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path("cache"));
  CHECK(cache_folder() == folder.path("cache/envsync"));
  REQUIRE(::chmod(folder.path("cache/envsync").c_str(), 0777) == 0);
  CHECK(cache_folder().empty());
  REQUIRE(::rmdir(folder.path("cache/envsync").c_str()) == 0);
  folder.symlink(folder.path(), "cache/envsync");
  CHECK(cache_folder().empty());
}

TEST_CASE("a program is run to its end or to its limit") {
  const auto said = run({"sh", "-c", "echo out; echo err >&2; exit 3"}, Seconds(20));
  CHECK(said.status == 3);
  CHECK(said.output == "out\nerr\n");
  CHECK(run({"sleep", "1000"}, Seconds(0.02)).status == 124);
  CHECK(run({"/no/such/program"}, Seconds(20)).status == 127);
  CHECK(run({"head", "-c", "1000000", "/dev/zero"}, Seconds(20)).output.size() <= (64u << 10) + 4096);
}
