// SPDX-License-Identifier: MIT
#include "wheel/layout.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/os_folder.hpp"
#include "support/zip_literal.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

Result<wheel::Layout> laid_out(const std::vector<Zipped>& files, const std::string& name = "demo-1.0-py3-none-any.whl") {
  const testing::Folder folder;
  folder.write(name, zip(files));
  TRY(const wheel::Archive archive, wheel::Archive::open(*os::open_file(folder.fd(), name), name));
  TRY(wheel::Reader reader, wheel::Reader::open(archive));
  TRY(const wheel::Texts texts, wheel::read_texts(archive, reader));
  return wheel::lay_out(archive, texts);
}
std::string verdict(const std::vector<Zipped>& files, const std::string& name = "demo-1.0-py3-none-any.whl") {
  const auto layout = laid_out(files, name);
  return layout ? "taken" : layout.error().causes.front();
}

/// Every path below the environment, "*" after those that can be run.
std::vector<std::string> paths(const wheel::Layout& layout) {
  std::vector<std::string> out;
  for (const auto& file : layout.files) out.push_back(file.path.bytes() + (file.is_executable ? "*" : ""));
  for (const auto& [path, file] : layout.written) out.push_back(path.bytes() + (file.is_executable ? "*" : ""));
  std::ranges::sort(out);
  return out;
}
std::string text_of(const wheel::Layout& layout, const std::string& path) {
  const auto found = layout.written.find(*tree::RelPath::parse(path));
  return found == layout.written.end() ? "" : found->second.text;
}

const std::string kInfo = "lib/python3/site-packages/demo-1.0.dist-info/";

}  // namespace

TEST_CASE("A wheel's files go where its schemes say, scripts are generated, and RECORD lists all of it") {
  const auto layout = laid_out(demo_wheel({{"demo/__init__.py", ""},
                                      {"demo/tool", "ELF", 0100755},
                                      {"demo-1.0.data/purelib/pure.py", "p"},
                                      {"demo-1.0.data/platlib/plat.so", "q"},
                                      {"demo-1.0.data/scripts/old", "#!python\nprint()"},
                                      {"demo-1.0.data/headers/demo.h", "#pragma once"},
                                      {"demo-1.0.data/data/share/man/demo.1", "man"},
                                      {"demo-1.0.dist-info/entry_points.txt", "[console_scripts]\nnew = demo:main\n[gui_scripts]\nwin = demo.gui:run [qt]\n"}}));
  REQUIRE(layout);
  CHECK(paths(*layout) == std::vector<std::string>{
                              "bin/new*", "bin/old*", "bin/win*", "include/site/python3/Demo/demo.h", kInfo + "INSTALLER", kInfo + "METADATA", kInfo + "RECORD",
                              kInfo + "WHEEL", kInfo + "entry_points.txt", "lib/python3/site-packages/demo/__init__.py", "lib/python3/site-packages/demo/tool*",
                              "lib/python3/site-packages/plat.so", "lib/python3/site-packages/pure.py", "share/man/demo.1"});
  CHECK(text_of(*layout, kInfo + "INSTALLER") == "envsync\n");
  CHECK(text_of(*layout, "bin/win").starts_with("#!python\n"));
  CHECK(text_of(*layout, "bin/win").find("from demo.gui import run") != std::string::npos);
  const std::string record = text_of(*layout, kInfo + "RECORD");
  CHECK(record.starts_with("demo/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"));
  for (const char* row : {"pure.py,sha256=", "plat.so,sha256=", "../../../bin/old,sha256=", "../../../include/site/python3/Demo/demo.h,sha256=", "../../../share/man/demo.1,sha256=",
                          "../../../bin/new,sha256=", "demo-1.0.dist-info/INSTALLER,sha256=", "demo-1.0.dist-info/RECORD,,\n"})
    CHECK_MESSAGE(record.find(std::string("\n") + row) != std::string::npos, row);
  CHECK(record.find("demo-1.0.data") == std::string::npos);
}

TEST_CASE("A script that entry_points.txt generates takes the place of a file of its name") {
  const auto layout = laid_out(demo_wheel({{"demo-1.0.data/scripts/demo", "#!python\nold"}, {"demo-1.0.dist-info/entry_points.txt", "[console_scripts]\ndemo=demo:main\n"}}));
  REQUIRE(layout);
  CHECK(layout->files.size() == 3);  // the dist-info's
  CHECK(text_of(*layout, "bin/demo").find("from demo import main") != std::string::npos);
}

TEST_CASE("A wheel whose RECORD is not the truth is refused by the file's name") {
  const std::string record = "demo-1.0.dist-info/RECORD";
  CHECK(verdict({{"demo/x.py", ""}, {"demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n"}, {"demo-1.0.dist-info/METADATA", "Name: demo\nVersion: 1.0\n"}}) == "it has no 'demo-1.0.dist-info/RECORD'");
  CHECK(verdict(demo_wheel({{"demo/x.py", ""}}, "demo/gone.py,sha256=x,1\n")) == "it lacks 'demo/gone.py', which its RECORD lists");
  auto unlisted = demo_wheel({{"demo/x.py", ""}});
  unlisted.push_back({"demo/extra.py", "import os"});
  CHECK(verdict(unlisted) == "its RECORD does not list 'demo/extra.py'");
  CHECK(verdict(demo_wheel({{record, "demo-1.0.dist-info/WHEEL,,\n"}})) == "its RECORD has no sha256 of 'demo-1.0.dist-info/WHEEL'");
  CHECK(verdict(demo_wheel({{record, "demo-1.0.dist-info/WHEEL,md5=abc,1\n"}})) == "its RECORD has no sha256 of 'demo-1.0.dist-info/WHEEL'");
  CHECK(verdict(demo_wheel({{"demo/x.py", ""}}, "demo/x.py,sha256=x,1\n")) == "its RECORD lists 'demo/x.py' twice");
  CHECK(verdict(demo_wheel({{record, "\"open"}})).starts_with("its RECORD "));
  auto longer = demo_wheel({{"demo/x.py", "1"}});
  longer[0].content = "12";
  CHECK(verdict(longer) == "'demo/x.py' has 2 bytes, by its RECORD 1");
}

TEST_CASE("A wheel that is not what its name says, or of another version of the format, is refused") {
  CHECK(verdict(demo_wheel({{"x.py", ""}}), "other-1.0-py3-none-any.whl") == "its file name, its dist-info 'demo-1.0.dist-info' and its METADATA name different distributions");
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n"}})).ends_with("name different distributions"));
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/METADATA", "Summary: nothing\n"}})) == "its METADATA names no distribution");
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/WHEEL", "Wheel-Version: 2.0\n"}})) == "it is of wheel version 2.0, not of 1");
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/WHEEL", "Generator: x\n"}})) == "'demo-1.0.dist-info/WHEEL' has no Wheel-Version");
  CHECK(verdict({{"x.py", ""}}) == "it has no dist-info");
  CHECK(verdict(demo_wheel({{"other-1.0.dist-info/x", ""}})) == "it has several dist-infos");
}

TEST_CASE("Files that would meet each other or the environment's own are refused") {
  CHECK(verdict(demo_wheel({{"x.py", ""}, {"demo-1.0.data/purelib/x.py", ""}})) == "two of its files would be 'lib/python3/site-packages/x.py'");
  CHECK(verdict(demo_wheel({{"x", ""}, {"demo-1.0.data/purelib/x/y", ""}})) == "'lib/python3/site-packages/x' would be a file and a folder");
  CHECK(verdict(demo_wheel({{"demo-1.0.data/data/pyvenv.cfg", "home = /tmp"}})) == "'demo-1.0.data/data/pyvenv.cfg' would replace the environment's own 'pyvenv.cfg'");
  CHECK(verdict(demo_wheel({{"demo-1.0.data/scripts/python3", "x"}})).ends_with("would replace the environment's own 'bin/python3'"));
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/entry_points.txt", "[console_scripts]\nactivate=demo:main\n"}})) == "its script 'activate' would replace the environment's own");
  CHECK(verdict(demo_wheel({{"demo-1.0.dist-info/entry_points.txt", "[console_scripts]\n../x=demo:main\n"}})) == "its script '../x' is no file name");
  CHECK(verdict(demo_wheel({{"demo-1.0.data/strange/x", ""}})) == "'demo-1.0.data/strange/x' is of no scheme that wheels have");
  CHECK(verdict(demo_wheel({{"demo-1.0.data/scripts", ""}})) == "'demo-1.0.data/scripts' is a file where a folder must be");
}
