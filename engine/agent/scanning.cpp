// SPDX-License-Identifier: MIT
// The first request of every connection: find the root, lock and recover where asked, scan, and say what is there.
#include <algorithm>
#include <thread>

#include <malloc.h>

#include <fmt/format.h>

#include "agent/session.hpp"
#include "base/clock.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"
#include "wheel/cache.hpp"

namespace envsync::agent {

using namespace format;

namespace {

constexpr std::size_t kProblemsMax = 100;
constexpr std::size_t kProcessesMax = 20;
constexpr double kCommitSeconds = 60;  // from an exchange to its record, on a slow disk

std::string host_cache_name(const std::string& path) { return "stat-" + content::digest_of(as_bytes(path)).hex(); }

/// Of a root that has no state of its own: a source, and a target that envsync does not know yet.
scan::StatCache load_host_cache(const std::string& path) {
  const std::string folder = os::cache_folder();
  if (folder.empty()) return {};
  auto dir = os::open_dir_absolute(folder);
  if (!dir) return {};
  return scan::StatCache::load(dir->get(), host_cache_name(path));
}

}  // namespace

format::RecordInfo info_of(const store::RecordHead& head) {
  RecordInfo info;
  info.number = head.number;
  info.root = head.root;
  info.full = head.full;
  info.ground = head.ground;
  info.run = head.run;
  info.plan_digest = head.plan_digest;
  info.operator_name = head.operator_name;
  info.manifest = head.manifest;
  info.name = head.name;
  info.source = head.source;
  info.undoes = head.undoes;
  info.committed_at = head.committed_at;
  info.restores = head.restores;
  info.adopted = head.adopted;
  info.damaged = head.damaged;
  info.policy = head.policy;
  info.files = head.files;
  info.bytes = head.bytes;
  return info;
}

void Session::save_cache(Root& root) {
  if (!root.cache.changed()) return;
  if (root.state && root.state->exists()) (void)root.state->save_cache(root.cache);
}

/// What a root without a state of its own leaves for the next look: a plan of a target that is not known yet makes none on the host.
void Session::save_host_cache() {
  const std::string folder = os::cache_folder();
  Bytes encoded;
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    if (!root_ || (root_->state && root_->state->exists())) return;
    if (root_->cache.changed() && !folder.empty()) encoded = root_->cache.encode();
    name = host_cache_name(root_->path);
    // A source is only read from here on: its digests and stats have done their work.
    if (!root_->state) {
      root_->cache = {};
      root_->scan.stats = {};
    }
  }
  if (encoded.empty()) return;
  if (auto dir = os::open_dir_absolute(folder)) (void)os::replace_cache_file(*files_, dir->get(), name, encoded);
}

Result<void> Session::open_source(Call call, Root& root, ScanReply& reply) {
  const std::string given = os::expand_home(root.request.path);
  root.path = os::real_path(given).value_or(given);
  TRY_STATUS(open_wheels(call, root, reply));
  if (root.fd) return ok();
  auto fd = os::open_dir_absolute(root.path);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return ok();
    return std::move(fd).error();
  }
  root.fd = std::move(*fd);
  root.cache = load_host_cache(root.path);
  return ok();
}

Result<content::Digest> Session::digest_of_wheel(scan::StatCache& cache, int fd, std::string_view name) const {
  const i64 clock = os::filesystem_clock_ns();
  TRY(const os::Stat before, os::stat_fd(fd));
  TRY(const os::Space space, os::space(fd));
  if (const auto known = cache.find(scan::key_of(before))) return known->digest;
  content::FileHasher hasher;
  Bytes buffer(1u << 20);
  for (u64 at = 0;;) {
    TRY(const std::size_t got, os::read_at(fd, at, buffer, name));
    if (got == 0) break;
    hasher.update(ByteView(buffer).first(got));
    at += got;
  }
  const content::Digest digest = hasher.finish();
  cache.put(scan::key_of(before), {digest, {}, false}, clock, space.network);
  return digest;
}

Result<void> Session::open_wheels(Call call, Root& root, ScanReply& reply) {
  auto found = wheel::find(root.path);
  if (!found && found.error().sys_errno == ENOENT) return ok();
  if (!found) return std::move(found).error();
  if (!*found) return ok();
  const std::string folder = os::cache_folder(), name = host_cache_name(root.path);
  scan::StatCache digests = load_host_cache(root.path);
  const auto digest_of = [&](int fd, std::string_view file) { return digest_of_wheel(digests, fd, file); };
  const auto progress = [&, last = Deadline{}](u64 done, u64 total) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(200)) return;
    last = now;
    send_progress(call, {Phase::scan, 0, 0, done, total});
  };
  TRY(wheel::Unpacked unpacked, wheel::unpacked(*files_, folder, **found, digest_of, progress, call.stop()));
  if (digests.changed())
    if (auto dir = os::open_dir_absolute(folder)) (void)digests.save(*files_, dir->get(), name);
  reply.wheels = std::move((*found)->names);
  root.fd = std::move(unpacked.root);
  root.path = std::move(unpacked.path);
  root.cache = load_host_cache(root.path);
  return ok();
}

Result<void> Session::lock_target(Root& root, double wait_seconds, std::vector<std::string>& recovered) {
  const std::string holder = fmt::format("{} (run {}, agent {} on {})", root.request.operator_name, root.request.run,
                                         ::getpid(), os::hostname());
  TRY(store::Lock lock, root.state->lock(holder, wait_seconds, root.request.run));
  root.lock = std::move(lock);
  TRY(store::Recovered done, store::recover(*root.state, *root.lock));
  recovered = std::move(done.done);
  return ok();
}

Result<void> Session::open_target(Root& root, ScanReply& reply) {
  TRY(store::Place place, store::resolve_place(os::expand_home(root.request.path)));
  root.path = place.path;
  TRY(store::State state, store::State::open(*files_, std::move(place), store::OpenMode::existing));
  root.state = std::move(state);
  // Where there is no state yet nothing is made: a run that is refused leaves no trace. Staging takes the lock then.
  if (root.state->exists() && root.request.lock == LockMode::exclusive)
    TRY_STATUS(lock_target(root, root.request.lock_wait_seconds, reply.recovered));
  TRY(root.fd, store::open_environment(root.state->place()));
  root.cache = root.state->exists() ? root.state->load_cache() : load_host_cache(root.path);
  return ok();
}

Result<void> Session::describe_record(Call call, Root& root, const store::RecordHead& head, ScanReply& reply) {
  const ScanRequest& request = root.request;
  reply.current = info_of(head);
  if (head.policy == request.policy) {
    reply.current_root = head.root;
  } else {
    TRY(const store::Record record, root.state->load(head.number));
    reply.current_root = record.tree.root(request.policy);
  }
  if (!root.fd || (head.policy == request.policy && head.exclude == request.exclude && head.bytecode == request.bytecode)) {
    reply.drifted = head.root != reply.root;
    return ok();
  }
  // A setting that changed since is no change of the tree: whether somebody changed that is asked by the rules of then.
  TRY(scan::Scan seen, scan_by(call, root, head.exclude, head.bytecode, head.policy));
  reply.drifted = seen.tree.root(head.policy) != head.root;
  const Digest full = seen.tree.full();
  if (full == reply.full) return ok();
  reply.recorded_view = full;
  root.recorded_view = std::move(seen.tree);
  return ok();
}

Result<void> Session::describe_state(Call call, Root& root, ScanReply& reply) {
  const store::State& state = *root.state;
  reply.state_exists = state.exists();
  reply.foreign_state = state.place().foreign_state;
  if (!root.lock) reply.lock_holder = state.lock_holder();
  if (reply.state_exists) {
    const auto heads = state.heads();
    const bool is_passed_over = !heads && root.request.any_record && heads.error().code == ErrorCode::corrupt;
    if (!heads && !is_passed_over) return heads.error();
    if (heads && !heads->empty()) TRY_STATUS(describe_record(call, root, heads->back(), reply));
    if (root.request.want_facts) {
      TRY(const auto usage, state.usage());
      reply.pool_bytes = usage.pool_bytes;
      reply.leftover_bytes = usage.leftover_bytes;
      reply.journal_state = usage.journal_state;
    }
  }
  TRY(const os::Space space, store::space_at(state.place()));
  reply.disk_free = space.bytes_free;
  reply.inodes_free = space.inodes_free;
  reply.filesystem = space.filesystem;
  if (root.request.want_facts && root.fd) reply.in_use = os::processes_using(root.path, kProcessesMax);
  return ok();
}

Result<scan::Scan> Session::scan_by(Call call, Root& root, const std::vector<std::string>& exclude, tree::Bytecode bytecode,
                                    const tree::ComparePolicy& policy) {
  scan::Options options;
  TRY(options.exclude, tree::Exclude::parse(exclude));
  options.bytecode = bytecode;
  options.want_xattrs = policy.xattrs;
  options.want_capabilities = policy.xattrs && policy.owner;  // both need root on both sides
  options.trust_cache = !root.request.full;
  options.stop = call.stop();
  options.progress = [&, last = Deadline{}](u64 files, u64 bytes, u64 total) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(200)) return;
    last = now;
    send_progress(call, {Phase::scan, files, 0, bytes, total});
  };
  std::atomic<u64> left{0};
  options.left_out = &left;
  auto seen = scan::scan(root.fd.get(), options, root.cache);
  root.attributes_left = left;
  return seen;
}

Result<void> Session::scan_root(Call call, Root& root, ScanReply& reply) {
  const ScanRequest& request = root.request;
  if (root.fd) {
    TRY(root.scan, scan_by(call, root, request.exclude, request.bytecode, request.policy));
    reply.environment = environment_facts(root.fd.get(), root.path);
  }
  const tree::Tree& tree = root.scan.tree;
  reply.attributes_left = root.attributes_left;
  reply.path = root.path;
  reply.absent = !root.fd;
  reply.root = tree.root(request.policy);
  reply.full = tree.full();
  reply.entries = tree.entries().size();
  reply.empty_dir = reply.entries == 1 && root.scan.unmanaged.empty();
  reply.files = tree.file_count();
  reply.bytes = tree.content_bytes();
  reply.linked_alone = root.scan.counters.linked_alone;
  reply.files_hashed = root.scan.counters.files_hashed;
  reply.bytes_hashed = root.scan.counters.bytes_hashed;
  reply.problems_total = root.scan.problems.size();
  for (std::size_t i = 0; i < std::min(kProblemsMax, root.scan.problems.size()); ++i)
    reply.problems.push_back({root.scan.problems[i].path.bytes(), root.scan.problems[i].what});
  return ok();
}

/// Without the lock a run may commit meanwhile: then the walk saw something of both trees, or the new one beside the old record.
Result<void> Session::scan_target(Call call, Root& root, ScanReply& reply) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  const Deadline deadline = deadline_in(Seconds(kCommitSeconds));
  const ScanReply before = reply;
  for (;;) {
    TRY_STATUS(open_target(root, reply));
    TRY(const auto began, root.state->moment());
    if (!began.committing) {
      TRY_STATUS(scan_root(call, root, reply));
      TRY_STATUS(describe_state(call, root, reply));
      if (root.lock) return ok();
      // Opened again: the first run of all may have made the state since.
      TRY(store::Place place, store::resolve_place(root.path));
      TRY(const store::State now, store::State::open(*files_, std::move(place), store::OpenMode::existing));
      TRY(const auto ended, now.moment());
      if (began == ended) return ok();
    }
    if (std::chrono::steady_clock::now() >= deadline || call.stop().stop_requested()) break;
    std::this_thread::sleep_for(kPause);
    const ScanRequest request = root.request;
    root = Root{};
    root.request = request;
    reply = before;
  }
  return Error{ErrorCode::changed_meanwhile, fmt::format("'{}' was changed by another run while it was looked at", printable(root.path))}
      .note("this run changed nothing").hint("run again");
}

Result<Reply> Session::on(Call call, const ScanRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  transaction_.reset();
  root_.reset();
  Root root;
  root.request = request;
  ScanReply reply;
  reply.hostname = os::hostname();
  if (request.role == Role::target) {
    TRY_STATUS(scan_target(call, root, reply));
  } else {
    TRY_STATUS(open_source(call, root, reply));
    TRY_STATUS(scan_root(call, root, reply));
  }
  if (root.state && root.state->exists()) save_cache(root);
  else after_reply([this] { save_host_cache(); });
  // What the walk needed goes back to the system: the agent may live on for a long transfer.
  ::malloc_trim(0);
  reply.seconds = Seconds(std::chrono::steady_clock::now() - began).count();
  root_ = std::move(root);
  return Reply{std::move(reply)};
}

}  // namespace envsync::agent
