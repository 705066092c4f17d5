// SPDX-License-Identifier: MIT
#include "manifest/manifest.hpp"

#include "support/error_text.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

Manifest parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto manifest = parse("m.yaml", text, overrides);
  if (!manifest) FAIL(test::errors_text(manifest.error()));
  return *std::move(manifest);
}

std::string head(const std::string& rest) { return "version: 1\npath: /srv/v\nsource: a\n" + rest; }

}  // namespace

TEST_CASE("the shortest manifest has every default") {
  const Manifest m = parsed("version: 1\npath: /root/venv_sglang211\nsource: ct200\ntargets: [root@b300]\n");
  CHECK(m.file == "m.yaml");
  CHECK(m.name == "venv_sglang211");
  CHECK(m.source.host.name == "ct200");
  CHECK(m.source.host.host == "ct200");
  CHECK_FALSE(m.source.host.is_local);
  CHECK(m.source.path == "/root/venv_sglang211");
  CHECK(m.source.exclude.empty());
  CHECK(m.source.bytecode == tree::Bytecode::leave_out);
  REQUIRE(m.targets.size() == 1);
  CHECK(m.targets[0].name == "root@b300");
  CHECK(m.targets[0].user == "root");
  CHECK(m.targets[0].host == "b300");
  CHECK(m.targets[0].port == 0);
  CHECK(m.targets[0].path == "/root/venv_sglang211");
  CHECK_FALSE(m.targets[0].transport);
  CHECK(m.targets[0].where.line == 4);
  CHECK(m.targets[0].where.column == 11);
  CHECK(m.invariants.same_path);
  CHECK(m.invariants.interpreter == InterpreterRule::require);
  CHECK(m.invariants.python.empty());
  CHECK(m.invariants.atomic == Guarantee::atomic);
  CHECK(m.invariants.in_use == InUseRule::warn);
  CHECK(m.settings.owner == OwnerRule::agent);
  CHECK(m.settings.mtime == MtimeRule::preserve);
  CHECK(m.settings.xattrs);
  CHECK(m.settings.hardlinks);
  CHECK(m.settings.delete_limit.is_percent);
  CHECK(m.settings.delete_limit.value == 50);
  CHECK(m.settings.drift == DriftRule::ask);
  CHECK(m.settings.keep_generations == 2);
  CHECK(m.settings.hosts_at_once == 8);
  CHECK(m.settings.retry_for_seconds == 600);
  CHECK(m.settings.on_failure == FailureRule::carry_on);
  CHECK(m.settings.transport.kind == TransportKind::automatic);
  CHECK(m.compare_policy() == tree::ComparePolicy{});
}

TEST_CASE("every key has its effect") {
  const Manifest m = parsed(R"(
version: 1
name: analytics
source:
  host: ada@ct200:2022
  path: ~/venv
  exclude: ["*.log", "!keep.log"]
  bytecode: ship
targets:
  path: /srv/venv
  hosts:
    - web-01
    - {host: web-02, user: root, port: 22, path: /opt/venv, jump: bastion, identity: ~/.ssh/id, transport: openssh}
    - host: ct-200
      transport: {command: [pct, exec, "200", --]}
invariants:
  same_path: false
  interpreter: ignore
  python: 3.10
  atomic: required
  in_use: refuse
settings:
  owner: preserve
  mtime: strict
  xattrs: ignore
  hardlinks: ignore
  delete_limit: 1000
  drift: refuse
  keep_generations: 0
  hosts_at_once: 2
  retry_for: 90s
  bandwidth: 400Mbit/s
  on_failure: stop
  transport: openssh
)");
  CHECK(m.name == "analytics");
  CHECK(m.source.host.name == "ada@ct200:2022");
  CHECK(m.source.host.user == "ada");
  CHECK(m.source.host.port == 2022);
  CHECK(m.source.path == "~/venv");
  CHECK(m.source.exclude == std::vector<std::string>{"*.log", "!keep.log"});
  CHECK(m.source.bytecode == tree::Bytecode::ship);
  REQUIRE(m.targets.size() == 3);
  CHECK(m.targets[0].path == "/srv/venv");
  CHECK(m.targets[1].name == "root@web-02:22");
  CHECK(m.targets[1].path == "/opt/venv");
  CHECK(m.targets[1].jump == "bastion");
  CHECK(m.targets[1].identity == "~/.ssh/id");
  REQUIRE(m.targets[1].transport);
  CHECK(m.targets[1].transport->kind == TransportKind::openssh);
  REQUIRE(m.targets[2].transport);
  CHECK(m.targets[2].transport->kind == TransportKind::command);
  CHECK(m.targets[2].transport->command == std::vector<std::string>{"pct", "exec", "200", "--"});
  CHECK_FALSE(m.invariants.same_path);
  CHECK(m.invariants.interpreter == InterpreterRule::ignore);
  CHECK(m.invariants.python == "3.10");  // text, not the number 3.1
  CHECK(m.invariants.in_use == InUseRule::refuse);
  CHECK_FALSE(m.settings.delete_limit.is_percent);
  CHECK(m.settings.delete_limit.value == 1000);
  CHECK(m.settings.drift == DriftRule::refuse);
  CHECK(m.settings.keep_generations == 0);
  CHECK(m.settings.hosts_at_once == 2);
  CHECK(m.settings.retry_for_seconds == 90);
  CHECK(m.settings.bandwidth == 50'000'000);
  CHECK(m.settings.on_failure == FailureRule::stop);
  CHECK(m.settings.transport.kind == TransportKind::openssh);
  CHECK(m.compare_policy() ==
        tree::ComparePolicy{.owner = true, .mtime = true, .xattrs = false, .hardlinks = false, .source_mtimes = true});
}

TEST_CASE("a source can be a path of this machine, or of a host, beside the manifest's path") {
  const Manifest local = parsed("version: 1\npath: /srv/v\nsource: /srv/v/\ntargets: [b]\n");
  CHECK(local.source.host.is_local);
  CHECK(local.source.path == "/srv/v");
  const Manifest remote = parsed("version: 1\nsource: ct200:22:/srv/v\ntargets: ['b:/srv/v']\n");
  CHECK(remote.source.host.port == 22);
  CHECK(remote.source.path == "/srv/v");
  CHECK(remote.name == "v");
  const Manifest long_form = parsed("version: 1\npath: /srv/v\nsource: {exclude: [x]}\ntargets: [b]\n");
  CHECK(long_form.source.host.is_local);
  CHECK(long_form.source.path == "/srv/v");
}

TEST_CASE("a long source takes a long host, which may hold the path") {
  const Manifest m = parsed("version: 1\nsource: {host: {host: ct200, jump: gate, path: /srv/v}}\ntargets: ['b:/srv/v']\n");
  CHECK(m.source.host.jump == "gate");
  CHECK(m.source.path == "/srv/v");
}

TEST_CASE("anchors, merges and x- keys work") {
  const Manifest m = parsed(R"(
x-defaults: &d {user: root, port: 2222, jump: gate}
x-more: &m {user: ada, identity: /id}
version: 1
path: &path /srv/v
source: {path: *path}
targets:
  - {<<: *d, host: a}
  - {<<: [*d, *m], host: b, port: 22}
)");
  CHECK(m.targets.at(0).name == "root@a:2222");
  CHECK(m.targets.at(0).jump == "gate");
  CHECK(m.targets.at(1).name == "root@b:22");  // own key over merged ones, the earlier merge over the later
  CHECK(m.targets.at(1).identity == "/id");
  CHECK(m.source.path == "/srv/v");
}

TEST_CASE("two targets on one host are told apart by their paths") {
  const Manifest m = parsed("version: 1\nsource: ct200:/srv/v\ninvariants: {same_path: false}\ntargets: ['local:/srv/a', 'local:/srv/b', c:/srv/v]\n");
  CHECK(m.targets[0].name == "local:/srv/a");
  CHECK(m.targets[1].name == "local:/srv/b");
  CHECK(m.targets[2].name == "c");
}

TEST_CASE("a path below ~ is not compared with one that is absolute, because only the host knows") {
  CHECK(parsed("version: 1\nsource: a:~/v\ntargets: ['b:/root/v']\n").targets[0].path == "/root/v");
}

TEST_CASE("an override replaces one value, creates what is absent, and reads YAML") {
  const Manifest m = parsed(head("targets: [b]\nsettings: {drift: ask}\n"),
                            {"settings.drift=replace", "settings.mtime=strict", "invariants.python=3.10", "targets=[c, {host: d, port: 5}]",
                             "name='a=b'", "settings.keep_generations=4"});
  CHECK(m.settings.drift == DriftRule::replace);
  CHECK(m.settings.mtime == MtimeRule::strict);
  CHECK(m.settings.keep_generations == 4);
  CHECK(m.invariants.python == "3.10");
  CHECK(m.targets.at(1).name == "d:5");
  CHECK(m.name == "a=b");
}

TEST_CASE("of two overrides of one key the last one counts") {
  CHECK(parsed(head("targets: [b]\n"), {"name=x", "name=y"}).name == "y");
}

TEST_CASE("an override mends a value that the file has wrong") {
  CHECK(parsed(head("targets: [b]\nsettings: {drift: maybe}\n"), {"settings.drift=refuse"}).settings.drift == DriftRule::refuse);
}

TEST_CASE("a byte order mark and Windows line ends do not matter") {
  CHECK(parsed("\xef\xbb\xbfversion: 1\r\npath: /srv/v\r\nsource: a\r\ntargets: [b]\r\n").name == "v");
}

TEST_CASE("quotes make a text of anything, and a number or a flag of nothing") {
  CHECK(parsed(head("name: \"true\"\ntargets: [b]\n")).name == "true");
  CHECK_FALSE(parse("m.yaml", head("targets: [b]\nsettings: {keep_generations: '3'}\n"), {}));
  CHECK_FALSE(parse("m.yaml", head("targets: [b]\ninvariants: {same_path: 'true'}\n"), {}));
  CHECK_FALSE(parse("m.yaml", "version: '1'\npath: /srv/v\nsource: a\ntargets: [b]\n", {}));
}
