// SPDX-License-Identifier: MIT
// The controller's interface to one agent. Calls block; different calls may run in different threads at once. After an
// error of the connection every call fails with connection_lost and the host's own cause.
#pragma once

#include "content/pack.hpp"
#include "protocol/frames.hpp"
#include "tree/tree.hpp"

namespace envsync::protocol {

using ProgressSink = std::function<void(const format::Progress&)>;

class Endpoint {
 public:
  /// A request that the agent was given at its start is request 1; its reply is taken with first_scan(). `diagnose` gives what
  /// the transport knows when the connection ends.
  Endpoint(std::unique_ptr<channel::Channel> channel, std::function<std::string()> diagnose, std::string expected_exe_digest);
  ~Endpoint();

  /// Takes the agent's hello and checks that it is this build. Before anything else, once.
  Result<void> greet(std::stop_token);
  Result<format::ScanReply> first_scan(const ProgressSink&, std::stop_token);
  Result<format::ScanReply> scan(const format::ScanRequest&, const ProgressSink&, std::stop_token);
  /// The delta, encoded, to one of the bases.
  Result<tree::TreeDelta> tree(const format::TreeRequest&, std::stop_token);
  /// `lying`: what lies in each of the request's host_folders.
  Result<format::StageReply> stage(const format::StageRequest&, const tree::TreeDelta& desired, const std::optional<tree::TreeDelta>& ground,
                                   const std::vector<std::vector<format::PullItem>>& lying,
                                   const ProgressSink&, std::stop_token);
  Result<format::SealReply> seal(const ProgressSink&, std::stop_token);
  /// Not stoppable: once asked, the agent finishes alone.
  Result<format::CommitReply> commit(const ProgressSink&);
  Result<void> abandon();
  Result<format::AdoptReply> adopt(const format::AdoptRequest&, const std::optional<tree::TreeDelta>& ground);
  Result<format::RecordsReply> records(std::stop_token);
  Result<format::PruneReply> prune(const format::PruneRequest&, std::stop_token);
  Result<format::ProbeReply> probe(const format::ProbeRequest&, std::stop_token);
  Result<format::SumsReply> sums(const format::SumsRequest&, std::stop_token);
  Result<format::LibrariesReply> libraries(const format::LibrariesRequest&, std::stop_token);
  Result<format::FilesReply> files(const format::FilesRequest&, std::stop_token);

  /// Lets further connections join; the name that they are to ask for.
  Result<format::LanesReply> lanes(const format::LanesRequest&, std::stop_token);
  /// On a further connection, after greet() and before anything else.
  Result<void> join(const std::string& secret, std::stop_token);
  /// After every put is over, one that was lost with its connection included: what has not come.
  Result<format::LackReply> lack(std::stop_token);

  /// Streams packs of the items to the sink, which returns when the pack is taken: that is the back-pressure.
  using PackSink = std::function<Result<void>(Buffer pack)>;
  /// `is_open` is told the request's number before anything comes.
  Result<void> pull(const format::PullRequest&, const std::vector<format::PullItem>&, const PackSink&, std::stop_token,
                    const std::function<void(u32 number)>& is_open = {});
  /// Takes packs of a pull that goes on over the control connection; each pack comes once.
  Result<void> help_pull(u32 number, const PackSink&, std::stop_token);
  /// An open put: packs go in with send(), finish() waits until all are written.
  class Put {
   public:
    Put(Endpoint& endpoint, u32 request) : endpoint_(&endpoint), request_(request) {}
    Result<void> send(ByteView pack, std::stop_token, const Pacer& pacer = {});
    Result<format::PutReply> finish(const ProgressSink&, std::stop_token);

   private:
    Endpoint* endpoint_;  // outlives this
    u32 request_;
  };
  Result<Put> put();
  /// One exchange about changed files: a list for a list.
  Result<Bytes> delta(const format::DeltaRequest&, ByteView list, std::stop_token);

  /// The connection is over.
  bool ended() const;
  /// Seconds that the quickest answer to a PING or to a request took so far; 0: none yet.
  double round_trip() const;
  u64 bytes_sent() const;
  u64 bytes_received() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The bytes for transport::connect(): request 1.
Bytes first_request(const format::ScanRequest&);
/// Of a further connection, to the session that goes by the name.
Bytes first_join(const std::string& name);

}  // namespace envsync::protocol
