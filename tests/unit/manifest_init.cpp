// SPDX-License-Identifier: MIT
#include "manifest/manifest.hpp"

#include "support/error_text.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

std::string init(const std::string& source, const std::vector<std::string>& targets) {
  const std::string text = render_init(parse_place(source).value(), targets);
  const auto manifest = parse("envsync.yaml", text, {});
  if (!manifest) FAIL(text << test::errors_text(manifest.error()));
  return text;
}

}  // namespace

TEST_CASE("init writes one path for source and targets where it is the same") {
  CHECK(init("ct200:/root/venv", {"root@b300"}) == R"(# yaml-language-server: $schema=.envsync.schema.json
version: 1
path: /root/venv
source: ct200
targets: [root@b300]
)");
  CHECK(init("/srv/v", {"b300", "c:2222:/srv/v"}) == R"(# yaml-language-server: $schema=.envsync.schema.json
version: 1
path: /srv/v
source: local
targets: [b300, c:2222:/srv/v]
)");
}

TEST_CASE("init writes the paths with source and targets where they differ, and allows it") {
  CHECK(init("/srv/a", {"local:/srv/b"}) == R"(# yaml-language-server: $schema=.envsync.schema.json
version: 1
source: /srv/a
targets: [local:/srv/b]
invariants:
  same_path: false
)");
  CHECK(init("ct200:/srv/a", {"local:/srv/b"}).find("source: ct200:/srv/a\n") != std::string::npos);
  CHECK(init("ct200:/srv/a", {"b300", "local:/srv/b"}) == R"(# yaml-language-server: $schema=.envsync.schema.json
version: 1
path: /srv/a
source: ct200
targets: [b300, local:/srv/b]
invariants:
  same_path: false
)");
}

TEST_CASE("init quotes what YAML would read as something else") {
  const std::string text = init("[::1]:/srv/it's [new], #1", {"7", "10.0.0.7"});
  CHECK(text.find("path: '/srv/it''s [new], #1'\n") != std::string::npos);
  CHECK(text.find("source: '[::1]'\n") != std::string::npos);
  CHECK(text.find("targets: ['7', '10.0.0.7']\n") != std::string::npos);
}

TEST_CASE("a folder of this machine as a target is written as local") {
  CHECK(init("/srv/a", {"/srv/b/"}).find("targets: [local:/srv/b]\n") != std::string::npos);
}
