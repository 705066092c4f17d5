// SPDX-License-Identifier: MIT
#include "wheel/cache.hpp"

#include <filesystem>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"
#include "support/zip_literal.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

constexpr const char* kWheel = "demo-1.0-py3-none-any.whl";

struct Machine {
  testing::Folder cache, wheels;
  os::PosixFiles files;

  Result<wheel::Unpacked> unpacked(const std::string& below = {}) {
    TRY(const auto found, wheel::find(below.empty() ? wheels.path() : wheels.path(below)));
    if (!found) return Error{ErrorCode::failed, "no wheels"};
    const auto digest_of = [](int fd, std::string_view name) -> Result<content::Digest> {
      Bytes bytes(1 << 20);
      TRY(const std::size_t size, os::read_at(fd, 0, bytes, name));
      return content::digest_of(ByteView(bytes).first(size));
    };
    return wheel::unpacked(files, cache.path(), *found, digest_of, {}, {});
  }
  std::string why(const std::string& below = {}) {
    const auto result = unpacked(below);
    return result ? "unpacked" : result.error().causes.empty() ? result.error().what : result.error().causes.front();
  }
  std::size_t kept() const {
    std::error_code none;
    const std::filesystem::directory_iterator folder(cache.path("wheels"), none);
    return none ? 0 : static_cast<std::size_t>(std::distance(folder, std::filesystem::directory_iterator{}));
  }
};

std::string read(const wheel::Unpacked& unpacked, const std::string& path) { return os::read_small(unpacked.root.get(), path, 1 << 20).value_or("(absent)"); }

}  // namespace

TEST_CASE("A wheel is unpacked once, into a folder of this user alone, with modes and times") {
  Machine machine;
  machine.wheels.write(kWheel, zip(demo_wheel({{"demo/x.py", "print()"}, {"demo-1.0.data/scripts/run", "#!python\n"}})));
  const auto first = machine.unpacked();
  REQUIRE(first);
  CHECK(read(*first, "lib/python3/site-packages/demo/x.py") == "print()");
  CHECK(os::stat_at(first->root.get(), "bin/run")->mode == 0755);
  CHECK(os::stat_at(first->root.get(), "lib/python3/site-packages/demo/x.py")->mode == 0644);
  CHECK(os::stat_at(first->root.get(), "lib/python3/site-packages/demo/x.py")->mtime_ns == 1'704'115'980'000'000'000);
  CHECK(os::stat_at(machine.cache.fd(), "wheels")->mode == 0700);
  const auto again = machine.unpacked(kWheel);  // the wheel alone instead of its folder
  REQUIRE(again);
  CHECK(again->path == first->path);
  CHECK(os::stat_fd(again->root.get())->ino == os::stat_fd(first->root.get())->ino);
}

TEST_CASE("Other content is another folder") {
  Machine machine;
  machine.wheels.write(kWheel, zip(demo_wheel({{"demo/x.py", "one"}})));
  const auto first = machine.unpacked();
  machine.wheels.write(kWheel, zip(demo_wheel({{"demo/x.py", "two"}})));
  const auto second = machine.unpacked();
  REQUIRE((first && second));
  CHECK(read(*first, "lib/python3/site-packages/demo/x.py") == "one");
  CHECK(read(*second, "lib/python3/site-packages/demo/x.py") == "two");
}

TEST_CASE("A file that is not what its RECORD says is refused by name, and nothing is left") {
  Machine machine;
  auto files = demo_wheel({{"demo/x.py", "import y"}});
  files[0].content = "import x";
  machine.wheels.write(kWheel, zip(files));
  CHECK(machine.why() == "'demo/x.py' is not what its RECORD says: another sha256");
  CHECK(machine.kept() == 0);
}

TEST_CASE("A folder with two wheels of one distribution is refused with their names") {
  Machine machine;
  machine.wheels.write("Demo_Tool-1.0-py3-none-any.whl", "");
  machine.wheels.write("demo.tool-1.1-py3-none-any.whl", "");
  const auto result = machine.unpacked();
  REQUIRE_FALSE(result);
  CHECK(result.error().what == "the folder holds 2 wheels of 'demo-tool'");
  CHECK(result.error().causes == std::vector<std::string>{"Demo_Tool-1.0-py3-none-any.whl", "demo.tool-1.1-py3-none-any.whl"});
}

TEST_CASE("Several wheels become one tree; of a path that two bring the last one's stays") {
  Machine machine;
  machine.wheels.write(kWheel, zip(demo_wheel({{"shared/__init__.py", "first"}, {"demo/x.py", "x"}})));
  auto other = demo_wheel({{"shared/__init__.py", "second"}, {"other-2.0.dist-info/WHEEL", "Wheel-Version: 1.0\n"}, {"other-2.0.dist-info/METADATA", "Name: other\nVersion: 2.0\n"}});
  std::erase_if(other, [](const Zipped& one) { return one.name.starts_with("demo-1.0"); });
  std::string record = "other-2.0.dist-info/RECORD,,\n";
  for (const Zipped& one : other) record += one.name + "," + python::render_record_hash(python::sha256(as_bytes(one.content))) + "," + std::to_string(one.content.size()) + "\n";
  other.push_back({"other-2.0.dist-info/RECORD", record});
  machine.wheels.write("other-2.0-py3-none-any.whl", zip(other));
  const auto both = machine.unpacked();
  REQUIRE(both);
  CHECK(read(*both, "lib/python3/site-packages/shared/__init__.py") == "second");
  CHECK(read(*both, "lib/python3/site-packages/demo/x.py") == "x");
  CHECK(read(*both, "lib/python3/site-packages/other-2.0.dist-info/INSTALLER") == "envsync\n");
}

TEST_CASE("What was used least goes, but for what somebody holds") {
  Machine machine;
  std::vector<wheel::Unpacked> held;
  for (int i = 0; i < 8; ++i) {
    machine.wheels.write(kWheel, zip(demo_wheel({{"demo/x.py", std::to_string(i)}})));
    auto one = machine.unpacked();
    REQUIRE(one);
    held.push_back(*std::move(one));
  }
  CHECK(machine.kept() == 8);
  held.clear();
  machine.wheels.write(kWheel, zip(demo_wheel({{"demo/x.py", "9"}})));
  REQUIRE(machine.unpacked());
  CHECK(machine.kept() == 4);
}

TEST_CASE("An environment, a folder of packages and anything else are no wheels") {
  Machine machine;
  machine.wheels.write("env/pyvenv.cfg", "");
  machine.wheels.write(std::string("env/") + kWheel, "");
  machine.wheels.write("site/demo-1.0.dist-info/RECORD", "");
  machine.wheels.write(std::string("site/") + kWheel, "");
  machine.wheels.write("empty/x.txt", "");
  CHECK(machine.why("env") == "no wheels");
  CHECK(machine.why("site") == "no wheels");
  CHECK(machine.why("empty") == "no wheels");
  CHECK_FALSE(wheel::find(machine.wheels.path("gone")));
}
