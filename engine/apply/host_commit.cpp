// SPDX-License-Identifier: MIT
// The second half of a target's way: from a plan that nothing refuses to the swapped tree.
#include <algorithm>
#include <limits>

#include <unordered_map>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "content/pack.hpp"

namespace envsync::apply {

using namespace format;

namespace {

constexpr std::size_t kShownMax = 10;

}  // namespace

Result<void> HostJob::stage() {
  PhaseTimer timer(*run_->dispatcher, target_->name, Phase::stage, &outcome_.seconds);
  const manifest::Settings& settings = run_->manifest->settings;
  const std::string force = run_->options->force_origin.value_or("");
  StageRequest request;
  request.head = record_head();
  request.commit_root = plan_->commit_root;
  request.adopt = consent_.adopt;
  request.preserve_owner = settings.owner == manifest::OwnerRule::preserve;
  // Shipped bytecode is valid only beside a source of its time.
  request.write_mtime = settings.mtime != manifest::MtimeRule::ignore || run_->policy().source_mtimes;
  request.drop_unmanaged = plan_->drop_unmanaged;
  std::vector<std::vector<PullItem>> lying;
  if (force != "source" && force != "target") {
    for (HostFolder& folder : host_folders()) {
      request.host_folders.push_back(std::move(folder.path));
      lying.push_back(std::move(folder.items));
    }
  }
  // Undoing drops nothing: a second undo needs what lies further back. The next apply prunes.
  request.keep_generations = !is_rollback() ? settings.keep_generations : std::numeric_limits<u32>::max();
  request.verify_staged = run_->options->verify_staged;
  request.use_local_content = force != "source" && force != "same-host";
  request.least = run_->manifest->invariants.atomic;
  const tree::TreeDelta delta = tree::make_delta(observed_, plan_->desired);
  TRY(const std::optional<tree::TreeDelta> ground, ground_delta(plan_->desired));
  request.has_ground = ground.has_value();
  has_staged_ = true;
  TRY(staged_, session_->endpoint->stage(request, delta, ground, lying, meter_.sink(), run_->stop));
  outcome_.guarantee = staged_.guarantee;
  outcome_.bytes_read += staged_.bytes_read;
  outcome_.bytes_written += staged_.bytes_written;
  // What the target has from now on, so that its tree need not travel next time.
  run_->keep_tree(fmt::format("{}:{}:observed", target_->name, session_->scan.path), plan_->desired);
  if (!staged_.in_use.empty() && run_->manifest->invariants.in_use == manifest::InUseRule::refuse) {
    Error error{ErrorCode::in_use, fmt::format("'{}' on {} is in use and invariants.in_use is refuse", session_->scan.path, target_->name)};
    for (std::size_t i = 0; i < std::min(kShownMax, staged_.in_use.size()); ++i) error.causes.push_back(staged_.in_use[i]);
    return error;
  }
  if (!staged_.in_use.empty() && run_->manifest->invariants.in_use == manifest::InUseRule::warn) {
    Error error{ErrorCode::in_use, fmt::format("{} {} from '{}'; they keep the old files until they are restarted", staged_.in_use.size(),
                                               staged_.in_use.size() == 1 ? "process runs" : "processes run", session_->scan.path)};
    for (std::size_t i = 0; i < std::min(kShownMax, staged_.in_use.size()); ++i) error.causes.push_back(staged_.in_use[i]);
    run_->dispatcher->on(ProblemEvent{target_->name, Severity::warning, std::move(error)});
  }
  timer.finish(staged_.linked + staged_.copied, staged_.bytes_written);
  return ok();
}

Result<void> HostJob::deliver(Lanes::Put& put, std::shared_ptr<const Buffer> pack, Delivery& delivery) {
  const u64 size = pack->size(), content = content::raw_bytes_of(*pack);
  TRY_STATUS(put.send(std::move(pack)));
  const std::lock_guard lock(delivery.mutex);
  pulled_bytes_ += size;
  delivery.at.bytes_done = std::min(delivery.at.bytes_total, delivery.at.bytes_done + content);
  meter_.report(delivery.at);
  return ok();
}

/// What goes to this host, or comes to it through this machine, counts for its own limit and for that of all.
protocol::Pacer HostJob::pacer() {
  const bool is_on_wire = !target_->is_local || is_any_remote();
  if (!is_on_wire || (!pace_ && !run_->pace)) return {};
  return [this](std::size_t bytes) {
    if (pace_) pace_->take(bytes, run_->stop);
    if (run_->pace) run_->pace->take(bytes, run_->stop);
  };
}

Result<void> HostJob::pull_from(Source& place, const std::vector<PullItem>& items, Delivery& delivery) {
  PullRequest request;
  static_assert(RunOptions::kRaw == content::kRawLevel);
  request.force_level = run_->options->force_level;
  if (delta::is_slow(way())) request.first_level = delta::kSlowLevel;
  const auto sink = [&](std::shared_ptr<const Buffer> pack) { return deliver(*delivery.put, std::move(pack), delivery); };
  TRY(const Arrived arrived, place.feed().pull(request, items, sink, std::exchange(tickets_[&place], {}), run_->stop));
  if (arrived == Arrived::some) delivery.arrived = arrived;
  return ok();
}

/// Texts that the controller wrote itself. LIMIT: a script has at most 256 KiB; a RECORD may take several pieces.
Result<void> HostJob::put_made(const std::vector<PullItem>& items, Delivery& delivery) {
  std::vector<std::pair<content::Piece, ByteView>> pieces;
  std::size_t bytes = 0;
  const auto flush = [&]() -> Result<void> {
    if (pieces.empty()) return ok();
    content::PackBuilder pack(pieces.size(), bytes);
    for (const auto& [piece, text] : pieces) std::ranges::copy(text, pack.add(piece).begin());
    TRY_STATUS(deliver(*delivery.put, std::make_shared<const Buffer>(std::move(pack).finish(run_->options->force_level.value_or(1))), delivery));
    bytes = 0;
    pieces.clear();
    return ok();
  };
  for (const PullItem& item : items) {
    const ByteView text = as_bytes(layered_.made.at(item.path));
    for (std::size_t at = 0; at < text.size(); at += content::kSegmentBytes) {
      const ByteView part = text.subspan(at, std::min<std::size_t>(content::kSegmentBytes, text.size() - at));
      if (bytes + part.size() > content::kSegmentBytes || pieces.size() == content::kPackPiecesMax) TRY_STATUS(flush());
      pieces.push_back({{item.want, at, narrow<u32>(part.size())}, part});
      bytes += part.size();
    }
  }
  return flush();
}

/// Who has each of them; null: it is made here.
Result<std::map<Source*, std::vector<PullItem>>> HostJob::items_of(const std::vector<u32>& wanted, const std::vector<SegmentRange>& parts) const {
  const auto entries = plan_->desired.entries();
  std::map<Source*, std::vector<PullItem>> items;
  std::unordered_map<u32, std::vector<SegmentRange>> begun;
  for (const SegmentRange& range : parts) begun[range.want].push_back(range);
  std::vector<std::string> missing;
  for (const u32 index : wanted) {
    if (index >= entries.size() || entries[index].file() == nullptr) return Error{ErrorCode::protocol, "the agent wants content that the plan does not have"};
    const tree::RelPath& path = entries[index].path;
    Source* place = provider_of(path);
    if (place == nullptr && !layered_.made.contains(path)) missing.push_back(fmt::format("'{}'", printable(path.bytes())));
    const PullItem whole{index, path_there(path), entries[index].file()->content(), 0, 0};
    if (const auto ranges = begun.find(index); ranges == begun.end()) items[place].push_back(whole);
    else for (const SegmentRange& range : ranges->second) items[place].push_back({index, whole.path, whole.content, range.first, range.count});
  }
  if (!missing.empty()) return lacks_content(std::move(missing));
  return items;
}

/// What each host is about to give or to take.
void HostJob::expect(const std::map<Source*, std::vector<PullItem>>& items) {
  u64 all = 0;
  for (const auto& [place, list] : items) {
    u64 bytes = 0;
    for (const PullItem& item : list) {
      const u64 begin = item.first * content::kSegmentBytes;
      bytes += item.count == 0 ? item.content.size : std::min(item.content.size, begin + item.count * content::kSegmentBytes) - begin;
    }
    if (place != nullptr) place->session().lanes->expect(bytes);
    all += bytes;
  }
  session_->lanes->expect(all);
}

Result<void> HostJob::transfer(const std::vector<u32>& wanted) {
  if (wanted.empty()) {
    tickets_.clear();
    return ok();
  }
  TRY(auto items, items_of(wanted, staged_.missing));
  const u64 total = staged_.wanted_bytes;
  PhaseTimer timer(*run_->dispatcher, target_->name, Phase::transfer, &outcome_.seconds);
  Delivery delivery{.put = open_put(), .at = {Phase::transfer, 0, wanted.size(), 0, total}};
  const auto road = choose_deltas(items, [&](Lanes::Put& into, Buffer pack) { return deliver(into, std::make_shared<const Buffer>(std::move(pack)), delivery); });
  std::erase_if(tickets_, [&](const auto& ticket) { return !items.contains(ticket.first); });
  expect(items);
  const auto began = std::chrono::steady_clock::now();
  const u64 pulled_before = pulled_bytes_;
  auto deltas = road ? std::async(std::launch::async, [&] { return road->run(); }) : std::future<Result<DeltaCounts>>();
  for (const auto& [place, list] : items) TRY_STATUS(place != nullptr ? pull_from(*place, list, delivery) : put_made(list, delivery));
  TRY(const Lanes::Put::Done written, delivery.put->finish());
  const double took = Seconds(std::chrono::steady_clock::now() - began).count();
  if (road) {
    TRY(const DeltaCounts counts, deltas.get());
    explain_deltas(counts);
    note_rate(counts.rate);
  } else if (constexpr u64 kTelling = 16u << 20; total >= kTelling) {  // less is gone before a link shows what it can
    note_rate(delta::rate_from(total, pulled_bytes_ - pulled_before, took));
  }
  if (road || !staged_.missing.empty() || written.arrived == Arrived::some || delivery.arrived == Arrived::some) TRY_STATUS(pull_lacking(delivery));
  outcome_.bytes_read += total;
  outcome_.bytes_written += written.bytes_written;
  timer.finish(wanted.size(), total);
  return ok();
}

/// Nobody but this target could have it: a rollback, or the base of what the target has.
Error HostJob::lacks_content(std::vector<std::string> paths) const {
  const u32 number = goal_.to_generation.value_or(session_->scan.current ? session_->scan.current->number : 0);
  Error error = content_gone(target_->name, number, std::nullopt);
  paths.resize(std::min(kShownMax, paths.size()));
  error.causes = std::move(paths);
  error.hints = {"run `envsync history` to see what else is kept, or apply from a source that has that version"};
  return error;
}

Result<void> HostJob::commit() {
  PhaseTimer sealing(*run_->dispatcher, target_->name, Phase::seal, &outcome_.seconds);
  TRY_STATUS(session_->endpoint->seal(meter_.sink(), run_->stop));
  sealing.finish();
  if (run_->together && !is_rollback()) TRY_STATUS(run_->together->ready(run_->stop));
  if (run_->stop.stop_requested()) return Error{ErrorCode::interrupted, "the run was stopped"};
  PhaseTimer committing(*run_->dispatcher, target_->name, Phase::commit, &outcome_.seconds);
  auto reply = session_->endpoint->commit(meter_.sink());
  if (!reply) {
    if (reply.error().code == ErrorCode::connection_lost) return settle_lost_commit(std::move(reply).error());
    return std::move(reply).error();
  }
  has_staged_ = false;
  committing.finish();
  outcome_.kind = OutcomeKind::applied;
  outcome_.generation = reply->generation;
  outcome_.guarantee = reply->guarantee;
  outcome_.recovery_pending = reply->recovery_pending;
  // The reply counts the whole transaction, staging and puts included.
  outcome_.bytes_read += reply->bytes_read - staged_.bytes_read;
  outcome_.bytes_written = reply->bytes_written;
  outcome_.packages = plan_->packages;
  outcome_.files = plan_->added + plan_->removed + plan_->changed + plan_->metadata;
  for (const std::string& warning : reply->warnings)
    run_->dispatcher->on(ProblemEvent{target_->name, Severity::warning, Error{ErrorCode::failed, warning}});
  return ok();
}

/// The connection ended while the commit ran: the agent finishes alone, so ask the host what is true now.
Result<void> HostJob::settle_lost_commit(Error lost) {
  has_staged_ = false;
  account();
  session_.reset();
  ScanAsk ask;
  ask.lock = LockMode::exclusive;
  ask.lock_wait_seconds = kReconnectLockWait;
  auto session = open_session(*run_, *target_, target_->path, ask, target_->name);
  if (!session) {
    lost.causes.push_back("asking again: " + session.error().what);
    lost.notes.push_back("the connection ended during the commit; the path holds the old tree or the new one, complete");
    return std::move(lost).hint("run `envsync status` when the host is reached again");
  }
  if (session->scan.current && session->scan.current->run == run_->id) {
    outcome_.kind = OutcomeKind::applied;
    outcome_.generation = session->scan.current->number;
    outcome_.packages = plan_->packages;
    outcome_.files = plan_->added + plan_->removed + plan_->changed + plan_->metadata;
    return ok();
  }
  return lost;
}

}  // namespace envsync::apply
