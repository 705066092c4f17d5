// SPDX-License-Identifier: MIT
#include "python/scripts.hpp"

#include "python/sha256.hpp"
#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

constexpr std::string_view kTarget = "/srv/env/bin/python";
constexpr std::string_view kBody = "import sys\nsys.exit(main())\n";

/// The script with the target's interpreter, its body left away; "stays" where it is not touched.
std::string started(std::string_view head, std::string_view interpreter = kTarget) {
  const auto script = with_interpreter(std::string(head) + std::string(kBody), interpreter);
  if (!script) return "stays";
  REQUIRE(script->ends_with(kBody));
  return script->substr(0, script->size() - kBody.size());
}

std::string sum(std::string_view text) { return to_hex(sha256(as_bytes(text))); }

const tree::RelPath& path(const std::string& bytes) {
  static std::map<std::string, tree::RelPath> kept;
  return kept.emplace(bytes, *tree::RelPath::parse(bytes)).first->second;
}

}  // namespace

TEST_CASE("sha256 gives the sums that the standard gives") {
  CHECK(sum("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sum(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sum(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(sum(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("every form of a launcher is pointed to the target's interpreter") {
  CHECK(started("#!/root/overlay/bin/python3.12\n") == "#!/srv/env/bin/python\n");
  CHECK(started("#! /root/overlay/bin/python3 -I -E\n") == "#!/srv/env/bin/python -I -E\n");
  CHECK(started("#!python\n") == "#!/srv/env/bin/python\n");
  CHECK(started("#!pythonw\r\n") == "#!/srv/env/bin/python\n");
  CHECK(started("#!/bin/sh\n'''exec' \"/a path/bin/python\" \"$0\" \"$@\"\n' '''\n") == "#!/srv/env/bin/python\n");
  CHECK(started("#!/bin/sh\n'''exec' /long/bin/python3.12 \"$0\" \"$@\"\n' '''\n") == "#!/srv/env/bin/python\n");
  CHECK(started("#!/bin/sh\n'''exec' '/a path/bin/python' -I \"$0\" \"$@\"\n' '''\n") == "#!/srv/env/bin/python -I\n");
}

TEST_CASE("what starts no environment stays as it is") {
  for (const std::string_view head : {"", "import os\n", "#!/bin/sh\n", "#!/bin/bash\n", "#!/usr/bin/env python3\n", "#!/usr/bin/python3\n", "#!/usr/local/bin/python3.11 -s\n",
                                      "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n", "#!/bin/sh\nexec python \"$0\"\n' '''\n",
                                      "#!/bin/sh\n'''exec' /x/bin/python \"$0\" \"$@\"\n", "#!/bin/sh\n'''exec' '/x/bin/python \"$0\" \"$@\"\n' '''\n", "\x7f" "ELF"})
    CHECK_MESSAGE(started(head) == "stays", head);
}

TEST_CASE("an interpreter that the kernel would not read from one line goes through sh") {
  CHECK(started("#!python\n", "/a path/bin/python") == "#!/bin/sh\n'''exec' '/a path/bin/python' \"$0\" \"$@\"\n' '''\n");
  CHECK(launcher_lines("/it's $here/bin/python") == "#!/bin/sh\n'''exec' \"/it's \\$here/bin/python\" \"$0\" \"$@\"\n' '''\n");
  const std::string fits = "/" + std::string(127 - 4 - 11, 'd') + "/bin/python";
  CHECK(launcher_lines(fits) == "#!" + fits + "\n");
  CHECK(launcher_lines(fits).size() == 127);
  CHECK(launcher_lines(fits, "-I").starts_with("#!/bin/sh\n'''exec' '/ddd"));
  // What is written is read again.
  CHECK(started(launcher_lines("/it's $here/bin/python", "-I")) == "#!/srv/env/bin/python -I\n");
}

TEST_CASE("a generated script calls what its entry point names") {
  CHECK(generated_script({"run", "pkg.gui", "App.run"}, kTarget) ==
        "#!/srv/env/bin/python\n# -*- coding: utf-8 -*-\nimport sys\nfrom pkg.gui import App\nif __name__ == \"__main__\":\n    sys.exit(App.run())\n");
}

TEST_CASE("scripts that came start the target, their RECORD says so, and nothing of it is taken from the origin") {
  const std::string script = "#!/root/overlay/bin/python\n" + std::string(kBody), other = "#!/bin/sh\necho other\n";
  const std::string entry_points = "[console_scripts]\ngone = torch.gone:main\n";
  const auto origin = test::environment({{"torch", "2", {"torch.py=2", "/bin/torchrun=" + script, "/bin/other=" + other, "!/bin/gone=g"}, {}, {}, entry_points}});
  const auto base = test::environment({{"torch", "1", {"torch.py=1", "/bin/torchrun=1"}}});
  OverlayOptions options;
  options.packages = {"torch"};
  const DistributionSet below = base.set(), above = origin.set();
  auto laid = lay_over(below, above, options, MarkerEnvironment::for_python("3.12"));
  REQUIRE(laid.has_value());
  CHECK(laid->findings.empty());
  CHECK(wanted_scripts(*laid) == std::vector<tree::RelPath>{path("bin/other"), path("bin/torchrun")});
  REQUIRE(finish_scripts(*laid, origin.files, "/srv/env").has_value());

  const std::string record = "lib/python3.12/site-packages/torch-2.dist-info/RECORD";
  const std::string run = laid->made.at(path("bin/torchrun")), gone = laid->made.at(path("bin/gone"));
  CHECK(run == "#!/srv/env/bin/python\n" + std::string(kBody));
  CHECK(gone.starts_with("#!/srv/env/bin/python\n"));
  CHECK(laid->made.size() == 3);
  CHECK(laid->desired.find(path("bin/gone"))->mode == 0755);
  for (const auto& [made, text] : laid->made) CHECK(laid->desired.find(made)->file()->content() == tree::File{text.size(), content::digest_of(as_bytes(text)), 0}.content());
  std::vector<std::string> taken;
  for (const TakenPath& one : laid->taken) taken.push_back(one.path.bytes().substr(one.path.bytes().rfind('/') + 1));
  CHECK(taken == std::vector<std::string>{"other", "METADATA", "entry_points.txt", "torch.py"});
  const SmallFiles after = small_files_after(*laid, base.files, origin.files);
  const std::string& text = after.at(record);
  CHECK(text.find(fmt::format("../../../bin/torchrun,{},{}\n", render_record_hash(sha256(as_bytes(run))), run.size())) != std::string::npos);
  CHECK(text.find(fmt::format("../../../bin/gone,{},{}\n", render_record_hash(sha256(as_bytes(gone))), gone.size())) != std::string::npos);
  CHECK(text.find("../../../bin/other," + render_record_hash(test::sum_of(other))) != std::string::npos);
}
