// SPDX-License-Identifier: MIT
#include "python/metadata.hpp"

#include <doctest/doctest.h>

using namespace envsync::python;

TEST_CASE("METADATA gives name, version and requirements, and its description nothing") {
  const Metadata read = parse_metadata(
      "Metadata-Version: 2.4\r\nName: torch\r\nVersion: 2.11.0\nRequires-Python: >=3.10\nRequires-Dist: filelock\nRequires-Dist: sympy>=1.13.3;\n"
      "        python_version >= \"3.9\"\nProvides-Extra: optree\nLicense: BSD\n        Name: no header\nrequires-dist:   jinja2  \nno header\n\n"
      "Name: described\nRequires-Dist: described\n");
  CHECK(read.name == "torch");
  CHECK(read.version == "2.11.0");
  CHECK(read.requires_python == ">=3.10");
  CHECK(read.requires_dist == std::vector<std::string>{"filelock", "sympy>=1.13.3;        python_version >= \"3.9\"", "jinja2"});
  CHECK(read.provides_extra == std::vector<std::string>{"optree"});
  CHECK(parse_metadata("").name.empty());
}

TEST_CASE("scripts are what the two groups of entry_points.txt name") {
  CHECK(parse_scripts("[console_scripts]\ntorchrun = torch.distributed.run:main\n# f2py = x:y\n  pip3.12=pip._internal.cli.main:main [extra]\nbroken = nothing\n\n"
                      "[pytest11]\nanyio = anyio.pytest_plugin:p\n\n[gui_scripts]\r\nwin = pkg.gui:App.run\r\n") ==
        std::vector<EntryPoint>{{"torchrun", "torch.distributed.run", "main"}, {"pip3.12", "pip._internal.cli.main", "main"}, {"win", "pkg.gui", "App.run"}});
  CHECK(parse_scripts("torchrun = torch.distributed.run:main\n").empty());
}

TEST_CASE("an editable install is one whose direct_url.json says so") {
  CHECK(is_editable("{\"dir_info\": {\"editable\": true}, \"url\": \"file:///src/x\"}"));
  CHECK(is_editable("{\"dir_info\":{\"editable\" :\ttrue}}"));
  CHECK_FALSE(is_editable("{\"dir_info\": {\"editable\": false}, \"url\": \"file:///src/x\"}"));
  CHECK_FALSE(is_editable("{\"url\": \"file:///\\\"editable\\\": true\"}"));
  CHECK_FALSE(is_editable("{\"url\": \"file:///src/x\"}"));
}
