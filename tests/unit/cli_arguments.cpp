// SPDX-License-Identifier: MIT
#include "cli/invocation.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::cli;

namespace {

using Line = std::vector<std::string>;

Invocation good(const Line& line) {
  auto parsed = parse(line);
  if (auto* error = std::get_if<Error>(&parsed)) FAIL_CHECK(error->what);
  REQUIRE(std::holds_alternative<Invocation>(parsed));
  return std::get<Invocation>(parsed);
}

Error bad(const Line& line) {
  auto parsed = parse(line);
  REQUIRE(std::holds_alternative<Error>(parsed));
  return std::get<Error>(parsed);
}

std::string hint(const Line& line) {
  const Error error = bad(line);
  return error.hints.empty() ? "" : error.hints[0];
}

}  // namespace

TEST_CASE("a flag with a value never swallows the manifest after it") {
  const Invocation plan = good({"plan", "--set", "a=b", "m.yaml", "--host", "web-*", "n.yaml"});
  CHECK(plan.manifests == Line{"m.yaml", "n.yaml"});
  CHECK(plan.overrides == Line{"a=b"});
  CHECK(plan.run.hosts == Line{"web-*"});
  const Invocation prune = good({"prune", "--drop", "1", "--drop=2", "m.yaml"});
  CHECK(prune.prune.drop == std::vector<u32>{1, 2});
  CHECK(prune.manifests == Line{"m.yaml"});
}

TEST_CASE("values with '=', commas, brackets and spaces arrive as they were given") {
  const Invocation plan = good({"plan", "--set", "targets=[a, b]", "--set=x=y=z", "--host={a,b}", "m n.yaml"});
  CHECK(plan.overrides == Line{"targets=[a, b]", "x=y=z"});
  CHECK(plan.run.hosts == Line{"{a,b}"});
  CHECK(plan.manifests == Line{"m n.yaml"});
}

TEST_CASE("words after -- are manifests even where they look like flags") {
  CHECK(good({"plan", "--", "--odd.yaml", "-q"}).manifests == Line{"--odd.yaml", "-q"});
  CHECK(good({"validate", "-q", "--", "-x.yaml"}).manifests == Line{"-x.yaml"});
}

TEST_CASE("letters can be given together and flags may follow the manifest") {
  const Invocation apply = good({"apply", "m.yaml", "-yn", "-q"});
  CHECK(apply.verb == Verb::plan);
  CHECK(apply.run.assume_yes);
  CHECK(apply.is_quiet);
  CHECK(bad({"apply", "-nz"}).what == "'apply' takes no flag '-z'");
}

TEST_CASE("a flag that lacks its value says so instead of taking the next flag") {
  CHECK(bad({"plan", "--host", "--json"}).what == "'--host' needs a value: NAME");
  CHECK(bad({"plan", "--host", "--json"}).notes[0] == "the next word is '--json', a flag");
  CHECK(bad({"plan", "--set"}).what == "'--set' needs a value: KEY=VALUE");
  CHECK(bad({"plan", "--host="}).what == "'--host' needs a value: NAME");
  CHECK(bad({"plan", "--set", "a"}).what == "'--set' takes KEY=VALUE, not 'a'");
  CHECK(bad({"prune", "--keep", "-1"}).what == "'--keep' takes a whole number from 0 to 1000000, not '-1'");
}

TEST_CASE("a switch takes no value, not even false") {
  CHECK(bad({"apply", "--adopt=false"}).what == "'--adopt' takes no value");
  CHECK(good({"apply", "--adopt", "--adopt"}).run.adopt);
}

TEST_CASE("a flag that can be given once is refused the second time") {
  CHECK(bad({"apply", "--drift", "replace", "--drift", "refuse"}).what == "'--drift' was given 2 times");
}

TEST_CASE("numbers and times are read whole and within their range") {
  CHECK(good({"apply", "--lock-wait", "5m"}).run.lock_wait_seconds == 300);
  CHECK(good({"apply", "--lock-wait", "1.5"}).run.lock_wait_seconds == 1.5);
  for (const char* text : {"5x", "m", "nan", "inf", "1e9", "0x10s", "8d"}) CHECK(bad({"apply", "--lock-wait", text}).code == ErrorCode::usage);
  for (const char* text : {"0", "257", "1.5", "5h", "99999999999999999999", "+3", " 3"}) CHECK(bad({"plan", "--hosts-at-once", text}).code == ErrorCode::usage);
  CHECK(good({"plan", "--hosts-at-once", "3"}).run.hosts_at_once == 3u);
  CHECK(good({"apply", "--canary=2"}).run.canary == 2u);
  CHECK(good({"apply", "--bandwidth=400Mbit/s"}).run.bandwidth == 50'000'000u);
  CHECK(bad({"apply", "--bandwidth", "50"}).what == "'--bandwidth' takes a rate with its unit such as 50MB/s or 400Mbit/s, not '50'");
  CHECK(good({"apply", "--force-level", "raw"}).run.force_level == RunOptions::kRaw);
  CHECK(good({"apply", "--force-level", "-7"}).run.force_level == -7);
  CHECK(good({"apply", "--force-level=22"}).run.force_level == 22);
  for (const char* text : {"-8", "23", "fast", "-"}) CHECK(bad({"apply", "--force-level", text}).code == ErrorCode::usage);
  CHECK(bad({"prune", "--drop", "4294967296"}).code == ErrorCode::usage);
}

TEST_CASE("--to is a generation where it is a number and a run where it is not") {
  CHECK(good({"rollback", "--to", "0"}).rollback.to_generation == 0u);
  CHECK(good({"rollback", "--to", "20261130T180400.000000Z-1a2b3c4d"}).rollback.to_run == "20261130T180400.000000Z-1a2b3c4d");
}

TEST_CASE("words of other tools are corrected with the word that means the same here") {
  CHECK(hint({"plan", "--limit", "web-01"}) == "a flag named '--host' exists");
  CHECK(hint({"apply", "--check"}) == "run `envsync plan` to see what apply would do");
  CHECK(hint({"apply", "--bwlimit=5m"}) == "a flag named '--bandwidth' exists");
  CHECK(hint({"apply", "--delete"}).find("'--allow-delete'") != std::string::npos);
  CHECK(hint({"status", "--forks", "3"}) == "a flag named '--hosts-at-once' exists");
  CHECK(hint({"sync", "m.yaml"}).starts_with("a verb named 'apply' exists"));
  CHECK(bad({"sync"}).code == ErrorCode::usage);
}

TEST_CASE("a mistyped word gets the nearest one, a strange word the help") {
  CHECK(bad({"aply"}).what == "no verb 'aply'");
  CHECK(hint({"aply"}) == "a verb named 'apply' exists");
  CHECK(hint({"xyzzy"}) == "run `envsync --help` to see the verbs");
  CHECK(hint({"plan", "--hots", "a"}) == "a flag named '--host' exists");
  CHECK(hint({"plan", "--accept-new"}) == "a flag named '--accept-new-host-keys' exists");
  CHECK(hint({"plan", "--xyzzy"}) == "run `envsync plan --help` to see its flags");
  CHECK(hint({"fleet.yaml"}) == "put a verb before the manifest, as in `envsync plan fleet.yaml`");
  CHECK(hint({"apply", "--drift", "replce"}) == "a word 'replace' exists");
}

TEST_CASE("a flag of another verb names the verbs that take it") {
  CHECK(bad({"status", "--adopt"}).what == "'status' takes no flag '--adopt'");
  CHECK(hint({"status", "--adopt"}) == "'plan' and 'apply' take it");
  CHECK(hint({"apply", "--full"}) == "'verify' takes it");
}

TEST_CASE("what the design has and this version has not is refused as not built") {
  for (const Line& line : {Line{"plan", "--out", "p"},
                           Line{"show", "p"}, Line{"doctor", "h"}, Line{"completion", "bash"},
                           Line{"apply", "--drift", "keep"}}) {
    CAPTURE(line[0]);
    CHECK(bad(line).code == ErrorCode::not_built);
  }
}

TEST_CASE("a flag before the verb is refused with the line to write instead") {
  CHECK(hint({"--json", "status"}) == "put flags after it, as in `envsync status --json`");
}

TEST_CASE("verbs take as many words as they say") {
  CHECK(bad({"verify", "a.yaml", "b.yaml"}).what == "'verify' takes one manifest, not 2");
  CHECK(bad({"schema", "x"}).code == ErrorCode::usage);
  CHECK(bad({"init", "ct200:/v"}).what == "'init' needs a source and at least one host");
  CHECK(bad({"explain"}).code == ErrorCode::usage);
  CHECK(bad({"plan", ""}).what == "'plan' was given an empty word");
  const Invocation init = good({"init", "ct200:/v", "a", "b"});
  CHECK(init.init.source == "ct200:/v");
  CHECK(init.init.targets == Line{"a", "b"});
}

TEST_CASE("flags that contradict each other are refused") {
  CHECK(bad({"apply", "-q", "-v"}).code == ErrorCode::usage);
  CHECK(bad({"prune", "--all", "--keep", "2"}).code == ErrorCode::usage);
}

TEST_CASE("help wins over what else is wrong with the line, but not after --") {
  auto parsed = parse(Line{"apply", "--nonsense", "-h"});
  REQUIRE(std::holds_alternative<PageWanted>(parsed));
  CHECK(std::get<PageWanted>(parsed).page == Page::verb_help);
  CHECK(std::get<PageWanted>(parsed).verb == Verb::apply);
  CHECK(good({"plan", "--", "--help"}).manifests == Line{"--help"});
  CHECK(std::get<PageWanted>(parse(Line{"help", "prune"})).verb == Verb::prune);
  CHECK(std::get<PageWanted>(parse(Line{"--help", "prune"})).verb == Verb::prune);
  CHECK(std::get<PageWanted>(parse(Line{"help"})).page == Page::help);
  CHECK(std::get<PageWanted>(parse(Line{})).page == Page::bare);
  CHECK(std::get<PageWanted>(parse(Line{"--version"})).page == Page::version);
}

TEST_CASE("what a user typed reaches the message without control characters") {
  CHECK(bad({"pl\x1b[31man"}).what == "no verb 'pl\\x1b[31man'");
}

TEST_CASE("every flag of every verb is understood with and without '='") {
  for (const VerbSpec& verb : all_verbs()) {
    for (const FlagSpec* flag : flags_of(verb.verb)) {
      CAPTURE(verb.name);
      CAPTURE(flag->name);
      Line line{std::string(verb.name)};
      line.emplace_back(flag->name);
      if (!flag->value.empty()) line.emplace_back("v");
      auto words = parse_words(line);
      REQUIRE(std::holds_alternative<Words>(words));
      CHECK(std::get<Words>(words).flags.size() == 1);
      CHECK(std::get<Words>(words).flags.contains(flag->flag));
      CHECK(std::get<Words>(words).places.empty());
    }
  }
}
