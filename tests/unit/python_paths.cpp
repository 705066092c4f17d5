// SPDX-License-Identifier: MIT
#include "python/path_findings.hpp"

#include "python/absolute_paths.hpp"
#include "python/relocate.hpp"
#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;

Lines lines(const std::vector<Finding>& findings) {
  Lines out;
  for (const Finding& one : findings) out.push_back(fmt::format("{} {} {}: {}", std::string_view("nwe")[static_cast<std::size_t>(one.severity)], one.code, one.file, one.what));
  return out;
}

/// Texts of "path=text" lines are files; the environment came from /old/env unless said otherwise.
Lines found(const std::vector<std::string>& others, std::string_view origin = "/old/env", std::string_view target = "/new/env", const std::vector<test::Install>& installs = {}) {
  auto there = test::environment(installs, others);
  for (const std::string& line : others)
    if (const std::size_t equals = line.find('='); equals != std::string::npos) there.files.insert_or_assign(line.substr(0, equals), line.substr(equals + 1));
  SmallFiles asked;
  for (const tree::RelPath& path : wanted_path_files(there.tree))
    if (const auto text = there.files.find(path.bytes()); text != there.files.end()) asked.emplace(path.bytes(), text->second);
  return lines(find_paths(DistributionSet::read(there.tree, there.files), asked, {origin, target}));
}

const std::string kLib = "lib/python3.12/site-packages/";

}  // namespace

TEST_CASE("a root is found in a text as a path of its own, not as the beginning of another") {
  CHECK(find_root("x='/srv/env'; y=/srv/env/bin:/srv/env_backup:/data/srv/env", "/srv/env") == std::vector<std::size_t>{3, 16});
  CHECK(with_root_replaced("VIRTUAL_ENV='/srv/env'\nPATH=/srv/env/bin:/srv/env2", "/srv/env", "/new") == "VIRTUAL_ENV='/new'\nPATH=/new/bin:/srv/env2");
  CHECK(find_root("/ /", "/").empty());
  CHECK(normalized("/a//b/./../c/") == "/a/c");
  CHECK(normalized("/../..") == "/");
  CHECK(lies_in("/a/b", "/a"));
  CHECK_FALSE(lies_in("/a_b/c", "/a"));
}

TEST_CASE("an environment at its own path with links to its own files has no findings") {
  CHECK(found({"bin/pip=#!/srv/env/bin/python3\nx", "bin/env=#!/usr/bin/env python3\n", "bin/sh=#!/bin/sh\necho", "bin/python -> /usr/bin/python3.12", "lib64 -> lib", "share/a -> ../lib/b",
               "bin/rel=#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n", "bin/activate=VIRTUAL_ENV='/srv/env'\nexport VIRTUAL_ENV\nPATH=\"$VIRTUAL_ENV/bin:$PATH\"\n",
               kLib + "distutils-precedence.pth=import os; x = '/nowhere'\n", kLib + "own.pth=# /comment\n\nvendor\n../extra\n"},
              "/srv/env", "/srv/env")
            .empty());
}

TEST_CASE("scripts that start another Python are told by its root, with lines of both forms") {
  CHECK(found({"bin/one=#!/other/env/bin/python3\n"}) ==
        Lines{"w shebang_elsewhere bin/one: line 1 starts the Python of '/other/env', not of '/new/env'"});
  CHECK(found({"bin/one=#!/bin/sh\n'''exec' /old/env/bin/python \"$0\" \"$@\"\n' '''\n"}) ==
        Lines{"w shebang_elsewhere bin/one: line 2 starts the Python of '/old/env', not of '/new/env'; relocate: true rewrites it"});
  CHECK(found({"bin/a=#!/old/env/bin/python\n", "bin/b=#!/old/env/bin/python\n", "bin/c=#!/new/env/bin/python\n"}) ==
        Lines{"w shebang_elsewhere bin/a: 2 scripts start the Python of '/old/env', not of '/new/env' (a, b); relocate: true rewrites it"});
  CHECK(found({"bin/one=#!/new/env_backup/bin/python\n"}) == Lines{"w shebang_elsewhere bin/one: line 1 starts the Python of '/new/env_backup', not of '/new/env'"});
  CHECK(found({}, "/old/env", "/new/env", {{"torch", "2.11", {"/bin/torchrun=#!/other/bin/python\n"}}}) ==
        Lines{"w shebang_elsewhere bin/torchrun: line 1 of 'torch 2.11' starts the Python of '/other', not of '/new/env'"});
}

TEST_CASE("activate scripts of every shell are read for the environment that they activate") {
  for (const char* text : {"VIRTUAL_ENV='/old/env'\n", "VIRTUAL_ENV=\"/old/env\"\n", "setenv VIRTUAL_ENV '/old/env'\n", "set -gx VIRTUAL_ENV \"/old/env\"\n", "    export VIRTUAL_ENV=/old/env\n"}) {
    const Lines got = found({fmt::format("bin/activate=# activates\n{}", text)});
    REQUIRE_MESSAGE(got.size() == 1, text);
    CHECK(got[0] == "w activate_elsewhere bin/activate: line 2 activates '/old/env', not '/new/env'; relocate: true rewrites it");
  }
  CHECK(found({"bin/activate=PATH=\"$VIRTUAL_ENV/bin\"\nunset VIRTUAL_ENV\nset -gx PATH \"$VIRTUAL_ENV\"'/bin' $PATH\nif [ -n \"$VIRTUAL_ENV\" ]; then /bin/true; fi\n"}).empty());
}

TEST_CASE("code that lies outside the environment is told, in each form of an editable install") {
  const Lines pth = found({kLib + "__editable__.mine-1.0.pth=/src/mine\n"});
  CHECK(pth == Lines{"w editable " + kLib + "__editable__.mine-1.0.pth: line 1: an editable install, whose code lies in '/src/mine' and does not come along; install it there, or as a wheel"});
  CHECK(found({kLib + "__editable___mine_1_0_finder.py=import sys\nMAPPING: dict[str, str] = {'mine': '/src/mine', 'own': '/new/env/lib/own'}\nX = '/else'\n"}).size() == 1);
  CHECK(found({kLib + "mine.egg-link=/src/mine\n."}).size() == 1);
  CHECK(found({kLib + "easy-install.pth=/src/a\n/src/b\n"}).size() == 2);
  CHECK(found({kLib + "extra.pth=/opt/more\n../../../../up\n"}) ==
        Lines{"w pth_leaves " + kLib + "extra.pth: line 1 adds '/opt/more', which lies outside the environment and does not come along",
              "w pth_leaves " + kLib + "extra.pth: line 2 adds '../../../../up', which lies outside the environment and does not come along"});
}

TEST_CASE("links that leave the tree are told, those into uv's cache as one") {
  CHECK(found({"share/data -> /mnt/data", "share/old -> /old/env/share/x", "share/fine -> /new/env/share/x", "share/up -> ../../other"}) ==
        Lines{"w link_leaves share/data: the link to '/mnt/data' leads out of the environment, and is brought as it is",
              "w link_leaves share/old: the link to '/old/env/share/x' leads into the place that the environment came from; it will find nothing there, or another environment",
              "w link_leaves share/up: the link to '../../other' leads out of the environment, and is brought as it is"});
  CHECK(found({kLib + "a.py -> /root/.cache/uv/archive-v0/x/a.py", kLib + "b.py -> /root/.cache/uv/archive-v0/x/b.py"}) ==
        Lines{"w cache_links " + kLib + "a.py: 2 links lead into uv's cache, which does not come along; make the environment with UV_LINK_MODE=copy"});
}

TEST_CASE("files of the machine that built it are one note, and texts that name the old root are told") {
  const std::string info = kLib + "a-1.dist-info/direct_url.json=";
  CHECK(found({info + R"({"url": "file:///tmp/a.whl", "archive_info": {}})"}) ==
        Lines{"n direct_url " + kLib + "a-1.dist-info/direct_url.json: 1 distribution was installed from a file of the machine that built it"});
  CHECK(found({info + R"({"url": "https://x/a.whl"})"}).empty());
  CHECK(found({info + R"({"url": "file:///src", "dir_info": {"editable": true}})"}).empty());
  CHECK(found({"lib/pkgconfig/x.pc=prefix=/usr\nlibdir=/old/env/lib\n"}) == Lines{"w path_elsewhere lib/pkgconfig/x.pc: line 2 names '/old/env', where the environment came from"});
  CHECK(found({"pyvenv.cfg=home = /usr/bin\ncommand = /usr/bin/python3 -m venv /old/env\n"}).size() == 1);
}

TEST_CASE("absolute search paths of libraries are told by the folder that they look in") {
  const auto there = test::environment({{"ext", "1", {"ext/_c.so=1"}}}, {"lib/x.so=1"});
  const auto set = there.set();
  const auto path = [](const std::string& bytes) { return *tree::RelPath::parse(bytes); };
  CHECK(lines(check_library_paths(set, {{path(kLib + "ext/_c.so"), "$ORIGIN/../x:/usr/local/cuda-12.2/lib:/old/env/lib:/new/env/lib"}, {path("lib/x.so"), "/build/out:"}}, {"/old/env", "/new/env"})) ==
        Lines{"n library_path lib/x.so: the library looks for libraries in '/build/out', which does not come along",
              "w library_path " + kLib + "ext/_c.so: the library of 'ext 1' looks for libraries in '/old/env/lib', which the environment came from"});
}

TEST_CASE("relocating rewrites the closed list and the rows of RECORD, and nothing else") {
  auto there = test::environment({{"tool", "1", {"tool.py=/old/env", "/bin/tool=#!/old/env/bin/python3 -s\nmain()\n", "/bin/other=#!/else/bin/python\n"}}},
                                 {"bin/activate=VIRTUAL_ENV='/old/env'\nX=/old/env_2\n", "pyvenv.cfg=home = /usr/bin\ncommand = python -m venv /old/env\n"});
  for (const char* path : {"bin/activate", "pyvenv.cfg"})
    there.files[path] = std::string(path) == "pyvenv.cfg" ? "home = /usr/bin\ncommand = python -m venv /old/env\n" : "VIRTUAL_ENV='/old/env'\nX=/old/env_2\n";
  const auto set = there.set();
  const auto done = relocate(set, there.files, "/old/env", "/new/env");
  REQUIRE(done);
  Lines made;
  for (const auto& [path, text] : done->made) made.push_back(path.bytes());
  CHECK(made == Lines{"bin/activate", "bin/tool", kLib + "tool-1.dist-info/RECORD", "pyvenv.cfg"});
  CHECK(done->made.at(*tree::RelPath::parse("bin/tool")) == "#!/new/env/bin/python3 -s\nmain()\n");
  CHECK(done->made.at(*tree::RelPath::parse("bin/activate")) == "VIRTUAL_ENV='/new/env'\nX=/old/env_2\n");
  CHECK(done->made.at(*tree::RelPath::parse("pyvenv.cfg")) == "home = /usr/bin\ncommand = python -m venv /new/env\n");
  const std::string& record = done->made.at(*tree::RelPath::parse(kLib + "tool-1.dist-info/RECORD"));
  CHECK(record.find("../../../bin/tool," + render_record_hash(sha256(as_bytes("#!/new/env/bin/python3 -s\nmain()\n"))) + ",33\n") != std::string::npos);
  const tree::Entry* script = done->tree.find(*tree::RelPath::parse("bin/tool"));
  CHECK(script->file()->digest == content::digest_of(as_bytes("#!/new/env/bin/python3 -s\nmain()\n")));
  CHECK(relocate(set, there.files, "/old/env", "/old/env")->made.empty());
}

TEST_CASE("a script whose first line would be too long becomes a trampoline, and a path that shells cannot hold is refused") {
  auto there = test::environment({}, {"bin/tool=#!/old/bin/python\nmain()\n"});
  there.files["bin/tool"] = "#!/old/bin/python\nmain()\n";
  const std::string far = "/" + std::string(130, 'x');
  const auto done = relocate(there.set(), there.files, "/old", far);
  REQUIRE(done);
  CHECK(done->made.at(*tree::RelPath::parse("bin/tool")) == "#!/bin/sh\n'''exec' '" + far + "/bin/python' \"$0\" \"$@\"\n' '''\nmain()\n");
  const auto refused = relocate(there.set(), there.files, "/old", "/a'b");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "activate scripts cannot hold the path '/a'b': it has quotes or signs that shells read");
}

TEST_CASE("a rewritten file is a hard link of nothing any more") {
  auto there = test::environment({}, {"bin/a=1", "bin/b=1", "bin/c=1"});
  std::vector<tree::Entry> entries(there.tree.entries().begin(), there.tree.entries().end());
  for (tree::Entry& entry : entries)
    if (auto* file = std::get_if<tree::File>(&entry.body); file != nullptr && entry.path.parent().bytes() == "bin" && entry.path.name() != "c") file->link_group = 9;
  const auto linked = tree::Tree::from_unsorted(entries);
  REQUIRE(linked);
  const auto changed = with_texts(*linked, {{*tree::RelPath::parse("bin/a"), "other"}});
  REQUIRE(changed);
  for (const char* path : {"bin/a", "bin/b"}) CHECK(changed->find(*tree::RelPath::parse(path))->file()->link_group == 0);
}
