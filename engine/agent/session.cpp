// SPDX-License-Identifier: MIT
#include "agent/session.hpp"

#include <algorithm>

#include <malloc.h>

#include <fmt/format.h>

#include "agent/joins.hpp"
#include "agent/libraries.hpp"
#include "base/guard.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"
#include "store/layout.hpp"

namespace envsync::agent {

using namespace format;

Session::Session(os::Files& files, Joins* joins) : files_(&files), joins_(joins), trees_(files, os::cache_folder()) {}

Session::~Session() = default;

void Session::handle(Call call, ByteView payload) {
  auto reply = [&]() -> Result<Reply> {
    TRY(const Request request, decode_request(payload));
    return dispatch(call, request);
  }();
  // Where the connection has ended nobody listens; the work that had to be done is done.
  if (reply) (void)call.connection->send(protocol::FrameType::reply, call.number, encode(*reply));
  else (void)call.connection->send(protocol::FrameType::error, call.number, encode(reply.error()));
  call.connection->close(call.number);
  std::vector<std::function<void()>> later;
  {
    const std::lock_guard lock(later_mutex_);
    later.swap(later_);
  }
  for (const std::function<void()>& work : later) work();
}

void Session::after_reply(std::function<void()> work) {
  const std::lock_guard lock(later_mutex_);
  later_.push_back(std::move(work));
}

Result<Reply> Session::dispatch(Call call, const Request& request) {
  return std::visit([&](const auto& r) { return on(call, r); }, request);
}

void Session::finish() {
  const std::lock_guard lock(mutex_);
  if (transaction_) (void)transaction_->abandon();
  transaction_.reset();
  root_.reset();
}

void Session::send_progress(Call call, const Progress& progress) {
  (void)call.connection->send(protocol::FrameType::progress, call.number, encode(progress));
}

store::StepSink Session::steps(Call call) {
  // At most ten a second: a progress frame costs a write.
  return [this, call, last = Deadline{}](const store::Step& step) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(100)) return;
    last = now;
    send_progress(call, {step.phase, step.files_done, step.files_total, step.bytes_done, step.bytes_total});
  };
}

Result<Reply> Session::on(Call call, const TreeRequest& request) {
  tree::Tree tree;
  {
    const std::lock_guard lock(mutex_);
    if (!root_) return Error{ErrorCode::protocol, "a tree was asked for before a scan"};
    if (request.kind == TreeKind::record) {
      if (!root_->state) return Error{ErrorCode::no_generation, "there is no generation here"};
      TRY(store::Record record, root_->state->load(request.record));
      tree = std::move(record.tree);
    } else if (request.kind == TreeKind::ground) {
      if (!root_->state) return Error{ErrorCode::no_generation, "there is no generation here"};
      TRY(store::Record record, root_->state->load(request.record));
      if (!record.ground) return Error{ErrorCode::protocol, "a ground was asked for where the record names none"};
      tree = std::move(*record.ground);
    } else if (request.kind == TreeKind::recorded_view && root_->recorded_view) {
      tree = *root_->recorded_view;
    } else {
      tree = root_->scan.tree;
      after_reply([this, path = root_->path, tree] { trees_.keep(path, tree, tree.full()); });
    }
  }
  tree::Tree base;
  for (const Digest& held : request.bases) {
    if (auto found = trees_.find(held)) {
      base = std::move(*found);
      break;
    }
  }
  const Bytes delta = tree::encode_delta(tree::make_delta(base, tree));
  TRY_STATUS(call.connection->send_stream(call.number, delta, call.stop()));
  return Reply{BlobReply{}};
}

Result<Reply> Session::on(Call call, const PullRequest& request) {
  constexpr std::size_t kItemsMax = 512u << 20;  // LIMIT: encoded items
  if (!call.is_further) pulls_.announce(call.number);
  const ScopeGuard over([&] { if (!call.is_further) pulls_.end(call.number); });
  TRY(const Bytes encoded, call.connection->receive_stream(call.number, kItemsMax, call.stop()));
  TRY(std::vector<PullItem> items, decode_pull_items(encoded));
  int root_fd = -1;
  {
    const std::lock_guard lock(mutex_);
    const bool has_place = root_ && (request.from_pool ? root_->state && root_->state->exists() : static_cast<bool>(root_->fd));
    if (!has_place) return Error{ErrorCode::protocol, "content was asked for before a scan"};
    root_fd = request.from_pool ? root_->state->fd() : root_->fd.get();
  }
  if (request.from_pool)
    for (PullItem& item : items) item.path = *tree::RelPath::parse(store::content_path(item.content));
  // LIMIT: an agent stays near 96 MB. What scanning and sending the tree needed goes back before packs are made.
  ::malloc_trim(0);
  TRY_STATUS(pulls_.send(*call.connection, call.number, !call.is_further, root_fd, std::move(items), content::LevelGovernor(request.force_level, request.first_level), call.stop()));
  TRY_STATUS(call.connection->send(protocol::FrameType::blob_end, call.number, {}));
  return Reply{BlobReply{}};
}

Result<Reply> Session::on(Call call, const HelpRequest& request) {
  TRY_STATUS(pulls_.help(*call.connection, call.number, request.pull, call.stop()));
  TRY_STATUS(call.connection->send(protocol::FrameType::blob_end, call.number, {}));
  return Reply{BlobReply{}};
}

Result<Reply> Session::on(Call, const FilesRequest& request) {
  constexpr std::size_t kFileMax = 1u << 20;
  const std::lock_guard lock(mutex_);
  FilesReply reply;
  if (!root_ || !root_->fd) return Reply{std::move(reply)};
  for (const std::string& path : request.paths)
    if (auto text = os::read_small(root_->fd.get(), path, kFileMax)) reply.files.emplace_back(path, std::move(*text));
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call call, const SumsRequest& request) {
  int root_fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (!root_ || !root_->fd) return Error{ErrorCode::protocol, "sums were asked for before a scan"};
    root_fd = root_->fd.get();
  }
  return Reply{sums_of(root_fd, request.paths, call.stop())};
}

Result<Reply> Session::on(Call call, const LibrariesRequest& request) {
  constexpr std::size_t kReplyBytesMax = 3u << 20;  // below what a control message carries
  const std::lock_guard lock(mutex_);
  LibrariesReply reply;
  reply.absent = absent_sonames(request.sonames);
  if (!request.of_root || !root_ || !root_->fd) return Reply{std::move(reply)};
  std::size_t bytes = 0;
  for (const tree::Entry& entry : root_->scan.tree.entries()) {
    const std::string_view name = entry.path.name();
    const bool is_asked = entry.file() != nullptr && (name.ends_with(".so") || name.find(".so.") != std::string_view::npos || entry.path.parent().name() == "bin");
    if (!is_asked) continue;
    if (call.stop().stop_requested()) return Error{ErrorCode::interrupted, "the request was cancelled"};
    const auto fd = os::open_file(root_->fd.get(), entry.path.bytes());
    const auto facts = fd ? read_library(fd->get()) : std::nullopt;
    if (!facts) continue;
    LibraryInfo info{entry.path.bytes(), facts->soname, facts->search, {}};
    for (const std::string& needed : facts->needed) info.needed += (info.needed.empty() ? "" : ":") + needed;
    bytes += info.path.size() + info.soname.size() + info.search.size() + info.needed.size() + 16;
    reply.is_cut = bytes > kReplyBytesMax;
    if (reply.is_cut) break;
    reply.libraries.push_back(std::move(info));
  }
  return Reply{std::move(reply)};
}

Result<Reply> Session::on(Call, const LanesRequest& request) {
  if (joins_ == nullptr) return Error{ErrorCode::protocol, "this session takes no further connections"};
  TRY(std::string name, joins_->open(request.secret));
  return Reply{LanesReply{std::move(name)}};
}

Result<Reply> Session::on(Call, const JoinRequest&) { return Error{ErrorCode::protocol, "the connection belongs to this run already"}; }

Result<Reply> Session::on(Call, const ProbeRequest& request) {
  ProbeReply reply;
  reply.exists = os::is_executable(request.program);
  if (!reply.exists) return Reply{std::move(reply)};
  std::vector<std::string> argv{request.program};
  argv.insert(argv.end(), request.arguments.begin(), request.arguments.end());
  os::RunResult run = os::run(argv, Seconds{10});
  reply.status = run.status;
  reply.output = std::move(run.output);
  return Reply{std::move(reply)};
}

}  // namespace envsync::agent
