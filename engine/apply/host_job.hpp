// SPDX-License-Identifier: MIT
// One target's way: connect and scan, plan, stage, move what is missing, seal, commit. Ends with an outcome, always.
#pragma once

#include "apply/source.hpp"
#include "plan/plan.hpp"

namespace envsync::apply {

enum class Ending : u8 { plan_only, commit };

/// What the target should become: the source's tree, or a record of its own.
struct Goal {
  Source* source = nullptr;              // null: a rollback
  Ending ending = Ending::commit;
  // rollback, decided per host by the caller
  std::optional<u32> to_generation;
  std::string undoes;                    // run
};

class HostJob {
 public:
  HostJob(Run& run, const manifest::Host& target, Goal goal);
  Outcome work();
  /// For a rollback whose session is open already.
  Outcome work_on(Session session);

 private:
  Result<void> apply();
  Result<void> open();
  Result<const tree::Tree*> wanted_tree();
  Result<bool> settle_unchanged();
  Result<std::vector<std::string>> describe_drift();
  bool refuses_drift() const;
  Result<void> make_plan(const tree::Tree& wanted);
  Result<plan::Interpreter> probe_interpreter(const tree::Tree& wanted);
  Result<void> consent();
  PlanEvent plan_event() const;
  Result<void> stage();
  Result<void> transfer(const std::vector<u32>& wanted);
  Result<void> commit();
  Result<void> settle_lost_commit(Error lost);
  Result<void> adopt_as_is();
  format::RecordInfo record_head() const;
  void account();
  Outcome finish(Result<void> result);

  Run* run_;                             // outlives this
  const manifest::Host* target_;         // outlives this
  Goal goal_;
  Outcome outcome_;
  std::optional<Session> session_;
  ProgressMeter meter_;
  tree::Tree observed_;
  tree::Tree record_tree_;               // rollback
  content::Digest wanted_full_;
  bool is_same_host_ = false;
  plan::Consent consent_;
  std::optional<plan::HostPlan> plan_;
  format::StageReply staged_;
  u64 pulled_bytes_ = 0;
  bool has_staged_ = false;
};

}  // namespace envsync::apply
