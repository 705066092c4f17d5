// SPDX-License-Identifier: MIT
// What a run tells its observer: values only, so that the command line, a log and another program can all listen.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <envsync/result.hpp>

namespace envsync {

enum class Guarantee : u8 { atomic, brief_gap, per_file };
enum class OutcomeKind : u8 { applied, unchanged, failed, refused, rolled_back, skipped };
/// The phases of one host, in order. Not every run passes through all of them.
enum class Phase : u8 { connect, scan, plan, stage, transfer, seal, commit, accept, verify };
enum class Severity : u8 { note, warning, error };

struct Route {
  std::string source;     // as the manifest names it
  std::string target;
  bool same_host = false; // the target's agent reads the source itself
  bool relayed = false;   // both remote: passes through this machine, nothing stored
  std::string transport;  // "local", "libssh", "openssh", "command"
  std::string transport_reason;
};

enum class PackageChange : u8 { added, removed, changed, rebuilt };  // rebuilt: same version, other content
struct PackageLine {
  PackageChange kind = PackageChange::changed;
  std::string name;
  std::string from_version;  // empty when added
  std::string to_version;    // empty when removed
  u64 files = 0;             // paths of it that change
  u64 bytes = 0;             // content of it that the target does not have
  std::string why = {};      // of an overlay's step: "only torch 2.9.1 needed it"; else empty
};

/// One path that differs. `kind`: '+' new, '-' gone, '~' content, 'm' metadata only, 't' type changed.
struct PathLine {
  char kind = '~';
  std::string path;  // bytes, may not be UTF-8
  u64 bytes = 0;     // size of the desired content
};

struct Finding {
  std::string code;
  Severity severity = Severity::note;
  std::string file;  // relative to the environment, or empty
  std::string what;
};

struct PlanEvent {
  std::string host;
  std::string environment;  // the manifest's name
  std::string path;
  Route route;
  std::optional<u32> generation_now;  // nullopt: envsync does not know the path
  u32 generation_next = 0;
  bool path_absent = false;
  bool unchanged = false;
  std::vector<PackageLine> packages;  // those that change
  u64 packages_unchanged = 0;
  std::vector<PathLine> paths;        // every path that changes
  u64 files_added = 0, files_removed = 0, files_changed = 0, metadata_changed = 0;
  u64 paths_total = 0;                // of the desired tree
  u64 bytes_total = 0;                // content of the desired tree
  u64 bytes_wanted = 0;               // content that differs by digest from the target's live tree
  u64 bytes_to_send = 0;              // at most, before compression
  u64 bytes_to_write = 0;             // content written on the target
  u64 disk_needed = 0, disk_free = 0;
  u64 inodes_needed = 0, inodes_free = 0;
  std::string commit_root;            // relative to path; empty: the whole environment
  Guarantee guarantee = Guarantee::atomic;
  std::optional<double> seconds_expected;
  std::vector<std::string> in_use;    // processes, described
  std::vector<Finding> findings;
  std::vector<Error> refused_by;      // apply would refuse with these
  std::string digest;                 // of the plan, hex
};

struct PhaseEvent {
  std::string host;
  Phase phase = Phase::scan;
  bool finished = false;
  double seconds = 0;   // when finished
  u64 files = 0, bytes = 0;
};

struct ProgressEvent {
  std::string host;
  Phase phase = Phase::transfer;
  u64 bytes_done = 0, bytes_total = 0;
  u64 files_done = 0, files_total = 0;
  double bytes_per_second = 0;
  std::optional<double> seconds_left;
};

struct ProblemEvent {
  std::string host;  // empty: of the whole run
  Severity severity = Severity::warning;
  Error error;
};

struct PhaseSeconds { Phase phase = Phase::scan; double seconds = 0; };

/// To one host of a transfer.
struct Connections {
  std::string host;
  u32 most = 1;             // at once
  std::string why_no_more;  // empty where nothing was in the way of more
};

struct Outcome {
  std::string host;
  std::string environment;
  std::string path;
  OutcomeKind kind = OutcomeKind::skipped;
  std::optional<Error> error;
  std::optional<u32> generation;        // current now, if envsync knows the path
  std::optional<u32> generation_before;
  std::vector<PackageLine> packages;
  u64 files = 0;                        // paths that changed
  u64 bytes_up = 0, bytes_down = 0;     // channel bytes: to the target / from the source, or of the one host concerned
  u64 bytes_read = 0, bytes_written = 0;  // content, by the agents
  Guarantee guarantee = Guarantee::atomic;
  bool recovery_pending = false;
  std::vector<PhaseSeconds> seconds;
  std::vector<Connections> connections = {};  // where there were several, or could be no more
};

struct GenerationEvent {
  std::string host;
  std::string path;
  u32 number = 0;
  bool current = false;
  std::string run, operator_name, manifest, source;
  i64 committed_at = 0;                 // seconds since 1970, the operator's clock
  u64 files = 0, bytes = 0;             // of its tree
  u64 pool_bytes = 0;                   // what only it still holds
  std::optional<u32> restores;          // a rollback: the generation whose tree this is
  std::string undoes;                   // a rollback: the run that it undid
  bool adopted = false;                 // found, not made, by envsync
  bool damaged = false;                 // its record does not decode: only the number is known
  u64 missing = 0;                      // contents of it that the host no longer has: it cannot be restored
};

struct StatusEvent {
  std::string host;
  std::string environment;
  std::string path;
  std::optional<GenerationEvent> current;
  bool path_absent = false;
  u64 drift_added = 0, drift_removed = 0, drift_changed = 0;
  u64 leftover_bytes = 0, pool_bytes = 0;
  u32 generations = 0;
  std::string lock_holder;              // empty: free
  std::string journal_state;            // "clean", or what recovery will do
  std::optional<Error> error;           // host not reached
};

struct DifferenceEvent {
  std::string host;
  PathLine line;
  std::string detail;
};

struct FindingEvent { std::string host; Finding finding; };

struct PrunedEvent {
  std::string host;
  std::vector<u32> generations;
  u64 contents = 0, bytes_freed = 0;
};

/// A distribution as `inspect` found it. A path that several list counts for each of them.
struct DistributionFacts {
  std::string name, version;
  std::string installer;      // as it wrote itself down: "uv", "pip"; empty: nobody did
  u64 files = 0, bytes = 0;   // of it that are there
  u64 missing = 0;            // rows of its RECORD whose file is not there
  bool editable = false;
  std::string unreadable;     // why its RECORD tells nothing ("no RECORD"); empty: it does
};

/// Paths that several distributions list.
struct SharedPaths {
  std::vector<std::string> owners;  // names, sorted
  u64 paths = 0;
  u64 differing = 0;          // of these: their RECORDs say different contents
  u64 unmatched = 0;          // of these: what is there is what none of them says
};

/// Bytecode files; a __pycache__ whose source went, or x.pyc beside no x.py.
struct BytecodeFacts {
  u64 files = 0, bytes = 0;
  u64 older = 0;              // than their source: Python compiles that again, or runs old code where times were copied
  u64 orphaned = 0;           // in a __pycache__, without a source: never read
  u64 sourceless = 0;         // x.pyc without x.py: run like a source
};

/// What an environment is. Nothing here is compared with anything.
struct Inspection {
  std::string host;           // "local", or as it was named
  std::string path;           // absolute, resolved
  std::string python_version; // X.Y[.Z] as pyvenv.cfg has it; empty: it does not
  std::string implementation; // as pyvenv.cfg has it
  std::string made_by;        // "uv 0.9.2", "virtualenv 20.1"; empty: python -m venv, or unknown
  std::string base;           // `home` of pyvenv.cfg
  std::string program;        // what bin/python leads to
  std::string answer;         // the version that it gave when it was run; empty: it does not run
  u64 files = 0, bytes = 0;   // files and links; each content that is linked once
  std::vector<DistributionFacts> distributions;  // largest first
  std::vector<SharedPaths> shared;               // most paths first
  u64 unowned_files = 0, unowned_bytes = 0;      // below site-packages, of no distribution; bytecode aside
  BytecodeFacts bytecode;
  std::vector<Finding> findings;
};

struct SummaryEvent {
  std::string verb;
  std::string run;
  int exit_code = 0;
  u64 applied = 0, unchanged = 0, failed = 0, refused = 0, rolled_back = 0, skipped = 0, differing = 0;
  double seconds = 0;
};

using Event = std::variant<PlanEvent, PhaseEvent, ProgressEvent, ProblemEvent, Outcome, StatusEvent, GenerationEvent,
                           DifferenceEvent, FindingEvent, PrunedEvent, SummaryEvent>;

enum class QuestionKind : u8 { adopt, discard_drift, delete_many, roll_back, remove_state, host_key };
struct Question {
  QuestionKind kind = QuestionKind::adopt;
  std::string host;
  std::string text;  // one line that names the object and the way back
};
enum class Answer : u8 { no, yes, cannot_ask };

/// A password, a passphrase, or what else a server wants to know before it lets us in.
struct SecretQuestion {
  std::string host;
  std::string text;         // one line
  bool is_echoed = false;   // the answer may be seen
};

/// Listens to a run. The engine calls it from one thread at a time and never while it holds a lock of its own.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on(const Event& event) = 0;
  /// Must give Answer::cannot_ask where nobody can be asked; the engine then refuses and names the flag.
  /// A "yes" to all questions must not answer QuestionKind::host_key: that is a person's to compare.
  virtual Answer ask(const Question& question) = 0;
  /// nullopt where nobody can be asked, or the person gives up.
  virtual std::optional<std::string> secret(const SecretQuestion&) { return std::nullopt; }
};

std::string_view name(Guarantee);
std::string_view name(OutcomeKind);
std::string_view name(Phase);
std::string_view name(Severity);
std::string_view name(PackageChange);

}  // namespace envsync
