// SPDX-License-Identifier: MIT
// The requests that build and commit a target's new tree. What they do is store/'s; here values from the wire meet it.
#include <malloc.h>

#include <fmt/format.h>

#include "agent/session.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"

namespace envsync::agent {

using namespace format;

namespace {

constexpr std::size_t kDeltaMax = 1u << 30;  // LIMIT: as tree::decode_delta
constexpr std::size_t kItemsMax = 512u << 20;  // LIMIT: encoded items

Error no_scan() { return {ErrorCode::protocol, "a change was asked for before a scan of a target"}; }
Error no_transaction() { return {ErrorCode::protocol, "there is no staged tree on this connection"}; }

store::RecordHead head_of(const RecordInfo& info, const ScanRequest& scan) {
  store::RecordHead head;
  head.policy = scan.policy;
  head.exclude = scan.exclude;
  head.bytecode = scan.bytecode;
  head.run = info.run;
  head.plan_digest = info.plan_digest;
  head.committed_at = info.committed_at;
  head.operator_name = info.operator_name;
  head.manifest = info.manifest;
  head.name = info.name;
  head.source = info.source;
  head.restores = info.restores;
  head.undoes = info.undoes;
  return head;
}

}  // namespace

Result<store::Begin> Session::begin_of(const StageRequest& request, const tree::TreeDelta& delta, std::vector<store::HostFolder> folders) const {
  store::Begin begin;
  TRY(begin.desired, tree::apply_delta(root_->scan.tree, delta));
  begin.commit_root = request.commit_root;
  begin.head = head_of(request.head, root_->request);
  begin.adopt = request.adopt;
  begin.preserve_owner = request.preserve_owner;
  begin.write_mtime = request.write_mtime;
  begin.drop_unmanaged = request.drop_unmanaged;
  begin.host_folders = std::move(folders);
  begin.keep_generations = request.keep_generations;
  begin.verify_staged = request.verify_staged;
  begin.use_local_content = request.use_local_content;
  begin.least = request.least;
  return begin;
}

/// Makes the state folder where it is missing, or what of it a run that died while making it left out, and takes the lock.
Result<void> Session::make_state() {
  const bool existed = root_->state->exists();
  TRY(store::Place place, store::resolve_place(root_->path));
  TRY(store::State state, store::State::open(*files_, std::move(place), store::OpenMode::create));
  root_->state = std::move(state);
  if (root_->lock) return ok();
  std::vector<std::string> recovered;
  TRY_STATUS(lock_target(*root_, root_->request.lock_wait_seconds, recovered));
  TRY(const auto heads, root_->state->heads());
  if (existed || heads.empty()) return ok();
  return Error{ErrorCode::changed_meanwhile, fmt::format("another run committed '{}' while this one planned", printable(root_->path))}
      .note("this run changed nothing")
      .hint("run again");
}

Result<Reply> Session::on(Call call, const StageRequest& request) {
  // What came over the wire is gone by then: the memory of another tree, which a long transfer shall not hold.
  after_reply([] { ::malloc_trim(0); });
  TRY(const Bytes encoded, call.connection->receive_stream(call.number, kDeltaMax, call.stop()));
  TRY(const tree::TreeDelta delta, tree::decode_delta(encoded));
  std::optional<tree::TreeDelta> ground;
  if (request.has_ground) {
    TRY(const Bytes bytes, call.connection->receive_stream(call.number, kDeltaMax, call.stop()));
    TRY(ground, tree::decode_delta(bytes));
  }
  std::vector<store::HostFolder> folders;
  for (const std::string& path : request.host_folders) {
    TRY(const Bytes list, call.connection->receive_stream(call.number, kItemsMax, call.stop()));
    TRY(const std::vector<PullItem> items, decode_pull_items(list));
    store::HostFolder& folder = folders.emplace_back(store::HostFolder{os::expand_home(path), {}});
    for (const PullItem& item : items) folder.files.emplace_back(item.want, item.path);
  }
  const std::lock_guard lock(mutex_);
  if (!root_ || !root_->state || transaction_) return no_scan();
  const bool is_new = !root_->state->exists();
  TRY_STATUS(make_state());
  TRY(store::Begin begin, begin_of(request, delta, std::move(folders)));
  if (ground) {
    TRY(begin.ground, tree::apply_delta(begin.desired, *ground));
  }
  begin.stop = call.stop();
  trees_.keep(root_->path, begin.desired, delta.result);
  auto transaction = store::Transaction::begin(*root_->state, *root_->lock, std::move(begin), std::move(root_->scan), root_->cache, steps(call));
  if (!transaction) {
    // A place that can never be committed to is not marked as one of ours.
    if (is_new && transaction.error().code == ErrorCode::place_refused) {
      (void)store::prune(*root_->state, std::move(*root_->lock), {.keep = {}, .drop = {}, .all = true});
      root_->lock.reset();
    }
    return std::move(transaction).error();
  }
  transaction_.emplace(std::move(*transaction));
  const store::Needs& needs = transaction_->needs();
  StageReply reply;
  reply.wanted = needs.wanted;
  for (const store::MissingSegments& range : needs.missing) reply.missing.push_back({range.want, range.first, range.count});
  reply.wanted_bytes = needs.wanted_bytes;
  reply.linked = needs.linked;
  reply.copied = needs.copied;
  reply.bytes_read = needs.bytes_read;
  reply.bytes_written = needs.bytes_written;
  reply.guarantee = needs.guarantee;
  reply.in_use = needs.in_use;
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call call, const PutRequest&) {
  store::Transaction* transaction = nullptr;
  u64 total = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!transaction_) return no_transaction();
    transaction = &*transaction_;
    total = transaction->needs().wanted_bytes;
  }
  auto step = steps(call);
  TRY(const u64 written, puts_.receive(*call.connection, call.number, *transaction, [&](u64 bytes) {
        step({Phase::transfer, 0, 0, bytes, total});
      }));
  return Reply{PutReply{written}};
}

Result<Reply> Session::on(Call, const LackRequest&) {
  puts_.end_all();
  const std::lock_guard lock(mutex_);
  if (!transaction_) return no_transaction();
  TRY(store::Lack lack, transaction_->lack());
  LackReply reply{std::move(lack.wanted), {}, lack.wanted_bytes};
  for (const store::MissingSegments& range : lack.missing) reply.missing.push_back({range.want, range.first, range.count});
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call call, const SealRequest&) {
  const std::lock_guard lock(mutex_);
  if (!transaction_) return no_transaction();
  TRY_STATUS(transaction_->seal(steps(call)));
  return Reply{SealReply{}};
}

Result<Reply> Session::on(Call call, const CommitRequest&) {
  const std::lock_guard lock(mutex_);
  if (!transaction_) return no_transaction();
  TRY_STATUS(transaction_->commit(steps(call)));
  TRY(const store::Accepted accepted, transaction_->accept(steps(call)));
  transaction_.reset();
  CommitReply reply;
  reply.generation = accepted.generation;
  reply.adopted = accepted.adopted;
  reply.guarantee = accepted.guarantee;
  reply.recovery_pending = accepted.recovery_pending;
  reply.warnings = accepted.warnings;
  reply.bytes_read = accepted.bytes_read;
  reply.bytes_written = accepted.bytes_written;
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call, const AbandonRequest&) {
  puts_.end_all();
  const std::lock_guard lock(mutex_);
  if (!transaction_) return Reply{AbandonReply{}};
  auto abandoned = transaction_->abandon();
  transaction_.reset();
  if (!abandoned) return std::move(abandoned).error();
  return Reply{AbandonReply{}};
}

Result<Reply> Session::on(Call call, const AdoptRequest& request) {
  Bytes bytes;
  if (request.has_ground) {
    TRY(bytes, call.connection->receive_stream(call.number, kDeltaMax, call.stop()));
  }
  const std::lock_guard lock(mutex_);
  if (!root_ || !root_->state || transaction_) return no_scan();
  TRY_STATUS(make_state());
  std::optional<tree::Tree> ground;
  if (request.has_ground) {
    TRY(const tree::TreeDelta delta, tree::decode_delta(bytes));
    TRY(ground, tree::apply_delta(root_->scan.tree, delta));
  }
  TRY(const u32 generation, store::adopt(*root_->state, *root_->lock, head_of(request.head, root_->request), root_->scan.tree, ground ? &*ground : nullptr));
  save_cache(*root_);
  return Reply{AdoptReply{generation}};
}

Result<Reply> Session::on(Call, const RecordsRequest&) {
  const std::lock_guard lock(mutex_);
  if (!root_ || !root_->state) return no_scan();
  RecordsReply reply;
  if (!root_->state->exists()) return Reply{std::move(reply)};
  TRY(const auto heads, root_->state->heads());
  TRY(const auto holdings, root_->state->holdings(root_->scan.tree));
  for (const store::RecordHead& head : heads) {
    RecordInfo info = info_of(head);
    for (const auto& holding : holdings) {
      if (holding.number != head.number) continue;
      info.exclusive_bytes = holding.exclusive_bytes;
      info.missing = holding.missing;
    }
    reply.records.push_back(std::move(info));
  }
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call, const PruneRequest& request) {
  const std::lock_guard lock(mutex_);
  if (!root_ || !root_->state || transaction_) return no_scan();
  PruneReply reply;
  if (!root_->state->exists()) return Reply{std::move(reply)};
  if (!root_->lock) return Error{ErrorCode::protocol, "pruning was asked for without the lock"};
  store::Lock held = std::move(*root_->lock);
  root_->lock.reset();
  TRY(const store::Pruned pruned, store::prune(*root_->state, std::move(held), {request.keep, request.drop, request.all}));
  reply.generations = pruned.generations;
  reply.contents = pruned.contents;
  reply.bytes_freed = pruned.bytes_freed;
  return Reply{std::move(reply)};
}

}  // namespace envsync::agent
