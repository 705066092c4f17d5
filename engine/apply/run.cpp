// SPDX-License-Identifier: MIT
#include "apply/run.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "os/process.hpp"

namespace envsync::apply {

using namespace format;

std::string new_run_id() {
  const i64 now_ns = SystemClock{}.realtime_ns();
  const std::time_t seconds = static_cast<std::time_t>(now_ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:06}Z-{}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec, now_ns % 1'000'000'000 / 1000, os::random_token().substr(0, 8));
}

std::string operator_name() { return os::user_name() + "@" + os::hostname(); }

transport::Asker asker(Dispatcher& dispatcher) {
  return [&dispatcher](const transport::Prompt& prompt) -> std::optional<std::string> {
    if (prompt.kind != transport::Prompt::Kind::yes_no)
      return dispatcher.secret({prompt.host, prompt.text, prompt.kind == transport::Prompt::Kind::visible});
    switch (dispatcher.ask({QuestionKind::host_key, prompt.host, prompt.text})) {
      case Answer::yes: return "yes";
      case Answer::no: return "no";
      case Answer::cannot_ask: break;
    }
    return std::nullopt;
  };
}

bool is_network_error(const Error& error) { return error.code == ErrorCode::connection_lost || error.code == ErrorCode::connect_failed; }

transport::Host transport_host(const manifest::Host& host, const manifest::Manifest& manifest, const RunOptions& options) {
  transport::Host out;
  out.name = host.name;
  out.user = host.user;
  out.host = host.host;
  out.port = host.port;
  out.jump = host.jump;
  out.sudo = host.sudo;
  out.identity = host.identity.empty() ? options.identity : host.identity;
  const manifest::Transport& wanted = host.transport ? *host.transport : manifest.settings.transport;
  if (host.is_local) {
    out.kind = transport::Kind::local;
  } else if (wanted.kind == manifest::TransportKind::command && options.transport.empty()) {
    out.kind = transport::Kind::command;
    out.command = wanted.command;
  } else if (options.transport.empty() ? wanted.kind == manifest::TransportKind::openssh : options.transport == "openssh") {
    out.kind = transport::Kind::openssh;
  } else if (options.transport.empty() ? wanted.kind == manifest::TransportKind::libssh : options.transport == "libssh") {
    out.kind = transport::Kind::libssh;
  } else {
    out.kind = transport::Kind::automatic;
  }
  return out;
}

void note_accepts(Run& run, const std::vector<bool>& used, bool is_plan) {
  const std::lock_guard lock(run.accept_mutex);
  if (is_plan) ++run.plans;
  run.accept_used.resize(run.manifest->accept.size(), false);
  for (std::size_t i = 0; i < used.size() && i < run.accept_used.size(); ++i) run.accept_used[i] = run.accept_used[i] || used[i];
}

void tell_unused_accepts(Run& run, std::size_t hosts) {
  const std::lock_guard lock(run.accept_mutex);
  if (run.plans < hosts) return;  // a host that was up to date, or was not reached, has not said what it finds
  for (std::size_t i = 0; i < run.accept_used.size(); ++i) {
    if (run.accept_used[i]) continue;
    Error error{ErrorCode::failed, fmt::format("the entry of `accept` for '{}' takes no finding", printable(run.manifest->accept[i].code))};
    error.where = run.manifest->accept[i].where;
    run.dispatcher->on(ProblemEvent{{}, Severity::warning, std::move(error).hint("remove the entry")});
  }
}

namespace {

ScanRequest scan_request(const Run& run, const std::string& path, const ScanAsk& ask) {
  const manifest::Manifest& manifest = *run.manifest;
  ScanRequest request;
  request.run = run.id;
  request.operator_name = run.operator_name;
  request.role = ask.role;
  request.path = path;
  request.exclude = manifest.source.exclude;
  request.bytecode = manifest.source.bytecode;
  request.policy = run.policy();
  request.lock = ask.lock;
  request.lock_wait_seconds = std::max(ask.lock_wait_seconds, run.options->lock_wait_seconds);
  request.full = ask.full;
  request.want_facts = ask.want_facts;
  request.any_record = ask.any_record;
  return request;
}

}  // namespace

namespace {

/// Further connections go where the first one went, ask nobody, and wait in line with others that begin with the same hop.
std::unique_ptr<Lanes> lanes_of(Run& run, const Session& session, const transport::Connected& connected) {
  const bool is_by_ssh = connected.transport == "libssh" || connected.transport == "openssh";
  if (!is_by_ssh || connected.has_asked) return std::make_unique<Lanes>(*session.endpoint);
  transport::Options options = run.transport;
  options.batch = true;
  options.ask = {};
  options.address = connected.address;
  const transport::Host& host = session.host;
  const std::string hop = host.jump.empty() ? fmt::format("{}:{}", host.host, host.port) : host.jump.substr(0, host.jump.find(','));
  auto opener = [options = std::move(options), host](const std::string& name, const std::string& secret, std::stop_token stop) -> Result<std::unique_ptr<protocol::Endpoint>> {
    TRY(transport::Connected further, transport::connect(host, options, protocol::first_join(name), stop));
    auto endpoint = std::make_unique<protocol::Endpoint>(std::move(further.channel), further.stderr_text, options.agent_digest);
    TRY_STATUS(endpoint->greet(stop));
    TRY_STATUS(endpoint->join(secret, stop));
    return endpoint;
  };
  return std::make_unique<Lanes>(*session.endpoint, std::move(opener), run.lane_gate, hop);
}

}  // namespace

Result<Session> open_session(Run& run, const manifest::Host& host, const std::string& path, const ScanAsk& ask,
                             const std::string& event_host) {
  Session session;
  session.name = host.name;
  session.host = transport_host(host, *run.manifest, *run.options);
  PhaseTimer connecting(*run.dispatcher, event_host, Phase::connect, nullptr);
  const ScanRequest request = scan_request(run, path, ask);
  const Bytes first = protocol::first_request(request);
  // LIMIT: what an exec's argument carries; a longer request follows as a frame.
  constexpr std::size_t kFirstMax = 6u << 10;
  const bool fits = first.size() <= kFirstMax;
  TRY(transport::Connected connected, transport::connect(session.host, run.transport, fits ? ByteView(first) : ByteView{}, run.stop));
  session.transport = connected.transport;
  session.detail = connected.detail;
  session.endpoint = std::make_unique<protocol::Endpoint>(std::move(connected.channel), connected.stderr_text, run.transport.agent_digest);
  session.lanes = lanes_of(run, session, connected);
  TRY_STATUS(session.endpoint->greet(run.stop));
  connecting.finish();
  PhaseTimer scanning(*run.dispatcher, event_host, Phase::scan, nullptr);
  ProgressMeter meter(*run.dispatcher, event_host);
  TRY(session.scan, fits ? session.endpoint->first_scan(meter.sink(), run.stop) : session.endpoint->scan(request, meter.sink(), run.stop));
  scanning.finish(session.scan.files, session.scan.bytes);
  return session;
}

void Run::keep_tree(std::string label, tree::Tree tree) {
  const std::lock_guard lock(keeping_mutex);
  keeping.push_back(std::async(std::launch::async, [this, label = std::move(label), tree = std::move(tree)] {
    // TreeCache reads and writes whole files by rename: only keeping needs the mutex, for its sweep.
    const std::lock_guard writing(trees_mutex);
    trees->keep(label, tree, tree.full());
  }));
}

Result<tree::Tree> fetch_tree(Run& run, Session& session, const TreeRequest& what, const content::Digest& full) {
  const std::string label = fmt::format("{}:{}:{}", session.name, session.scan.path, what.kind == TreeKind::observed ? "observed" : what.kind == TreeKind::record ? "record" : what.kind == TreeKind::ground ? "ground" : "view");
  TreeRequest request = what;
  if (auto held = run.trees->find(full)) {
    run.keep_tree(label, *held);
    return std::move(*held);
  }
  if (const auto last = run.trees->last(label)) request.bases.push_back(*last);
  TRY(const tree::TreeDelta delta, session.endpoint->tree(request, run.stop));
  auto base = run.trees->find(delta.base);
  if (!base) return Error{ErrorCode::protocol, "the agent sent a difference to a tree that was not named"};
  TRY(tree::Tree tree, tree::apply_delta(*base, delta));
  if (delta.result != full) return Error{ErrorCode::protocol, "the agent sent another tree than the one asked for"};
  run.keep_tree(label, tree);
  return tree;
}

Result<DriftTrees> fetch_drift(Run& run, Session& session) {
  const ScanReply& scan = session.scan;
  DriftTrees trees;
  TreeRequest recorded{TreeKind::record, scan.current->number, {}};
  TRY(trees.recorded, fetch_tree(run, session, recorded, scan.current->full));
  const bool has_view = scan.recorded_view != content::Digest{};
  TreeRequest observed{has_view ? TreeKind::recorded_view : TreeKind::observed, 0, {}};
  TRY(trees.observed, fetch_tree(run, session, observed, has_view ? scan.recorded_view : scan.full));
  return trees;
}

void ProgressMeter::report(const Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (progress.phase != phase_) {
    phase_ = progress.phase;
    began_ = now;
    last_ = {};
    first_bytes_ = progress.bytes_done;
  }
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  ProgressEvent event;
  event.host = host_;
  event.phase = progress.phase;
  event.bytes_done = progress.bytes_done;
  event.bytes_total = progress.bytes_total;
  event.files_done = progress.files_done;
  event.files_total = progress.files_total;
  const double seconds = Seconds(now - began_).count();
  if (seconds > 0.2) event.bytes_per_second = static_cast<double>(progress.bytes_done - std::min(first_bytes_, progress.bytes_done)) / seconds;
  if (event.bytes_per_second > 0 && event.bytes_total > event.bytes_done)
    event.seconds_left = static_cast<double>(event.bytes_total - event.bytes_done) / event.bytes_per_second;
  dispatcher_->on(event);
}

PhaseTimer::PhaseTimer(Dispatcher& dispatcher, std::string host, Phase phase, std::vector<PhaseSeconds>* seconds)
    : dispatcher_(&dispatcher), host_(std::move(host)), phase_(phase), seconds_(seconds), began_(std::chrono::steady_clock::now()) {
  dispatcher_->on(PhaseEvent{host_, phase_, false, 0, 0, 0});
}

void PhaseTimer::finish(u64 files, u64 bytes) {
  const double seconds = Seconds(std::chrono::steady_clock::now() - began_).count();
  if (seconds_ != nullptr) seconds_->push_back({phase_, seconds});
  dispatcher_->on(PhaseEvent{host_, phase_, true, seconds, files, bytes});
}

}  // namespace envsync::apply
