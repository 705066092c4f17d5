// SPDX-License-Identifier: MIT
// The Engine behind the façade: one method a verb, all over the same run.
#pragma once

#include <functional>
#include <thread>

#include "apply/host_job.hpp"
#include "apply/report.hpp"

namespace envsync::apply {

using Hosts = std::vector<const manifest::Host*>;

class EngineImpl final : public Engine {
 public:
  explicit EngineImpl(std::string agent_path) : agent_path_(std::move(agent_path)) {}
  tl::expected<ManifestSummary, std::vector<Error>> validate(const ManifestText&) override;
  Report plan(const ManifestText&, const RunOptions&, Observer&, std::stop_token) override;
  Report apply(const ManifestText&, const RunOptions&, Observer&, std::stop_token) override;
  Report verify(const ManifestText&, const RunOptions&, const VerifyOptions&, Observer&, std::stop_token) override;
  Report status(const ManifestText&, const RunOptions&, Observer&, std::stop_token) override;
  Report history(const ManifestText&, const RunOptions&, Observer&, std::stop_token) override;
  Report rollback(const ManifestText&, const RunOptions&, const RollbackOptions&, Observer&, std::stop_token) override;
  Report prune(const ManifestText&, const RunOptions&, const PruneOptions&, Observer&, std::stop_token) override;
  Result<Inspection> inspect(const std::string& place, const RunOptions&, Observer&, std::stop_token) override;
  Result<InitReply> init(const InitRequest&, const RunOptions&, Observer&, std::stop_token) override;

 private:
  Report with_run(const std::string& verb, const ManifestText& text, const RunOptions& options, Observer& observer, std::stop_token stop,
                  const std::function<std::vector<Outcome>(Run&, const Hosts&)>& work);
  /// A run over one place and no manifest. `work` runs in a thread of its own; the place is connected to then.
  Result<void> look(const manifest::Source& place, Reading reading, const RunOptions& options, Observer& observer, std::stop_token stop,
                    const std::function<Result<void>(Run&, Source&)>& work);
  Result<transport::Options> transport_options(const RunOptions& options);
  static Result<std::string> file_digest(const std::string& path);

  /// Reads `hosts_from` of a manifest, beside which it lies; standard input once.
  manifest::ReadHosts hosts_reader(const std::string& manifest);

  std::string agent_path_;
  std::optional<Result<std::string>> input_;
  os::PosixFiles files_;
};

/// Targets whose name one of the globs matches; all without globs. A glob that matches none is an error.
Result<Hosts> select_hosts(const manifest::Manifest& manifest, const std::vector<std::string>& globs);

/// Runs `work` for each host, at most hosts_at_once side by side, in the manifest's order, and emits its outcome. Under
/// on_failure: stop no host is begun after one failed: those are skipped.
std::vector<Outcome> each_host(Run& run, const Hosts& hosts, const std::function<Outcome(const manifest::Host&)>& work);

/// An old generation that only `prune --drop` can do something about.
Error damaged_record(const std::string& host, u32 number);
/// Why a generation cannot be restored; `whole`: one that can, if there is any.
Error content_gone(const std::string& host, u32 number, std::optional<u32> whole);

std::vector<Outcome> mirror(Run& run, const Hosts& hosts, Ending ending);
std::vector<Outcome> roll_back(Run& run, const Hosts& hosts, const RollbackOptions& options);
Outcome verify_host(Run& run, const manifest::Host& host, const VerifyOptions& options);
Outcome status_host(Run& run, const manifest::Host& host);
Outcome history_host(Run& run, const manifest::Host& host);
Outcome prune_host(Run& run, const manifest::Host& host, const PruneOptions& options);

}  // namespace envsync::apply
