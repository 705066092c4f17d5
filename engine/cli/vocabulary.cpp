// SPDX-License-Identifier: MIT
#include "cli/vocabulary.hpp"

#include <algorithm>

#include "base/try.hpp"

namespace envsync::cli {

namespace {

using enum Verb;

const std::vector<VerbSpec>& verb_table() {
  static const std::vector<VerbSpec> kVerbs{
      {init, "init", "SRC HOST...", "write envsync.yaml and its schema, after looking at the source",
       Places::source_and_hosts,
       {"SRC is HOST:PATH or PATH: the environment that the hosts shall have. An existing envsync.yaml is never written over."},
       {{"envsync init ct200:/root/venv root@gpu-b300", "from one host to another, relayed here"},
        {"envsync init /opt/venv web-01 web-02", "from this machine to two hosts"}},
       {12, 13, 130, 143}},
      {validate, "validate", "[MANIFEST]", "check a manifest without touching a host", Places::one_manifest,
       {"All errors are shown together, each with its line."},
       {{"envsync validate", "envsync.yaml"}, {"envsync validate fleet.yaml --set settings.keep_generations=3", "with one value replaced"}},
       {10}},
      {plan, "plan", "[MANIFEST...]", "show what apply would do", Places::manifests,
       {"Looks at source and targets and changes nothing."},
       {{"envsync plan", "envsync.yaml, all its targets"},
        {"envsync plan fleet.yaml --host 'web-*' --files", "every path that would change on some of them"},
        {"envsync plan --exit-code -q", "4 where something would change"}},
       {3, 4, 10, 12, 13, 14, 130, 143}},
      {apply, "apply", "[MANIFEST...]", "bring the targets to what the manifest describes", Places::manifests,
       {"The path holds the old tree or the new one at every instant. A run that was cut off is simply run again: what was received is used."},
       {{"envsync apply", "envsync.yaml, all its targets"},
        {"envsync apply fleet.yaml --host web-01", "one target first"},
        {"envsync apply --adopt", "take over a folder; it becomes generation 0"}},
       {3, 10, 11, 12, 13, 14, 15, 16, 17, 130, 143}},
      {verify, "verify", "[MANIFEST]", "compare targets with what was last applied", Places::one_manifest,
       {"Believes the stat cache; --full reads every byte again, --record what RECORDs list. Needs no source."},
       {{"envsync verify", "envsync.yaml, all its targets"}, {"envsync verify fleet.yaml --host web-01 --full", "read every byte of one"}},
       {3, 4, 10, 12, 130, 143}},
      {status, "status", "[MANIFEST]", "show generation, drift, leftovers, locks per host", Places::one_manifest,
       {"Changes nothing and needs no source."},
       {{"envsync status", "envsync.yaml, all its targets"}, {"envsync status fleet.yaml --host web-01 --files", "every path that drifted"}},
       {3, 4, 10, 12, 130, 143}},
      {history, "history", "[MANIFEST]", "list the generations kept, per host and run", Places::one_manifest, {},
       {{"envsync history", "envsync.yaml, all its targets"}},
       {3, 10, 12, 130, 143}},
      {rollback, "rollback", "[MANIFEST]", "undo the last apply, or return to a generation", Places::one_manifest,
       {"Without --to it undoes the last apply not yet undone, on the hosts that it changed; again: one further back. A first apply to an absent path is not undone. The tree that goes stays a generation, to which --to returns."},
       {{"envsync rollback", "undo the last apply"},
        {"envsync rollback fleet.yaml --host web-01 --to 3", "generation 3 on one host"},
        {"envsync rollback --to 20261130T180400.000000Z-1a2b3c4d", "what that run made, on its hosts"}},
       {3, 10, 11, 12, 13, 14, 16, 17, 130, 143}},
      {prune, "prune", "[MANIFEST]", "drop old generations and leftovers; says what it frees", Places::one_manifest,
       {"The current generation always stays. Generation 0, what was found, goes only by name."},
       {{"envsync prune --keep 1", "the current generation, one before it, and 0"},
        {"envsync prune --drop 0", "what was there before envsync"},
        {"envsync prune --all", "envsync's state; the environment stays as it is"}},
       {3, 10, 11, 12, 17, 130, 143}},
      {inspect, "inspect", "[HOST:]PATH", "show what an environment is: interpreter, distributions, findings", Places::place,
       {"Changes nothing and needs no manifest. The first look at an environment reads all of it, later ones what changed."},
       {{"envsync inspect ct200:/root/venv", "of another host"},
        {"envsync inspect ./venv -v", "every distribution and note, not only the largest"},
        {"envsync inspect /opt/venv --json", "one object, for a program"}},
       {12, 13, 130, 143}},
      {schema, "schema", "", "print the JSON Schema of the manifest", Places::none,
       {"draft-07; `init` writes it beside the manifest, for editors."},
       {{"envsync schema > .envsync.schema.json", ""}},
       {}},
      {explain, "explain", "CODE", "print the long form of an error", Places::code,
       {"CODE is the word in error[CODE]."},
       {{"envsync explain no_space", ""}},
       {}},
  };
  return kVerbs;
}

const std::vector<Verb> kOnHosts{plan, apply, verify, status, history, rollback, prune};
const std::vector<Verb> kConnecting{init, plan, apply, verify, status, history, rollback, prune, inspect};
const std::vector<Verb> kAsking{init, plan, apply, verify, status, history, rollback, prune};
const std::vector<Verb> kWithManifest{validate, plan, apply, verify, status, history, rollback, prune};
const std::vector<Verb> kTalking{init, validate, plan, apply, verify, status, history, rollback, prune, inspect};
const std::vector<Verb> kEvery{init, validate, plan, apply, verify, status, history, rollback, prune, inspect, schema, explain};

const std::vector<FlagSpec>& flag_table() {
  static const std::vector<FlagSpec> kFlags{
      {Flag::dry_run, "--dry-run", "-n", "", "show the plan and change nothing, as `envsync plan` does", {apply}},
      {Flag::to, "--to", "", "N|RUN", "the generation N of one host, or what a run made", {rollback}},
      {Flag::keep, "--keep", "", "N", "generations to keep beside the current one and 0 [the manifest's]", {prune}},
      {Flag::drop, "--drop", "", "N", "drop this generation, 0 too", {prune}, true},
      {Flag::all, "--all", "", "", "remove all of envsync's state; the environment stays", {prune}},
      {Flag::full, "--full", "", "", "read every byte instead of believing the stat cache", {verify}},
      {Flag::record, "--record", "", "", "hold each file of a distribution against the sha256 of its RECORD", {verify}},
      {Flag::files, "--files", "", "", "list every path", {plan, status}},
      {Flag::exit_code, "--exit-code", "", "", "exit 4 where changes or drift exist", {plan, status}},
      {Flag::adopt, "--adopt", "", "", "take over a path that envsync does not know", {plan, apply}},
      {Flag::allow_delete, "--allow-delete", "", "", "go beyond settings.delete_limit", {plan, apply, rollback}},
      {Flag::drift, "--drift", "", "WORD", "changes made on the target: replace or refuse [the manifest's]", {plan, apply, rollback}},
      {Flag::verify_staged, "--verify-staged", "", "", "read the staged tree again from the disk before the swap", {apply, rollback}},
      {Flag::lock_wait, "--lock-wait", "", "TIME", "wait for another run's lock, as in 30s or 5m [0s]", {apply, rollback, prune}},
      {Flag::explain, "--explain", "", "", "say how changed content travels, and why", {apply}},
      {Flag::force_origin, "--force-origin", "", "WORD", "take content only from: target, same-host, chunks, source", {plan, apply}, false, true},
      {Flag::force_level, "--force-level", "", "N", "compress at this level only", {apply}, false, true},
      {Flag::host, "--host", "", "NAME", "only this target; globs work [all]", kOnHosts, true},
      {Flag::set, "--set", "", "KEY=VALUE", "replace one value of the manifest", kWithManifest, true},
      {Flag::hosts_at_once, "--hosts-at-once", "", "N", "targets worked on side by side [the manifest's]", kOnHosts},
      {Flag::canary, "--canary", "", "N", "begin with N targets; go on with the others where none of them failed", {apply}},
      {Flag::bandwidth, "--bandwidth", "", "RATE", "of all targets together, as in 50MB/s or 400Mbit/s [unlimited]", {apply}},
      {Flag::transport, "--transport", "", "WORD", "auto, libssh or openssh [the manifest's]", kConnecting},
      {Flag::ssh_config, "--ssh-config", "", "FILE", "ssh's configuration file [ssh's own]", kConnecting},
      {Flag::identity, "--identity", "", "FILE", "private key to log in with [ssh's own]", kConnecting},
      {Flag::accept_new_host_keys, "--accept-new-host-keys", "", "", "trust hosts that known_hosts does not have", kConnecting},
      {Flag::yes, "--yes", "-y", "", "answer every question with yes", kAsking},
      {Flag::no_input, "--no-input", "", "", "never ask; refuse what needs an answer", kConnecting},
      {Flag::json, "--json", "", "", "one JSON object a line on stdout", kTalking},
      {Flag::quiet, "--quiet", "-q", "", "print errors and the result asked for, nothing else", kTalking},
      {Flag::verbose, "--verbose", "-v", "", "print phases, figures and notes too", kTalking},
      {Flag::color, "--color", "", "WHEN", "auto, always or never [auto]", kEvery},
  };
  return kFlags;
}

}  // namespace

std::span<const VerbSpec> all_verbs() { return verb_table(); }

const VerbSpec& spec(Verb verb) {
  const auto found = std::ranges::find(verb_table(), verb, &VerbSpec::verb);
  ENVSYNC_CHECK(found != verb_table().end());
  return *found;
}

std::span<const FlagSpec> all_flags() { return flag_table(); }

const FlagSpec& spec(Flag flag) {
  const auto found = std::ranges::find(flag_table(), flag, &FlagSpec::flag);
  ENVSYNC_CHECK(found != flag_table().end());
  return *found;
}

std::vector<const FlagSpec*> flags_of(Verb verb) {
  std::vector<const FlagSpec*> taken;
  for (const FlagSpec& flag : flag_table())
    if (std::ranges::find(flag.verbs, verb) != flag.verbs.end()) taken.push_back(&flag);
  return taken;
}

std::string_view exit_meaning(int code) {
  switch (code) {
    case 0: return "success";
    case 1: return "failed without a code of its own, or hosts for different reasons";
    case 2: return "wrong usage";
    case 3: return "some hosts succeeded, some did not";
    case 4: return "changes or drift exist";
    case 10: return "the manifest has errors";
    case 11: return "locked by another run";
    case 12: return "cannot connect or authenticate";
    case 13: return "an invariant is violated, or refused for safety";
    case 14: return "drift refused";
    case 15: return "a check failed, nothing changed";
    case 16: return "failed after the swap, the old tree is back";
    case 17: return "a person is needed";
    case 70: return "a bug in envsync";
    case 130: return "interrupted: the state is safe and named";
    case 143: return "terminated: the state is safe and named";
    default: return "";
  }
}

}  // namespace envsync::cli
