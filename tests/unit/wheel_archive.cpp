// SPDX-License-Identifier: MIT
#include "wheel/archive.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"
#include "support/zip_literal.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

struct Opened {
  testing::Folder folder;
  Result<wheel::Archive> archive;
  explicit Opened(const std::string& bytes) : archive(open(bytes)) {}
  Result<wheel::Archive> open(const std::string& bytes) {
    folder.write("demo-1.0-py3-none-any.whl", bytes);
    return wheel::Archive::open(*os::open_file(folder.fd(), "demo-1.0-py3-none-any.whl"), "demo-1.0-py3-none-any.whl");
  }
};

/// Why the archive is refused; "taken" where it is not.
std::string verdict(const std::string& bytes) {
  const Opened opened(bytes);
  if (opened.archive) return "taken";
  CHECK(opened.archive.error().what == "the wheel 'demo-1.0-py3-none-any.whl' is refused");
  CHECK(opened.archive.error().code == ErrorCode::wheel_refused);
  return opened.archive.error().causes.front();
}
std::string verdict_of(Zipped file) { return verdict(zip({std::move(file)})); }

/// What an entry holds, or why it does not unpack.
std::string content(const std::string& bytes, const std::string& name, u64 limit = 1 << 20) {
  const Opened opened(bytes);
  REQUIRE(opened.archive);
  auto reader = wheel::Reader::open(*opened.archive);
  REQUIRE(reader);
  auto text = reader->text(*opened.archive->find(name), limit);
  return text ? *text : text.error().causes.front();
}

}  // namespace

TEST_CASE("Files of an archive are read, stored and deflated, with modes and times; folders are left out") {
  const std::string bytes = zip({{"a/", "", 040755}, {"a/x.py", "print()"}, {"a/run", "#!/bin/sh\n", 0100755}, {.name = "b", .content = std::string(100'000, 'b'), .is_deflated = true}});
  const Opened opened(bytes);
  REQUIRE(opened.archive);
  REQUIRE(opened.archive->entries().size() == 3);
  CHECK(opened.archive->entries()[0].name == "a/x.py");
  CHECK_FALSE(opened.archive->entries()[0].is_executable);
  CHECK(opened.archive->entries()[1].is_executable);
  CHECK(opened.archive->entries()[0].mtime_ns == 1'704'115'980'000'000'000);
  CHECK(opened.archive->unpacked_bytes() == 100'017);
  CHECK(content(bytes, "a/x.py") == "print()");
  CHECK(content(bytes, "b") == std::string(100'000, 'b'));
  CHECK(content(bytes, "b", 99'999) == "'b' has 100 KB, more than 100 KB");
}

TEST_CASE("Names that are no paths beneath the wheel are refused") {
  CHECK(verdict_of({"../x", "x"}) == "'../x': its name leaves the wheel, or is no path");
  CHECK(verdict_of({"a/../../x", "x"}) == "'a/../../x': its name leaves the wheel, or is no path");
  CHECK(verdict_of({"a//x", "x"}) == "'a//x': its name leaves the wheel, or is no path");
  CHECK(verdict_of({"./x", "x"}) == "'./x': its name leaves the wheel, or is no path");
  CHECK(verdict_of({"/etc/passwd", "x"}) == "'/etc/passwd': its name is absolute");
  CHECK(verdict_of({std::string("a\0b", 3), "x"}) == "'a\\x00b': its name holds a NUL byte");
  CHECK(verdict_of({"a\\b", "x"}) == "'a\\\\b': its name holds a backslash");
  CHECK(verdict_of({"", "x"}) == "'': its name leaves the wheel, or is no path");
  CHECK(verdict_of({std::string(5000, 'a'), "x"}) == "a name has 5000 bytes, more than 4096");
  CHECK(verdict_of({std::string(300, 'a'), "x"}).ends_with("its name leaves the wheel, or is no path"));
}

TEST_CASE("What is no regular file, is encrypted or packed by another method is refused") {
  CHECK(verdict_of({"x", "/etc/passwd", 0120777}) == "'x': it is a symbolic link");
  CHECK(verdict_of({"x", "", 0010644}) == "'x': it is no regular file");
  CHECK(verdict_of({.name = "x", .content = "x", .flags = 1}) == "'x': it is encrypted");
  CHECK(verdict_of({.name = "x", .content = "x", .method = 12}) == "'x': it is packed by method 12, which wheels do not use");
  CHECK(verdict_of({"x/", "content", 040755}) == "'x/': it is a folder with content");
  CHECK(verdict_of({"x", "x"}) == "taken");
}

TEST_CASE("A name that comes twice is refused") { CHECK(verdict(zip({{"x", "1"}, {"y", ""}, {"x", "2"}})) == "'x' is in it twice"); }

TEST_CASE("A bomb is refused before anything of it unpacks") {
  CHECK(verdict_of({.name = "x", .content = std::string(1 << 20, '\0'), .is_deflated = true, .size = 3'000'000'000}).find("and unpacks to 3.0 GB") != std::string::npos);
  // Ten files that share the bytes of one.
  std::vector<Zipped> shared(10, {.name = "", .content = std::string(10'000, 'x')});
  for (std::size_t i = 0; i < shared.size(); ++i) shared[i].name = std::string(1, static_cast<char>('a' + i));
  CHECK(verdict(zip(shared, {.count = {}, .shares_bytes = true})) == "its files overlap each other");
}

TEST_CASE("More files than any wheel has are refused by their count alone") {
  // A zip64 end that promises a million.
  Bytes out{std::byte{0}};
  put_le<u32>(out, 0x06064b50), put_le<u64>(out, 44), put_le<u16>(out, 45), put_le<u16>(out, 45), put_le<u32>(out, 0), put_le<u32>(out, 0);
  put_le<u64>(out, 1'000'000), put_le<u64>(out, 1'000'000), put_le<u64>(out, 0), put_le<u64>(out, 0);
  put_le<u32>(out, 0x07064b50), put_le<u32>(out, 0), put_le<u64>(out, 1), put_le<u32>(out, 1);
  put_le<u32>(out, 0x06054b50), put_le<u32>(out, 0), put_le<u16>(out, 0xffff), put_le<u16>(out, 0xffff), put_le<u32>(out, 0), put_le<u32>(out, 0xffffffff), put_le<u16>(out, 0);
  CHECK(verdict(std::string(as_text(out))) == "it says that it holds 1000000 files, more than 250000");
}

TEST_CASE("A list that promises more files than it has is damaged") { CHECK(verdict(zip({{"x", "1"}}, {.count = 3})) == "its list of files is damaged after 1 files"); }

TEST_CASE("An archive cut off anywhere is refused") {
  const std::string whole = zip({{"a/x.py", "print()"}, {.name = "b", .content = std::string(1000, 'b'), .is_deflated = true}});
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(verdict(whole.substr(0, size)) != "taken");
}

TEST_CASE("Content with another checksum or length than promised is refused") {
  CHECK(content(zip({{.name = "x", .content = "abc", .crc = 1}}), "x") == "'x': its checksum is wrong");
  CHECK(content(zip({{.name = "x", .content = std::string(50, 'x'), .is_deflated = true, .size = 60}}), "x") == "'x': it is cut off");
  CHECK(content(zip({{.name = "x", .content = std::string(50, 'x'), .is_deflated = true, .size = 40}}), "x") != std::string(50, 'x'));
}

TEST_CASE("No byte of an archive, flipped, makes it crash or give other content without a word") {
  const std::string whole = zip({{"a/x.py", "print()"}, {.name = "b", .content = std::string(300, 'b'), .is_deflated = true}});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      const Opened opened(damaged);
      if (!opened.archive) continue;
      auto reader = wheel::Reader::open(*opened.archive);
      if (!reader) continue;
      for (const wheel::ArchiveEntry& entry : opened.archive->entries()) {
        const auto text = reader->text(entry, 1 << 20);
        if (text) CHECK((*text == "print()" || *text == std::string(300, 'b') || text->empty()));
      }
    }
  }
}
