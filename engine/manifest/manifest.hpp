// SPDX-License-Identifier: MIT
// The manifest as a value, parsed from YAML with every error at its place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <envsync/event.hpp>
#include <envsync/result.hpp>

#include "python/overlay.hpp"
#include "tree/exclude.hpp"
#include "tree/tree.hpp"

namespace envsync::manifest {

enum class TransportKind : u8 { automatic, libssh, openssh, command };
struct Transport {
  TransportKind kind = TransportKind::automatic;
  std::vector<std::string> command;
};

/// A host as written. `name` is how messages call it.
struct Host {
  std::string name;
  bool is_local = false;
  std::string user, host;
  u16 port = 0;
  std::string path;        // empty: the manifest's
  std::string jump, identity;
  std::optional<Transport> transport;
  bool sudo = false;
  std::vector<std::string> gpu;  // compute capabilities that it is declared to have: "10.3"
  Location where;
};

struct Source {
  Host host;
  std::string path;        // absolute, or "~/..."
  std::vector<std::string> exclude;
  tree::Bytecode bytecode = tree::Bytecode::leave_out;
  /// `target` instead of a host: what each target has (a source), or a folder of each target's own (an overlay's origin).
  bool is_target = false;
};

/// Packages of another place, laid onto the environment.
struct Overlay {
  std::string name;        // as messages call it; the origin as it is written, where no name is given
  Source from;
  python::OverlayOptions options;
  std::vector<std::string> hosts;  // globs of targets' names; empty: all
  std::vector<std::string> gpu;    // compute capabilities; empty: all
  Location where;
  bool is_for(const Host& target) const;
};

/// Findings that somebody knows and takes.
struct Accept {
  std::string code;
  std::string files;               // a glob of paths; empty: all
  std::vector<std::string> hosts;  // globs of targets' names; empty: all
  std::string why;
  Location where;
};

enum class InterpreterRule : u8 { require, ship, ignore };
enum class InUseRule : u8 { warn, refuse, ignore };
enum class MtimeRule : u8 { preserve, strict, ignore };
enum class OwnerRule : u8 { agent, preserve };
enum class DriftRule : u8 { ask, replace, refuse };
enum class RecordRule : u8 { overlay, all, none };
enum class FailureRule : u8 { carry_on, stop, all_or_nothing };

struct Invariants {
  bool same_path = true;
  InterpreterRule interpreter = InterpreterRule::require;
  std::string python;      // "3.11", compared by components; empty: any
  Guarantee atomic = Guarantee::atomic;  // the weakest accepted; this version builds `required` only
  InUseRule in_use = InUseRule::warn;
  bool relocate = false;   // scripts are rewritten for the target's path, which may be another than the source's
  RecordRule record = RecordRule::overlay;  // files that are held against RECORD's sha256 after staging
};

struct DeleteLimit { bool is_percent = true; u64 value = 50; };
struct Settings {
  OwnerRule owner = OwnerRule::agent;
  MtimeRule mtime = MtimeRule::preserve;
  bool xattrs = true;
  bool hardlinks = true;
  DeleteLimit delete_limit;
  DriftRule drift = DriftRule::ask;
  u32 keep_generations = 2;
  u32 hosts_at_once = 8;
  FailureRule on_failure = FailureRule::carry_on;
  u64 bandwidth = 0;            // bytes a second on the wire, for each target; 0: unlimited
  u32 retry_for_seconds = 600;  // how long a lost connection is tried again
  Transport transport;
};

struct Manifest {
  std::string file;        // as given
  std::string name;
  Source source;
  std::vector<Host> targets;  // each with its path filled in
  std::vector<Overlay> overlays;  // in order
  std::vector<Accept> accept;
  Invariants invariants;
  Settings settings;
  tree::ComparePolicy compare_policy() const;
};

using Errors = std::vector<Error>;
/// Gives the text of `targets.hosts_from`: a file's as it is written there, or "-".
using ReadHosts = std::function<Result<std::string>(const std::string& name)>;
/// All schema errors at once, each with line and caret; a YAML syntax error is put into words. `overrides`: key=value from --set.
tl::expected<Manifest, Errors> parse(const std::string& file, const std::string& text, const std::vector<std::string>& overrides,
                                     const ReadHosts& read_hosts = {});

/// HOST, HOST:PATH, PATH, local, as in `source` and on the command line of init and inspect. A relative PATH is given back as
/// it is: the command line completes it, a manifest refuses it.
Result<Source> parse_place(const std::string& text);
/// [user@]name[:port][:path] or local[:path].
Result<Host> parse_host(const std::string& text);
/// What a target names: "gpu-[01-08]" is eight texts for parse_host(), a text without a range is itself.
Result<std::vector<std::string>> expand_ranges(const std::string& text);

/// The text that `init` writes; `source.path` is absolute, or begins with ~/ on a remote host. Targets as parse_host() takes
/// them, or folders of this machine.
std::string render_init(const Source& source, const std::vector<std::string>& targets);
/// JSON Schema (draft-07), equal to manifests/envsync.schema.json.
std::string_view schema();

}  // namespace envsync::manifest
