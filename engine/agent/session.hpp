// SPDX-License-Identifier: MIT
// What one controller's connections know together: the scanned root and, on a target, its state, lock and transaction. Handlers of
// different requests run in threads of their own; those that change the session take its mutex.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "agent/bulk.hpp"
#include "agent/delta.hpp"
#include "os/files.hpp"
#include "protocol/frames.hpp"
#include "scan/scan.hpp"
#include "store/state.hpp"
#include "store/transaction.hpp"
#include "store/tree_cache.hpp"

namespace envsync::agent {

/// A request at work, and the connection that it came over.
struct Call {
  protocol::Connection* connection;  // outlives the call
  u32 number;
  bool is_further = false;           // not the control connection
  std::stop_token stop() const { return connection->stop_of(number); }
};

class Joins;

class Session {
 public:
  /// `joins`, which may be null, takes further connections.
  Session(os::Files& files, Joins* joins);
  ~Session();

  /// Handles a request and sends its reply or its error.
  void handle(Call call, ByteView payload);
  /// The connections ended and no handler runs: keeps what a later run can use.
  void finish();

 private:
  struct Root {
    format::ScanRequest request;
    std::string path;             // absolute, resolved
    os::Fd fd;                    // not open: absent
    scan::Scan scan;              // moved into the transaction at stage
    std::optional<tree::Tree> recorded_view;  // as the current record's rules see it, where they see something else
    scan::StatCache cache;
    u64 attributes_left = 0;
    std::optional<store::State> state;  // targets
    std::optional<store::Lock> lock;
  };

  Result<format::Reply> dispatch(Call call, const format::Request& request);
  Result<format::Reply> on(Call call, const format::ScanRequest&);
  Result<format::Reply> on(Call call, const format::TreeRequest&);
  Result<format::Reply> on(Call call, const format::PullRequest&);
  Result<format::Reply> on(Call call, const format::StageRequest&);
  Result<format::Reply> on(Call call, const format::PutRequest&);
  Result<format::Reply> on(Call call, const format::SealRequest&);
  Result<format::Reply> on(Call call, const format::CommitRequest&);
  Result<format::Reply> on(Call call, const format::AbandonRequest&);
  Result<format::Reply> on(Call call, const format::AdoptRequest&);
  Result<format::Reply> on(Call call, const format::RecordsRequest&);
  Result<format::Reply> on(Call call, const format::PruneRequest&);
  Result<format::Reply> on(Call call, const format::FilesRequest&);
  Result<format::Reply> on(Call call, const format::ProbeRequest&);
  Result<format::Reply> on(Call call, const format::SumsRequest&);
  Result<format::Reply> on(Call call, const format::LibrariesRequest&);
  Result<format::Reply> on(Call call, const format::LanesRequest&);
  Result<format::Reply> on(Call call, const format::JoinRequest&);
  Result<format::Reply> on(Call call, const format::LackRequest&);
  Result<format::Reply> on(Call call, const format::DeltaRequest&);
  Result<format::Reply> on(Call call, const format::HelpRequest&);

  Result<void> open_source(Call call, Root& root, format::ScanReply& reply);
  Result<void> open_wheels(Call call, Root& root, format::ScanReply& reply);
  Result<content::Digest> digest_of_wheel(scan::StatCache& cache, int fd, std::string_view name) const;
  Result<void> open_target(Root& root, format::ScanReply& reply);
  Result<void> scan_root(Call call, Root& root, format::ScanReply& reply);
  Result<void> scan_target(Call call, Root& root, format::ScanReply& reply);
  Result<scan::Scan> scan_by(Call call, Root& root, const std::vector<std::string>& exclude, tree::Bytecode bytecode, const tree::ComparePolicy& policy);
  Result<void> describe_state(Call call, Root& root, format::ScanReply& reply);
  Result<void> describe_record(Call call, Root& root, const store::RecordHead& head, format::ScanReply& reply);
  Result<void> lock_target(Root& root, double wait_seconds, std::vector<std::string>& recovered);
  Result<void> make_state();
  Result<store::Begin> begin_of(const format::StageRequest& request, const tree::TreeDelta& delta, std::vector<store::HostFolder> folders) const;
  store::StepSink steps(Call call);
  /// What need not be done before the reply is sent.
  void after_reply(std::function<void()> work);
  void send_progress(Call call, const format::Progress& progress);
  Result<store::Transaction*> staged();
  Result<Bytes> chunk_lists(ByteView blob, delta::Grain grain, int root_fd, std::stop_token stop);
  Result<Bytes> delta_step(const format::DeltaRequest& request, ByteView blob, int root_fd, std::stop_token stop);
  void save_cache(Root& root);
  void save_host_cache();

  os::Files* files_;                  // outlives this
  Joins* joins_;                      // outlives this
  store::TreeCache trees_;
  Pulls pulls_;
  Puts puts_;
  std::mutex mutex_;                  // root_, transaction_ and fine_cuts_
  FineCuts fine_cuts_;                // of the bases, for the copies that come next
  std::optional<Root> root_;
  std::optional<store::Transaction> transaction_;
  std::mutex later_mutex_;            // later_
  std::vector<std::function<void()>> later_;
};

/// The environment's own words about its interpreter, read beneath `root_fd` and on this host.
format::EnvironmentFacts environment_facts(int root_fd, const std::string& root_path);
format::RecordInfo info_of(const store::RecordHead& head);

/// sha256 of each path beneath `root_fd`; none where it cannot be read.
format::SumsReply sums_of(int root_fd, const std::vector<std::string>& paths, std::stop_token stop);

}  // namespace envsync::agent
