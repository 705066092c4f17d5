// SPDX-License-Identifier: MIT
// One target's way: connect and scan, plan, stage, move what is missing, seal, commit. Ends with an outcome, always.
#pragma once

#include "apply/delta_road.hpp"
#include "apply/layers.hpp"
#include "plan/plan.hpp"
#include "python/relocate.hpp"

namespace envsync::apply {

enum class Ending : u8 { plan_only, commit };

/// What the target should become: the source's tree with overlays laid onto it, or a record of its own.
struct Goal {
  Source* source = nullptr;              // null: a rollback, or what the target has
  std::vector<Layer> layers;             // of all targets; those whose origin is the target's own folder have none yet
  Ending ending = Ending::commit;
  // rollback, decided per host by the caller
  std::optional<u32> to_generation;
  std::string undoes;                    // run
  // after a connection of this run was lost
  bool is_retry = false;
  std::optional<plan::Consent> consent;  // given before
};

class HostJob {
 public:
  HostJob(Run& run, const manifest::Host& target, Goal goal);
  Outcome work();
  /// For a rollback whose session is open already.
  Outcome work_on(Session session);
  /// What was agreed to, by flags or answers.
  const plan::Consent& given() const { return consent_; }
  /// Bytes of packs that went to the target.
  u64 moved() const { return pulled_bytes_; }

 private:
  Result<void> apply();
  Result<void> open();
  void open_layers();
  bool is_rollback() const { return goal_.to_generation.has_value(); }
  bool is_on_target() const { return goal_.source == nullptr && !is_rollback(); }
  const std::string& environment_root() const;
  Result<const tree::Tree*> wanted_tree();
  Result<const tree::Tree*> record_tree();
  Result<const tree::Tree*> wanted_on_target();
  Result<tree::Tree> recorded_ground(const format::RecordInfo& record, const tree::Tree& recorded);
  Result<python::Sums> sums_here(const tree::Tree& tree, const std::vector<tree::RelPath>& paths);
  Result<std::optional<tree::TreeDelta>> ground_delta(const tree::Tree& tree);
  Result<const tree::Tree*> lay(const tree::Tree& base, const BaseReader& reader, const format::EnvironmentFacts& environment);
  const std::string& source_root() const;
  bool relocates() const;
  Result<const tree::Tree*> relocated_source();
  Result<void> find_in_source();
  content::Digest key_of_findings(const tree::Tree& tree, const std::vector<tree::RelPath>& path_files) const;
  Source* provider_of(const tree::RelPath& path) const;
  tree::RelPath path_there(const tree::RelPath& path) const;
  Result<void> find_same_hosts();
  bool is_on_same_host(const Source* place) const;
  std::vector<Source*> places() const;   // the source and the origins
  bool is_all_on_host() const;
  bool is_any_remote() const;
  std::string source_text() const;
  std::string layers_text() const;
  u64 bytes_to_send() const;
  struct HostFolder { std::string path; std::vector<format::PullItem> items; };
  using HostFolders = std::vector<HostFolder>;
  HostFolders host_folders() const;
  Result<bool> settle_unchanged();
  Result<std::vector<std::string>> describe_drift();
  bool refuses_drift() const;
  Result<python::SmallFiles> texts_here(const tree::Tree& tree);
  Result<const python::SmallFiles*> texts_of_wanted(const tree::Tree& wanted);
  void read_packages(const tree::Tree& wanted);
  Result<void> make_plan(const tree::Tree& wanted);
  Result<plan::Interpreter> probe_interpreter(const tree::Tree& wanted);
  Result<void> consent();
  PlanEvent plan_event() const;
  Result<std::vector<Finding>> check_records();
  Result<void> settle_records(std::vector<Finding> findings);
  Result<void> stage();
  Result<void> transfer(const std::vector<u32>& wanted);
  /// An open put, and how far it is.
  struct Delivery {
    std::unique_ptr<Lanes::Put> put;
    format::Progress at;
    std::atomic<Arrived> arrived = Arrived::all;
    std::mutex mutex = {};  // at, and what is counted with it: changed files go beside the others
  };
  protocol::Pacer pacer();
  Result<void> pull_from(Source& place, const std::vector<format::PullItem>& items, Delivery& delivery);
  std::unique_ptr<Lanes::Put> open_put() { return std::make_unique<Lanes::Put>(*session_->lanes, run_->stop, pacer()); }
  void expect(const std::map<Source*, std::vector<format::PullItem>>& items);
  Result<void> deliver(Lanes::Put& put, std::shared_ptr<const Buffer> pack, Delivery& delivery);
  std::unique_ptr<DeltaRoad> choose_deltas(std::map<Source*, std::vector<format::PullItem>>& items, DeltaRoad::Deliver deliver);
  Result<void> pull_lacking(Delivery& delivery);
  Result<std::map<Source*, std::vector<format::PullItem>>> items_of(const std::vector<u32>& wanted, const std::vector<format::SegmentRange>& missing) const;
  std::string way_label() const;
  delta::Way way() const;
  void note_rate(double rate);
  void explain(std::string what) const;
  void explain_choice(std::string_view kind, u64 bytes, bool is_forced, const delta::Choice& choice) const;
  void explain_deltas(const DeltaCounts& counts) const;
  Error lacks_content(std::vector<std::string> paths) const;
  Result<void> put_made(const std::vector<format::PullItem>& items, Delivery& delivery);
  Result<void> commit();
  Result<void> settle_lost_commit(Error lost);
  Result<void> adopt_as_is();
  format::RecordInfo record_head() const;
  void account();
  void note_connections(const std::string& host, const Lanes& lanes);
  Outcome finish(Result<void> result);

  Run* run_;                             // outlives this
  const manifest::Host* target_;         // outlives this
  Goal goal_;
  Outcome outcome_;
  std::optional<Session> session_;
  ProgressMeter meter_;
  tree::Tree observed_;
  tree::Tree record_tree_;               // rollback
  std::optional<tree::Tree> ground_;     // of the record to be written
  std::vector<std::string> discarded_;   // under `source: target`: changes since the record that would be lost
  content::Digest wanted_full_;
  std::vector<std::unique_ptr<Source>> own_origins_;
  std::vector<Layer> layers_;            // for this target
  Layered layered_;
  std::optional<python::Relocation> relocation_;  // of the source, for this target's path
  std::optional<python::DistributionSet> before_, after_;  // borrow observed_ and the wanted tree
  std::vector<const Source*> same_host_; // places that the target's agent reads itself
  plan::Consent consent_;
  std::optional<plan::HostPlan> plan_;
  format::StageReply staged_;
  std::optional<Pace> pace_;             // of this host
  u64 pulled_bytes_ = 0;
  bool has_staged_ = false;
  std::map<Source*, Feed::Ticket> tickets_;  // of places that content may be asked of
};

/// One target, from the source. A connection that is lost before the swap is made anew for settings.retry_for, and the run goes on with
/// what came.
Outcome mirror_host(Run& run, const manifest::Host& host, Goal goal);

}  // namespace envsync::apply
