// SPDX-License-Identifier: MIT
// Whole messages, held word by word: a change of one is a change that a user sees.
#include "manifest/manifest.hpp"

#include "support/error_text.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

std::string messages(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto manifest = parse("fleet.yaml", text, overrides);
  REQUIRE_FALSE(manifest.has_value());
  for (const Error& error : manifest.error()) {
    CHECK(error.code == ErrorCode::manifest_invalid);
    CHECK(error.where);
  }
  return test::errors_text(manifest.error());
}

std::string head(const std::string& rest) { return "version: 1\npath: /srv/v\nsource: a\n" + rest; }

}  // namespace

TEST_CASE("a rate needs its unit") {
  for (const char* wrong : {"50", "fast", "0MB/s", "5 MB/s", "5mb/s", "18446744073709551615GB/s"})
    CHECK(messages(head(std::string("targets: [b]\nsettings: {bandwidth: ") + wrong + "}\n")).starts_with("'bandwidth' takes a rate with its unit such as 50MB/s or 400Mbit/s, or unlimited, not '"));
}

TEST_CASE("a time needs its unit") {
  CHECK(messages(head("targets: [b]\nsettings: {retry_for: 10}\n")).starts_with("'retry_for' takes a time with its unit such as 30s, 10m or 2h, at most 24h, not '10'\n"));
  CHECK(messages(head("targets: [b]\nsettings: {retry_for: 25h}\n")).starts_with("'retry_for' takes a time"));
  CHECK(messages(head("targets: [b]\nsettings: {retry_for: m}\n")).starts_with("'retry_for' takes a time"));
  CHECK(messages(head("targets: [b]\nsettings: {retry_for: 18446744073709551615s}\n")).starts_with("'retry_for' takes a time"));
}

TEST_CASE("an unknown key names the keys allowed and the nearest one") {
  CHECK(messages(head("targets: [b]\nsetings: {}\n")) == R"(unknown key 'setings' in the manifest
 --> fleet.yaml:5:1
 | setings: {}
 | ^^^^^^^
= note: keys allowed here: accept, invariants, name, overlays, path, settings, source, targets, version
hint: a key named 'settings' exists
)");
}

TEST_CASE("an unknown key that is near one not built yet says so") {
  CHECK(messages(head("targets: [b]\nbefor: prod/\n")) == R"(unknown key 'befor' in the manifest
 --> fleet.yaml:5:1
 | befor: prod/
 | ^^^^^
= note: keys allowed here: accept, invariants, name, overlays, path, settings, source, targets, version
hint: a key named 'before' exists, which is not built yet in this version
)");
}

TEST_CASE("a key in the wrong place names the right one") {
  CHECK(messages(head("targets: [b]\ndrift: ask\n")).ends_with("hint: 'drift' is a key of 'settings'\n"));
}

TEST_CASE("all errors come at once and in the order of the file") {
  CHECK(messages(R"(version: 2
path: venv
source: -oProxyCommand=x
targets: [b:0, b:foo]
settings: {drift: rplace, delete_limit: 200%}
invariants:
  same_path: yes
  python: three
)") == R"('version' takes 1, the only one that this envsync reads, not '2'
 --> fleet.yaml:1:10
 | version: 2
 |          ^

'venv' is no absolute path
 --> fleet.yaml:2:7
 | path: venv
 |       ^^^^
hint: begin the path with / or ~/

the host name '-oProxyCommand=x' begins with '-'
 --> fleet.yaml:3:9
 | source: -oProxyCommand=x
 |         ^^^^^^^^^^^^^^^^

'0' is no port: ports go from 1 to 65535
 --> fleet.yaml:4:11
 | targets: [b:0, b:foo]
 |           ^^^

'b:foo': what follows the colon is neither a port nor a path that begins with / or ~/
 --> fleet.yaml:4:16
 | targets: [b:0, b:foo]
 |                ^^^^^
hint: write 'b:~/foo' for a folder of the remote home

'drift' takes ask, replace or refuse, not 'rplace'
 --> fleet.yaml:5:19
 | settings: {drift: rplace, delete_limit: 200%}
 |                   ^^^^^^
hint: a value 'replace' exists

'delete_limit' takes a share of the paths such as 50%, or a count of paths, not '200%'
 --> fleet.yaml:5:41
 | settings: {drift: rplace, delete_limit: 200%}
 |                                         ^^^^

'same_path' takes true or false, not 'yes'
 --> fleet.yaml:7:14
 |   same_path: yes
 |              ^^^

'python' takes a version such as 3.11 or 3.11.4, not 'three'
 --> fleet.yaml:8:11
 |   python: three
 |           ^^^^^
)");
}

TEST_CASE("what the design has and this version has not is an error that says so") {
  for (const char* key : {"checks: []", "before: [x]", "after: [x]"}) {
    CHECK(messages(head("targets: [b]\n") + key + "\n").find("is not built yet in this version") != std::string::npos);
  }
  for (const char* invariant : {"checks_fallback: refuse", "atomic: best", "atomic: brief-gap"}) {
    CHECK(messages(head(fmt::format("targets: [b]\ninvariants: {{{}}}\n", invariant))).find("is not built yet in this version") != std::string::npos);
  }
  for (const char* setting : {"drift: keep"}) {
    CHECK(messages(head(fmt::format("targets: [b]\nsettings: {{{}}}\n", setting))).find("is not built yet in this version") != std::string::npos);
  }
  CHECK(messages(head("targets: [b]\nsettings: {drift: keep}\n")) == R"(the value 'keep' of 'drift' is not built yet in this version
 --> fleet.yaml:5:19
 | settings: {drift: keep}
 |                   ^^^^
= note: values allowed here: ask, replace, refuse
)");
}

TEST_CASE("a range without quotes is explained by the bracket") {
  CHECK(messages(head("targets: [gpu-[01-08], b]\n")) == R"(a list begins within a word
 --> fleet.yaml:4:15
 | targets: [gpu-[01-08], b]
 |               ^
hint: quote 'gpu-[01-08]': a [ starts a list here
)");
}

TEST_CASE("paths that no environment has are refused") {
  const auto of = [](const std::string& path) {
    const std::string text = messages("version: 1\npath: " + path + "\nsource: a\ntargets: [b]\n");
    return text.substr(0, text.find('\n'));
  };
  CHECK(of("/") == "'/' is the whole machine, not an environment");
  CHECK(of("///") == "'/' is the whole machine, not an environment");
  CHECK(of("~/") == "'~/' is a home folder, not an environment");
  CHECK(of("/root") == "'/root' is a home folder, not an environment");
  CHECK(of("/home/ada/") == "'/home/ada/' is a home folder, not an environment");
  CHECK(of("/home") == "'/home' is a home folder, not an environment");
  CHECK(of("~bob/venv") == "'~bob' means the home of another user, which is not looked up");
  CHECK(of("venv") == "'venv' is no absolute path");
  CHECK(of("./venv") == "'./venv' is no absolute path");
  CHECK(of("/srv/../etc") == "'/srv/../etc' goes through '..'");
  CHECK(of("/srv/./v") == "'/srv/./v' goes through '.'");
  CHECK(of("/srv/.envsync/v") == "'/srv/.envsync/v' lies in envsync's own state");
  CHECK(of("''") == "'path' is empty");
  CHECK(of("") == "'path' has no value");
  CHECK(of("~") == "'path' has no value");  // YAML's null
  CHECK(of("[/srv]") == "'path' takes a text, not a list");
}

TEST_CASE("a relative source is refused in a manifest") {
  CHECK(messages("version: 1\npath: /srv/v\nsource: envs/v\ntargets: [b]\n").starts_with("'envs/v' is no absolute path\n --> fleet.yaml:3:9\n"));
}

TEST_CASE("what is missing is named with what to write") {
  CHECK(messages("name: x\n") == R"('version' is missing
 --> fleet.yaml:1:1
 | name: x
 | ^^^^
hint: begin the manifest with 'version: 1'

'source' is missing
 --> fleet.yaml:1:1
 | name: x
 | ^^^^
hint: name where the environment is: 'source: HOST', 'HOST:PATH' or 'PATH'

'targets' is missing
 --> fleet.yaml:1:1
 | name: x
 | ^^^^
hint: name where the environment goes: 'targets: [HOST]'
)");
  CHECK(messages("version: 1\nsource: a\ntargets: [b, 'c:/srv/v']\n") == R"(the source 'a' has no path
 --> fleet.yaml:2:9
 | source: a
 |         ^
hint: add a key 'path' to the manifest

the target 'b' has no path
 --> fleet.yaml:3:11
 | targets: [b, 'c:/srv/v']
 |           ^
hint: add a key 'path' to the manifest
)");
}

TEST_CASE("a path that was refused is not missed a second time") {
  CHECK(messages("version: 1\npath: venv\nsource: a\ntargets: [b]\n") == R"('venv' is no absolute path
 --> fleet.yaml:2:7
 | path: venv
 |       ^^^^
hint: begin the path with / or ~/
)");
}

TEST_CASE("contradictions are shown where the second half stands") {
  CHECK(messages("version: 1\nsource: /srv/a\ntargets: ['local:/srv/b']\n") == R"(the path '/srv/b' of the target 'local' is not the source's
 --> fleet.yaml:3:11
 | targets: ['local:/srv/b']
 |           ^^^^^^^^^^^^^^
= note: the source's is '/srv/a', and 'same_path' is true
hint: set 'relocate: true' in 'invariants', so that its scripts are rewritten, or 'same_path: false', if it works at another path as it is
)");
  CHECK(messages(head("targets: [b, root@b, b]\n")) == R"(the target 'b' stands here twice with the path '/srv/v'
 --> fleet.yaml:4:22
 | targets: [b, root@b, b]
 |                      ^
= note: the first is in line 4
)");
  CHECK(messages("version: 1\npath: /srv/v\nsource: local\ntargets: [local]\n") == R"(the target 'local' is the source itself
 --> fleet.yaml:4:11
 | targets: [local]
 |           ^^^^^
hint: give the target another path, such as 'local:/srv/v-copy'
)");
  CHECK(messages(head("targets: [{host: b:22, port: 23}]\n")).starts_with("'port' contradicts what 'host' says\n --> fleet.yaml:4:30\n"));
  CHECK(messages("version: 1\nsource: {host: a:/srv/v, path: /srv/w}\ntargets: ['b:/srv/v']\n").starts_with("'path' contradicts what 'host' says\n"));
  CHECK(messages(head("targets: [{host: local, port: 22}]\n")).starts_with("'local' is this machine and takes no 'port'\n"));
}

TEST_CASE("wrong types say what is taken and what is there") {
  CHECK(messages(head("targets: b300\n")) == R"('targets' takes a list of hosts, not 'b300'
 --> fleet.yaml:4:10
 | targets: b300
 |          ^^^^
hint: write [b300]
)");
  CHECK(messages(head("targets: []\n")).starts_with("'targets' names no host\n"));
  CHECK(messages(head("targets: [[b]]\n")).starts_with("'targets' takes a text, not a list\n"));
  CHECK(messages(head("targets: [b]\nsettings: 3\n")).starts_with("'settings' takes a map of keys, not '3'\n"));
  CHECK(messages(head("targets: [b]\nsettings:\n")).starts_with("'settings' takes a map of keys, not nothing\n --> fleet.yaml:5:1\n"));
  CHECK(messages(head("targets: [b]\nsettings: {keep_generations: 2.5}\n")).starts_with("'keep_generations' takes a number from 0 to 1000, not '2.5'\n"));
  CHECK(messages(head("targets: [b]\nsettings: {hosts_at_once: 0}\n")).starts_with("'hosts_at_once' takes a number from 1 to 256, not '0'\n"));
  CHECK(messages(head("targets: [b]\nsettings: {drift: off}\n")).starts_with("'drift' takes ask, replace or refuse, not 'off'\n"));
  CHECK(messages(head("targets: [b]\nsettings: {transport: {command: []}}\n")).starts_with("'transport' takes auto, libssh, openssh or {command: [program, argument...]}\n"));
  CHECK(messages("version: 1\npath: /srv/v\nsource: {exclude: '*.log'}\ntargets: [b]\n").starts_with("'exclude' takes a list of patterns, not '*.log'\n"));
  CHECK(messages(head("targets: [b]\nname: a/b\n")).starts_with("'name' takes a word of at most 100 bytes without slashes, not 'a/b'\n"));
  CHECK(messages(head("targets: [b]\nname: \"a\\u0001b\"\n")).starts_with("'name' holds a control character\n"));
}

TEST_CASE("a space after the colon of a place is found") {
  CHECK(messages(head("targets: [local: /srv/b]\n")) == R"(unknown key 'local' in a host
 --> fleet.yaml:4:11
 | targets: [local: /srv/b]
 |           ^^^^^
= note: keys allowed here: gpu, host, identity, jump, path, port, sudo, transport, user
hint: write 'local:/srv/b' without a space
)");
}

TEST_CASE("an error of an override shows the override") {
  CHECK(messages(head("targets: [b]\n"), {"settings.drift=of"}) == R"('drift' takes ask, replace or refuse, not 'of'
 --> --set:1:16
 | settings.drift=of
 |                ^^
)");
  CHECK(messages(head("targets: [b]\n"), {"setings.drift=ask"}).starts_with("unknown key 'setings' in the manifest\n --> --set:1:1\n"));
  CHECK(messages(head("targets: [b]\n"), {"drift"}).starts_with("'drift' is no key=value\n"));
  CHECK(messages(head("targets: [b]\n"), {"settings..drift=ask"}).starts_with("'settings..drift=ask' is no key=value\n"));
  CHECK(messages(head("targets: [b]\n"), {"=x"}).starts_with("'=x' is no key=value\n"));
  CHECK(messages(head("targets: [b]\n"), {"name="}).starts_with("'name' has no value\n --> --set:1:1\n"));
  CHECK(messages(head("targets: [b]\n"), {"name=[a"}).starts_with("a list that begins with [ is not closed, or lacks a comma\n --> --set:"));
  CHECK(messages(head("targets: [b]\n"), {"source.bytecode=ship"}) == R"('source' is 'a' in the manifest, so that no key in it can be set
 --> --set:1:1
 | source.bytecode=ship
 | ^^^^^^
hint: set all of 'source'
)");
}

TEST_CASE("errors of the file come before those of overrides") {
  const std::string text = messages(head("targets: [b:0]\n"), {"settings.drift=of"});
  CHECK(text.find("fleet.yaml:4") < text.find("--set:1"));
}
