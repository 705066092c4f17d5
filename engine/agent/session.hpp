// SPDX-License-Identifier: MIT
// What one connection knows: the scanned root and, on a target, its state, lock and transaction. Handlers of different
// requests run in threads of their own; those that change the session take its mutex.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "os/files.hpp"
#include "protocol/frames.hpp"
#include "scan/scan.hpp"
#include "store/state.hpp"
#include "store/transaction.hpp"
#include "store/tree_cache.hpp"

namespace envsync::agent {

class Session {
 public:
  Session(protocol::Connection& connection, os::Files& files);
  ~Session();

  /// Handles a request and sends its reply or its error.
  void handle(u32 number, ByteView payload);
  /// The connection ended and no handler runs: keeps what a later run can use.
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

  Result<format::Reply> dispatch(u32 number, const format::Request& request);
  Result<format::Reply> on(u32 number, const format::ScanRequest&);
  Result<format::Reply> on(u32 number, const format::TreeRequest&);
  Result<format::Reply> on(u32 number, const format::PullRequest&);
  Result<format::Reply> on(u32 number, const format::StageRequest&);
  Result<format::Reply> on(u32 number, const format::PutRequest&);
  Result<format::Reply> on(u32 number, const format::SealRequest&);
  Result<format::Reply> on(u32 number, const format::CommitRequest&);
  Result<format::Reply> on(u32 number, const format::AbandonRequest&);
  Result<format::Reply> on(u32 number, const format::AdoptRequest&);
  Result<format::Reply> on(u32 number, const format::RecordsRequest&);
  Result<format::Reply> on(u32 number, const format::PruneRequest&);
  Result<format::Reply> on(u32 number, const format::FilesRequest&);
  Result<format::Reply> on(u32 number, const format::ProbeRequest&);
  Result<format::Reply> on(u32 number, const format::SumsRequest&);
  Result<format::Reply> on(u32 number, const format::LibrariesRequest&);

  Result<void> open_source(u32 number, Root& root, format::ScanReply& reply);
  Result<void> open_wheels(u32 number, Root& root, format::ScanReply& reply);
  Result<content::Digest> digest_of_wheel(scan::StatCache& cache, int fd, std::string_view name) const;
  Result<void> open_target(Root& root, format::ScanReply& reply);
  Result<void> scan_root(u32 number, Root& root, format::ScanReply& reply);
  Result<void> scan_target(u32 number, Root& root, format::ScanReply& reply);
  Result<scan::Scan> scan_by(u32 number, Root& root, const std::vector<std::string>& exclude, tree::Bytecode bytecode, const tree::ComparePolicy& policy);
  Result<void> describe_state(u32 number, Root& root, format::ScanReply& reply);
  Result<void> describe_record(u32 number, Root& root, const store::RecordHead& head, format::ScanReply& reply);
  Result<void> lock_target(Root& root, double wait_seconds, std::vector<std::string>& recovered);
  Result<void> make_state();
  Result<store::Begin> begin_of(const format::StageRequest& request, const tree::TreeDelta& delta, std::vector<store::HostFolder> folders) const;
  store::StepSink steps(u32 number);
  void send_progress(u32 number, const format::Progress& progress);
  void save_cache(Root& root);

  protocol::Connection* connection_;  // outlives this
  os::Files* files_;                  // outlives this
  store::TreeCache trees_;
  std::mutex mutex_;                  // root_ and transaction_
  std::optional<Root> root_;
  std::optional<store::Transaction> transaction_;
};

/// The environment's own words about its interpreter, read beneath `root_fd` and on this host.
format::EnvironmentFacts environment_facts(int root_fd, const std::string& root_path);
format::RecordInfo info_of(const store::RecordHead& head);

/// sha256 of each path beneath `root_fd`; none where it cannot be read.
format::SumsReply sums_of(int root_fd, const std::vector<std::string>& paths, std::stop_token stop);

/// Streams packs of the items, read beneath `root_fd`, under the request's credit. Reads and compresses on every core; packs
/// go out in the order of the items.
Result<void> send_packs(protocol::Connection& connection, u32 number, int root_fd, const std::vector<format::PullItem>& items,
                        std::optional<int> force_level, std::stop_token stop);
/// Takes packs from the request's blobs and puts them with several threads, until blob_end.
Result<u64> receive_packs(protocol::Connection& connection, u32 number, store::Transaction& transaction,
                          const std::function<void(u64 bytes)>& progress);

}  // namespace envsync::agent
