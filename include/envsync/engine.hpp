// SPDX-License-Identifier: MIT
// The façade that the command line and other programs use. One Engine serves one caller; its calls block until every
// host has an outcome. Nothing here throws.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <envsync/event.hpp>

namespace envsync {

/// A manifest as given: its text was read by the caller or by load_manifest().
struct ManifestText {
  std::string file;                    // for messages
  std::string text;
  std::vector<std::string> overrides;  // key=value, as --set gives them
};

/// Reads a manifest file: at most 1 MiB, a regular file.
Result<ManifestText> load_manifest(const std::string& file, std::vector<std::string> overrides = {});

struct RunOptions {
  static constexpr int kRaw = -1000;  // as force_level: nothing is compressed
  std::string run;                  // id of the run: begins with the operator's time; empty: one is made
  std::vector<std::string> hosts;   // globs; empty: all targets
  bool adopt = false;
  bool allow_delete = false;
  bool assume_yes = false;
  bool verify_staged = false;       // re-read the staged tree from the disk before the swap
  std::optional<std::string> drift; // replace, refuse: overrides the manifest
  std::optional<u32> hosts_at_once;
  u64 bandwidth = 0;                // bytes a second on the wire, of all targets together; 0: unlimited
  u32 canary = 0;                   // so many targets first; the others only where none of those failed
  std::string transport;            // overrides the manifest; empty: as it says
  std::string ssh_config;           // -F
  std::string identity;             // -i
  bool accept_new_host_keys = false;
  bool batch = false;               // never prompt for passwords or host keys
  double lock_wait_seconds = 0;
  std::optional<int> force_level;   // fixes the compression level; for byte comparisons
  bool explain = false;             // FindingEvents say how changed content travels, and why
  std::optional<std::string> force_origin;  // target, same-host, chunks, source; for tests of each way content can come
};

struct VerifyOptions {
  bool full = false;    // read every byte
  bool record = false;  // and hold each file of a distribution against the sha256 of its RECORD
};
struct RollbackOptions { std::optional<u32> to_generation; std::string to_run; };
struct PruneOptions { std::optional<u32> keep; std::vector<u32> drop; bool all = false; };

struct Report {
  std::string run;
  std::vector<Outcome> outcomes;
  int exit_code = 0;  // by the table of exit codes
};

struct InitRequest { std::string source; std::vector<std::string> targets; };
struct InitReply { std::string text; std::string summary; };  // the manifest's text; "Python 3.12, 312 distributions, 12.0 GB"

struct ManifestSummary { std::string name; std::string path; std::string source; std::vector<std::string> targets; };

class Engine {
 public:
  virtual ~Engine() = default;
  /// All manifest errors together, or what the manifest says in short. Touches no host.
  virtual tl::expected<ManifestSummary, std::vector<Error>> validate(const ManifestText&) = 0;
  virtual Report plan(const ManifestText&, const RunOptions&, Observer&, std::stop_token) = 0;
  virtual Report apply(const ManifestText&, const RunOptions&, Observer&, std::stop_token) = 0;
  virtual Report verify(const ManifestText&, const RunOptions&, const VerifyOptions&, Observer&, std::stop_token) = 0;
  virtual Report status(const ManifestText&, const RunOptions&, Observer&, std::stop_token) = 0;
  virtual Report history(const ManifestText&, const RunOptions&, Observer&, std::stop_token) = 0;
  virtual Report rollback(const ManifestText&, const RunOptions&, const RollbackOptions&, Observer&, std::stop_token) = 0;
  virtual Report prune(const ManifestText&, const RunOptions&, const PruneOptions&, Observer&, std::stop_token) = 0;
  /// Looks at one environment; needs no manifest. `place`: HOST:PATH or PATH.
  virtual Result<Inspection> inspect(const std::string& place, const RunOptions&, Observer&, std::stop_token) = 0;
  virtual Result<InitReply> init(const InitRequest&, const RunOptions&, Observer&, std::stop_token) = 0;
};

/// `agent_path`: the agent binary to run and upload; empty: $ENVSYNC_AGENT, beside the program, ../libexec/envsync/.
std::unique_ptr<Engine> make_engine(std::string agent_path = {});

/// The JSON Schema (draft-07) of the manifest.
std::string_view manifest_schema();
std::string_view version();

}  // namespace envsync
