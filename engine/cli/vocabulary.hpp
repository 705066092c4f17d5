// SPDX-License-Identifier: MIT
// The words of the command line in one table: verbs, flags, what the design has and this version has not, and what
// other tools call the same thing. The parser, the help pages and the corrections are all made from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

namespace envsync::cli {

enum class Verb : u8 { init, validate, plan, apply, verify, status, history, rollback, prune, inspect, schema, explain };

enum class Places : u8 { none, one_manifest, manifests, source_and_hosts, place, code };

struct VerbSpec {
  Verb verb;
  std::string_view name;
  std::string_view arguments;              // as the usage line shows them
  std::string_view summary;                // one line, for the list of verbs
  Places places;
  std::vector<std::string_view> about;     // paragraphs, one line each
  std::vector<std::pair<std::string_view, std::string_view>> examples;  // command, what it does
  std::vector<int> exits;                  // beside 0, 1 and 2
};

enum class Flag : u8 {
  host, set, json, quiet, verbose, color, no_input, yes, ssh_config, identity, transport, accept_new_host_keys,
  hosts_at_once, canary, bandwidth, lock_wait, exit_code, files, full, record, dry_run, adopt, allow_delete, drift, verify_staged, explain, force_origin,
  force_level, to, keep, drop, all,
};

struct FlagSpec {
  Flag flag;
  std::string_view name;                   // "--host"
  std::string_view letter;                 // "-q", or empty
  std::string_view value;                  // "NAME", or empty for a switch
  std::string_view summary;
  std::vector<Verb> verbs;
  bool is_repeatable = false;
  bool is_hidden = false;
};

std::span<const VerbSpec> all_verbs();
const VerbSpec& spec(Verb verb);
std::span<const FlagSpec> all_flags();
const FlagSpec& spec(Flag flag);
/// The flags that a verb takes, in the order of the table; hidden ones too.
std::vector<const FlagSpec*> flags_of(Verb verb);
std::string_view exit_meaning(int code);

/// Why `word` is no verb, and what is.
Error unknown_verb(const std::string& word);
/// Why `word` (with its dashes) is no flag of the verb, and what is.
Error unknown_flag(const std::string& word, const VerbSpec& verb);
/// The nearest of `words`, where one is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& words);

Error usage_error(std::string what);
Error not_built(std::string what);

}  // namespace envsync::cli
