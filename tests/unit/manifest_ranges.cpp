// SPDX-License-Identifier: MIT
// Targets that are not written one by one: ranges of names, and lists of hosts in a file.
#include "manifest/manifest.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

using Names = std::vector<std::string>;

Names expanded(const std::string& text) { return expand_ranges(text).value(); }
std::string why_not(const std::string& text) {
  const auto names = expand_ranges(text);
  return names ? "" : names.error().what;
}

tl::expected<Manifest, Errors> parsed(const std::string& targets, const std::string& file_text = "") {
  return parse("fleet.yaml", "version: 1\npath: /srv/venv\nsource: ct200\n" + targets, {}, [=](const std::string& name) -> Result<std::string> {
    if (name == "absent") return Error(ErrorCode::io, "cannot open 'absent'");
    return file_text;
  });
}
Names names(const tl::expected<Manifest, Errors>& manifest) {
  Names all;
  if (!manifest) all.push_back(manifest.error()[0].what);
  else for (const Host& host : manifest->targets) all.push_back(host.name);
  return all;
}

}  // namespace

TEST_CASE("a range stands for its numbers, as wide as its first where that begins with 0") {
  CHECK(expanded("gpu-[08-11]") == Names{"gpu-08", "gpu-09", "gpu-10", "gpu-11"});
  CHECK(expanded("gpu-[8-11]") == Names{"gpu-8", "gpu-9", "gpu-10", "gpu-11"});
  CHECK(expanded("root@gpu-[1-2,7].lab:2222:/srv/venv") == Names{"root@gpu-1.lab:2222:/srv/venv", "root@gpu-2.lab:2222:/srv/venv", "root@gpu-7.lab:2222:/srv/venv"});
  CHECK(expanded("r[1-2]n[01-02]") == Names{"r1n01", "r1n02", "r2n01", "r2n02"});
  CHECK(expanded("r[1-2][5-6]") == Names{"r15", "r16", "r25", "r26"});
}

TEST_CASE("an address, a path and a plain name are no ranges") {
  for (const char* text : {"web-01", "[::1]:22", "ada@[fe80::1%eth0]", "web:/srv/a[1-2]", "local", "local:/srv/[x]"}) CHECK(expanded(text) == Names{text});
}

TEST_CASE("what is no range is refused with the range that was meant") {
  CHECK(why_not("gpu-[01-08") == "the range '[01-08' has no end");
  CHECK(why_not("gpu-[a-b]") == "the range '[a-b]' holds something that is no number");
  CHECK(why_not("gpu-[]") == "the range '[]' holds something that is no number");
  CHECK(why_not("gpu-[1-]") == "the range '[1-]' holds something that is no number");
  CHECK(why_not("gpu-[5-1]") == "the range '[5-1]' ends before it begins");
  CHECK(why_not("gpu-[01-100]") == "the range '[01-100]' has bounds of different width");
  CHECK(why_not("gpu-[1-999999999]") == "the range '[1-999999999]' names more than 10000 hosts");
  CHECK_FALSE(why_not("a[1-200]b[1-200]").empty());
  CHECK(parse_host("gpu-[1-2]").error().what == "'gpu-[1-2]' names several hosts where one is wanted");
}

TEST_CASE("targets take ranges in both of their forms, the keys of a host hold for each") {
  CHECK(names(parsed("targets: ['gpu-[01-02]', web]\n")) == Names{"gpu-01", "gpu-02", "web"});
  const auto manifest = parsed("targets:\n  - gpu-[1-2]:2222\n  - {host: 'ct[5-6]', user: root, sudo: true}\n");
  CHECK(names(manifest) == Names{"gpu-1:2222", "gpu-2:2222", "root@ct5", "root@ct6"});
  CHECK((manifest->targets[3].sudo && manifest->targets[3].user == "root" && !manifest->targets[0].sudo));
  CHECK(names(parsed("targets: ['gpu-[1-2]', gpu-2]\n"))[0].find("gpu-2") != std::string::npos);
  CHECK(names(parsed("targets: ['gpu-[2-1]']\n")) == Names{"the range '[2-1]' ends before it begins"});
  CHECK(names(parsed("targets: ['-gpu-[1-3]']\n")).size() == 1);
}

TEST_CASE("hosts come from a file, one a line, beside those that the manifest names") {
  const std::string text = "# the fleet\nroot@gpu-1\r\n\n  gpu-[2-3]   # spare\n#gpu-9\nlast";
  CHECK(names(parsed("targets: {hosts_from: fleet.txt}\n", text)) == Names{"root@gpu-1", "gpu-2", "gpu-3", "last"});
  CHECK(names(parsed("targets: {hosts: [web], hosts_from: '-'}\n", "gpu-1\n")) == Names{"web", "gpu-1"});
}

TEST_CASE("an error of a host in a file is shown at its line there") {
  const auto manifest = parsed("targets: {hosts_from: fleet.txt}\n", "good\n  bad host\n");
  REQUIRE_FALSE(manifest);
  REQUIRE(manifest.error()[0].where);
  CHECK((manifest.error()[0].where->file == "fleet.txt" && manifest.error()[0].where->line == 2 && manifest.error()[0].where->column == 3));
  CHECK(manifest.error()[0].where->line_text == "  bad host");
}

TEST_CASE("a file without hosts, one that cannot be read, and targets without hosts are errors") {
  CHECK(names(parsed("targets: {hosts_from: fleet.txt}\n", "# nobody\n")) == Names{"'fleet.txt' names no host"});
  CHECK(names(parsed("targets: {hosts_from: absent}\n"))[0].find("'hosts_from' cannot be read: 'absent'") == 0);
  CHECK(names(parsed("targets: {path: /x/y}\n")) == Names{"'hosts' or 'hosts_from' is missing in 'targets'"});
  CHECK_FALSE(parse("m", "version: 1\npath: /srv/venv\nsource: ct200\ntargets: {hosts_from: f}\n", {}));
}
