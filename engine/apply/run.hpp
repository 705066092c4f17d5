// SPDX-License-Identifier: MIT
// What every host of one run shares, and one host's connection with what its agent said.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <envsync/engine.hpp>

#include "apply/dispatcher.hpp"
#include "apply/lanes.hpp"
#include "apply/pace.hpp"
#include "apply/together.hpp"
#include "manifest/manifest.hpp"
#include "os/files.hpp"
#include "protocol/endpoint.hpp"
#include "store/tree_cache.hpp"
#include "transport/transport.hpp"

namespace envsync::apply {

/// yyyymmddThhmmss.uuuuuuZ-xxxxxxxx: sorts by the operator's clock.
std::string new_run_id();
/// user@machine
std::string operator_name();

struct Run {
  std::string id;
  std::string operator_name;
  const manifest::Manifest* manifest = nullptr;
  const RunOptions* options = nullptr;
  transport::Options transport;
  Dispatcher* dispatcher = nullptr;
  std::stop_token stop;
  os::Files* files = nullptr;
  std::mutex trees_mutex;                   // what is kept in trees
  std::optional<store::TreeCache> trees;
  std::shared_ptr<Pace> pace;                // of all hosts together; null: unlimited
  std::shared_ptr<LaneGate> lane_gate = std::make_shared<LaneGate>();
  std::shared_ptr<Together> together;       // where all hosts swap or none
  std::mutex accept_mutex;                  // what follows
  std::vector<bool> accept_used;            // by entry of the manifest's `accept`: some host's plan had what it takes
  std::size_t plans = 0;

  std::mutex keeping_mutex;                 // keeping
  std::vector<std::future<void>> keeping;   // trees on their way to the cache; the run ends when they are there

  /// Into `trees`, in a thread of its own.
  void keep_tree(std::string label, tree::Tree tree);
  tree::ComparePolicy policy() const { return manifest->compare_policy(); }
};

/// Notes which entries of `accept` took a finding of one plan.
/// `is_plan`: of a plan, which every host of a run has once.
void note_accepts(Run& run, const std::vector<bool>& used, bool is_plan = true);
/// Says which entries took nothing, where every one of `hosts` hosts had a plan.
void tell_unused_accepts(Run& run, std::size_t hosts);

/// What a connection asks goes to the run's observer. `dispatcher` outlives the options.
transport::Asker asker(Dispatcher& dispatcher);
transport::Host transport_host(const manifest::Host& host, const manifest::Manifest& manifest, const RunOptions& options);

/// Seconds. The agent of a cut connection finishes its commit alone, and one that hears nothing ends after 30.
inline constexpr double kReconnectLockWait = 60;

/// The network's fault, not a person's: worth another try.
bool is_network_error(const Error& error);

/// A connection past its first scan.
struct Session {
  std::string name;                          // of the host, as the manifest has it
  transport::Host host;
  std::unique_ptr<protocol::Endpoint> endpoint;
  std::unique_ptr<Lanes> lanes;              // the endpoint's, and more where they help
  format::ScanReply scan;
  std::string transport, detail;
};

struct ScanAsk {
  format::Role role = format::Role::target;
  format::LockMode lock = format::LockMode::none;
  bool full = false;
  bool want_facts = false;
  bool any_record = false;
  double lock_wait_seconds = 0;  // at least; the run's options may say more
};
/// Connects and scans; emits the phases' events under `event_host`.
Result<Session> open_session(Run& run, const manifest::Host& host, const std::string& path, const ScanAsk& ask,
                             const std::string& event_host);
/// The scanned tree or a record's, from the cache where it is there, else as a difference to what is.
Result<tree::Tree> fetch_tree(Run& run, Session& session, const format::TreeRequest& what, const content::Digest& full);

/// What the current record names and what is there instead, both by the rules of that record.
struct DriftTrees { tree::Tree recorded, observed; };
Result<DriftTrees> fetch_drift(Run& run, Session& session);

/// Forwards an agent's progress as events, with rate and time left.
class ProgressMeter {
 public:
  ProgressMeter(Dispatcher& dispatcher, std::string host) : dispatcher_(&dispatcher), host_(std::move(host)) {}
  void report(const format::Progress& progress);
  protocol::ProgressSink sink() { return [this](const format::Progress& p) { report(p); }; }

 private:
  Dispatcher* dispatcher_;
  std::string host_;
  Phase phase_ = Phase::connect;
  std::chrono::steady_clock::time_point began_{}, last_{};
  u64 first_bytes_ = 0;
};

/// Emits a phase's begin and end and notes its seconds.
class PhaseTimer {
 public:
  PhaseTimer(Dispatcher& dispatcher, std::string host, Phase phase, std::vector<PhaseSeconds>* seconds);
  void finish(u64 files = 0, u64 bytes = 0);

 private:
  Dispatcher* dispatcher_;
  std::string host_;
  Phase phase_;
  std::vector<PhaseSeconds>* seconds_;  // may be null
  std::chrono::steady_clock::time_point began_;
};

}  // namespace envsync::apply
