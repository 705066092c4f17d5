// SPDX-License-Identifier: MIT
#include "protocol/endpoint.hpp"

#include <atomic>
#include <mutex>

#include <fmt/format.h>

namespace envsync::protocol {

using namespace format;

namespace {

constexpr u32 kFirstRequest = 1;
constexpr std::size_t kTreeBytesMax = 1u << 30;  // LIMIT: as tree::decode_tree

}  // namespace

struct Endpoint::State {
  Connection connection;
  std::function<std::string()> diagnose;
  std::string expected_digest;
  std::atomic<u32> next_request{kFirstRequest + 1};
  std::atomic<double> quickest{0};

  State(std::unique_ptr<channel::Channel> channel, std::function<std::string()> d, std::string e)
      : connection(std::move(channel)), diagnose(std::move(d)), expected_digest(std::move(e)) {}

  Error explain(Error error) const;
  Result<u32> ask(const Request& request);
  Result<Reply> answer(u32 number, const ProgressSink& progress, std::stop_token stop);
  Result<void> check_hello(const Frame& frame) const;
  template <class T>
  Result<T> expect(Result<Reply> reply);
  Result<void> take_packs(u32 number, u64 window, const PackSink& sink, std::stop_token stop);
  template <class T>
  Result<T> call(const Request& request, const ProgressSink& progress, std::stop_token stop);
};

Error Endpoint::State::explain(Error error) const {
  if (error.code != ErrorCode::connection_lost || !diagnose) return error;
  std::string text = diagnose();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return error;
  return std::move(error).cause(printable(text));
}

Result<void> Endpoint::State::check_hello(const Frame& frame) const {
  TRY(const Hello hello, decode_hello(frame.payload));
  if (!expected_digest.empty() && hello.exe_digest != expected_digest)
    return Error{ErrorCode::protocol, "the agent that answered is not the one that was sent"}
        .cause(fmt::format("its digest is {}, this build's is {}", printable(hello.exe_digest), expected_digest));
  return ok();
}

Result<u32> Endpoint::State::ask(const Request& request) {
  const u32 number = next_request++;
  connection.open(number);
  if (auto sent = connection.send(FrameType::request, number, encode(request)); !sent) {
    connection.close(number);
    return explain(connection.ended() ? connection.end_reason() : std::move(sent).error());
  }
  return number;
}

Result<Reply> Endpoint::State::answer(u32 number, const ProgressSink& progress, std::stop_token stop) {
  for (;;) {
    auto frame = connection.next(number, stop);
    if (!frame) {
      if (frame.error().code == ErrorCode::interrupted) (void)connection.send(FrameType::cancel, number, {});
      connection.close(number);
      return explain(std::move(frame).error());
    }
    if (frame->type == FrameType::progress) {
      TRY(const Progress at, decode_progress(frame->payload));
      if (progress) progress(at);
      continue;
    }
    connection.close(number);
    if (frame->type == FrameType::reply) return decode_reply(frame->payload);
    if (frame->type != FrameType::error) return Error{ErrorCode::protocol, "something else came where a reply was due"};
    TRY(Error error, decode_error(frame->payload));
    return error;
  }
}

template <class T>
Result<T> Endpoint::State::expect(Result<Reply> reply) {
  if (!reply) return std::move(reply).error();
  if (T* value = std::get_if<T>(&*reply)) return std::move(*value);
  return Error{ErrorCode::protocol, "the reply does not fit its request"};
}

template <class T>
Result<T> Endpoint::State::call(const Request& request, const ProgressSink& progress, std::stop_token stop) {
  const auto asked = std::chrono::steady_clock::now();
  TRY(const u32 number, ask(request));
  auto reply = answer(number, progress, stop);
  const double took = Seconds(std::chrono::steady_clock::now() - asked).count();
  if (const double before = quickest; before == 0 || took < before) quickest = took;
  return expect<T>(std::move(reply));
}

Endpoint::Endpoint(std::unique_ptr<channel::Channel> channel, std::function<std::string()> diagnose, std::string expected)
    : state_(std::make_unique<State>(std::move(channel), std::move(diagnose), std::move(expected))) {
  state_->connection.open(kFirstRequest);
  state_->connection.start({}, {});
}

Endpoint::~Endpoint() = default;

Result<void> Endpoint::greet(std::stop_token stop) {
  auto frame = state_->connection.next(kFirstRequest, stop);
  if (!frame) return state_->explain(std::move(frame).error());
  if (frame->type != FrameType::hello) return Error{ErrorCode::protocol, "something else came where the agent's hello was due"};
  return state_->check_hello(*frame);
}

Result<ScanReply> Endpoint::first_scan(const ProgressSink& progress, std::stop_token stop) {
  return state_->expect<ScanReply>(state_->answer(kFirstRequest, progress, stop));
}

Result<ScanReply> Endpoint::scan(const ScanRequest& request, const ProgressSink& progress, std::stop_token stop) {
  return state_->call<ScanReply>(request, progress, stop);
}

Result<tree::TreeDelta> Endpoint::tree(const TreeRequest& request, std::stop_token stop) {
  TRY(const u32 number, state_->ask(request));
  auto bytes = state_->connection.receive_stream(number, kTreeBytesMax, stop);
  if (!bytes) {
    state_->connection.close(number);
    return state_->explain(std::move(bytes).error());
  }
  TRY_STATUS(state_->expect<BlobReply>(state_->answer(number, {}, stop)));
  return tree::decode_delta(*bytes);
}

Result<StageReply> Endpoint::stage(const StageRequest& request, const tree::TreeDelta& desired, const std::optional<tree::TreeDelta>& ground,
                                   const std::vector<std::vector<PullItem>>& lying,
                                   const ProgressSink& progress, std::stop_token stop) {
  TRY(const u32 number, state_->ask(request));
  // Where the agent refuses before it has read the delta, sending stops and the answer holds its error.
  (void)state_->connection.send_stream(number, tree::encode_delta(desired), stop);
  if (ground) (void)state_->connection.send_stream(number, tree::encode_delta(*ground), stop);
  for (const auto& items : lying) (void)state_->connection.send_stream(number, encode_pull_items(items), stop);
  return state_->expect<StageReply>(state_->answer(number, progress, stop));
}

Result<SealReply> Endpoint::seal(const ProgressSink& progress, std::stop_token stop) {
  return state_->call<SealReply>(SealRequest{}, progress, stop);
}

Result<CommitReply> Endpoint::commit(const ProgressSink& progress) {
  return state_->call<CommitReply>(CommitRequest{}, progress, {});
}

Result<void> Endpoint::abandon() {
  TRY_STATUS(state_->call<AbandonReply>(AbandonRequest{}, {}, {}));
  return ok();
}

Result<AdoptReply> Endpoint::adopt(const AdoptRequest& request, const std::optional<tree::TreeDelta>& ground) {
  TRY(const u32 number, state_->ask(request));
  if (ground) (void)state_->connection.send_stream(number, tree::encode_delta(*ground));
  return state_->expect<AdoptReply>(state_->answer(number, {}, {}));
}

Result<RecordsReply> Endpoint::records(std::stop_token stop) {
  return state_->call<RecordsReply>(RecordsRequest{}, {}, stop);
}

Result<PruneReply> Endpoint::prune(const PruneRequest& request, std::stop_token stop) {
  return state_->call<PruneReply>(request, {}, stop);
}

Result<ProbeReply> Endpoint::probe(const ProbeRequest& request, std::stop_token stop) {
  return state_->call<ProbeReply>(request, {}, stop);
}

Result<LibrariesReply> Endpoint::libraries(const LibrariesRequest& request, std::stop_token stop) { return state_->call<LibrariesReply>(request, {}, stop); }
Result<SumsReply> Endpoint::sums(const SumsRequest& request, std::stop_token stop) { return state_->call<SumsReply>(request, {}, stop); }

Result<FilesReply> Endpoint::files(const FilesRequest& request, std::stop_token stop) {
  return state_->call<FilesReply>(request, {}, stop);
}

Result<LanesReply> Endpoint::lanes(const LanesRequest& request, std::stop_token stop) { return state_->call<LanesReply>(request, {}, stop); }
Result<LackReply> Endpoint::lack(std::stop_token stop) { return state_->call<LackReply>(LackRequest{}, {}, stop); }

Result<void> Endpoint::join(const std::string& secret, std::stop_token stop) {
  auto joined = state_->call<JoinReply>(JoinRequest{{}, secret}, {}, stop);
  if (joined) return ok();
  // Where the host did not find the session, the first request was answered with why.
  auto first = joined.error().code == ErrorCode::connection_lost ? state_->connection.next(kFirstRequest, stop) : Result<Frame>(joined.error());
  if (!first || first->type != FrameType::error) return std::move(joined).error();
  TRY(Error why, decode_error(first->payload));
  return why;
}

Result<void> Endpoint::State::take_packs(u32 number, u64 window, const PackSink& sink, std::stop_token stop) {
  const auto give_up = [&](Error error) -> Result<void> {
    (void)connection.send(FrameType::cancel, number, {});
    connection.close(number);
    return explain(std::move(error));
  };
  if (auto granted = connection.grant(number, window); !granted) return give_up(std::move(granted).error());
  for (;;) {
    auto frame = connection.next(number, stop);
    if (!frame) return give_up(std::move(frame).error());
    if (frame->type == FrameType::blob_end) break;
    if (frame->type == FrameType::progress) continue;
    if (frame->type == FrameType::error) {
      connection.close(number);
      TRY(Error error, decode_error(frame->payload));
      return error;
    }
    if (frame->type != FrameType::blob) return give_up({ErrorCode::protocol, "something else came where a pack was due"});
    const u64 bytes = frame->payload.size();
    if (auto taken = sink(std::move(frame->payload)); !taken) return give_up(std::move(taken).error());
    if (auto granted = connection.grant(number, bytes); !granted) return give_up(std::move(granted).error());
  }
  TRY_STATUS(expect<BlobReply>(answer(number, {}, stop)));
  return ok();
}

Result<Bytes> Endpoint::delta(const DeltaRequest& request, ByteView list, std::stop_token stop) {
  constexpr std::size_t kListMax = 96u << 20;  // LIMIT: as delta::kListBytesMax
  TRY(const u32 number, state_->ask(request));
  (void)state_->connection.send_stream(number, list, stop);
  auto bytes = state_->connection.receive_stream(number, kListMax, stop);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::interrupted) (void)state_->connection.send(FrameType::cancel, number, {});
    state_->connection.close(number);
    return state_->explain(std::move(bytes).error());
  }
  TRY_STATUS(state_->expect<BlobReply>(state_->answer(number, {}, stop)));
  return bytes;
}

Result<void> Endpoint::pull(const PullRequest& request, const std::vector<PullItem>& items, const PackSink& sink,
                            std::stop_token stop, const std::function<void(u32 number)>& is_open) {
  TRY(const u32 number, state_->ask(request));
  if (is_open) is_open(number);
  (void)state_->connection.send_stream(number, encode_pull_items(items), stop);
  return state_->take_packs(number, kCreditWindow, sink, std::move(stop));
}

Result<void> Endpoint::help_pull(u32 number, const PackSink& sink, std::stop_token stop) {
  TRY(const u32 own, state_->ask(HelpRequest{number}));
  return state_->take_packs(own, kBlobMax, sink, std::move(stop));
}

Result<Endpoint::Put> Endpoint::put() {
  TRY(const u32 number, state_->ask(PutRequest{}));
  return Put(*this, number);
}

Result<void> Endpoint::Put::send(ByteView pack, std::stop_token stop, const Pacer& pacer) {
  Connection& connection = endpoint_->state_->connection;
  auto sent = connection.send_blob(request_, pack, stop, pacer);
  if (sent) return ok();
  if (stop.stop_requested()) return std::move(sent).error();
  // The agent ended the request: its error says why.
  auto reply = endpoint_->state_->answer(request_, {}, stop);
  if (!reply) return std::move(reply).error();
  return std::move(sent).error();
}

Result<PutReply> Endpoint::Put::finish(const ProgressSink& progress, std::stop_token stop) {
  (void)endpoint_->state_->connection.send(FrameType::blob_end, request_, {});
  return endpoint_->state_->expect<PutReply>(endpoint_->state_->answer(request_, progress, stop));
}

bool Endpoint::ended() const { return state_->connection.ended(); }
double Endpoint::round_trip() const {
  const double pong = state_->connection.round_trip(), answer = state_->quickest;
  return pong > 0 && answer > 0 ? std::min(pong, answer) : std::max(pong, answer);
}
u64 Endpoint::bytes_sent() const { return state_->connection.bytes_sent(); }
u64 Endpoint::bytes_received() const { return state_->connection.bytes_received(); }

Bytes first_request(const ScanRequest& request) { return encode(Request{request}); }
Bytes first_join(const std::string& name) { return encode(Request{JoinRequest{name, {}}}); }

}  // namespace envsync::protocol
