// SPDX-License-Identifier: MIT
// The first request of every connection: find the root, lock and recover where asked, scan, and say what is there.
#include <algorithm>

#include <malloc.h>

#include <fmt/format.h>

#include "agent/session.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"

namespace envsync::agent {

using namespace format;

namespace {

constexpr std::size_t kProblemsMax = 100;
constexpr std::size_t kProcessesMax = 20;

std::string source_cache_name(const std::string& path) { return "stat-" + content::digest_of(as_bytes(path)).hex(); }

scan::StatCache load_source_cache(const std::string& path) {
  const std::string folder = os::cache_folder();
  if (folder.empty()) return {};
  auto dir = os::open_dir_absolute(folder);
  if (!dir) return {};
  return scan::StatCache::load(dir->get(), source_cache_name(path));
}

}  // namespace

format::RecordInfo info_of(const store::RecordHead& head) {
  RecordInfo info;
  info.number = head.number;
  info.root = head.root;
  info.full = head.full;
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
  info.files = head.files;
  info.bytes = head.bytes;
  return info;
}

void Session::save_cache(Root& root) {
  if (!root.cache.changed()) return;
  if (root.state) {
    if (root.state->exists()) (void)root.state->save_cache(root.cache);
    return;
  }
  const std::string folder = os::cache_folder();
  if (folder.empty()) return;
  if (auto dir = os::open_dir_absolute(folder)) (void)root.cache.save(*files_, dir->get(), source_cache_name(root.path));
}

Result<void> Session::open_source(Root& root) {
  const std::string given = os::expand_home(root.request.path);
  root.path = os::real_path(given).value_or(given);
  auto fd = os::open_dir_absolute(root.path);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return ok();
    return std::move(fd).error();
  }
  root.fd = std::move(*fd);
  root.cache = load_source_cache(root.path);
  return ok();
}

Result<void> Session::lock_target(Root& root, double wait_seconds, std::vector<std::string>& recovered) {
  const std::string holder = fmt::format("{} (run {}, agent {} on {})", root.request.operator_name, root.request.run,
                                         ::getpid(), os::hostname());
  TRY(store::Lock lock, root.state->lock(holder, wait_seconds));
  root.lock = std::move(lock);
  TRY(store::Recovered done, store::recover(*root.state, *root.lock));
  recovered = std::move(done.done);
  return ok();
}

Result<void> Session::open_target(Root& root, ScanReply& reply) {
  TRY(store::Place place, store::resolve_place(os::expand_home(root.request.path)));
  root.path = place.path;
  const std::string name = place.name;
  TRY(store::State state, store::State::open(*files_, std::move(place), store::OpenMode::existing));
  root.state = std::move(state);
  // Where there is no state yet nothing is made: a run that is refused leaves no trace. Staging takes the lock then.
  if (root.state->exists() && root.request.lock == LockMode::exclusive)
    TRY_STATUS(lock_target(root, root.request.lock_wait_seconds, reply.recovered));
  if (!root.state->place().parent) return ok();
  auto fd = os::open_dir(root.state->place().parent.get(), name);
  if (!fd && fd.error().sys_errno != ENOENT) return std::move(fd).error();
  if (fd) root.fd = std::move(*fd);
  root.cache = root.state->load_cache();
  return ok();
}

Result<void> Session::describe_state(Root& root, ScanReply& reply) const {
  const store::State& state = *root.state;
  reply.state_exists = state.exists();
  if (!root.lock) reply.lock_holder = state.lock_holder();
  if (reply.state_exists) {
    TRY(const auto heads, state.heads());
    if (!heads.empty()) {
      reply.current = info_of(heads.back());
      if (heads.back().policy == root.request.policy) {
        reply.current_root = heads.back().root;
      } else {
        TRY(const store::Record record, state.load(heads.back().number));
        reply.current_root = record.tree.root(root.request.policy);
      }
    }
    if (root.request.want_facts) {
      TRY(const auto usage, state.usage());
      reply.pool_bytes = usage.pool_bytes;
      reply.leftover_bytes = usage.leftover_bytes;
      reply.journal_state = usage.journal_state;
    }
  }
  if (state.place().parent) {
    TRY(const os::Space space, os::space(state.place().parent.get()));
    reply.disk_free = space.bytes_free;
    reply.inodes_free = space.inodes_free;
    reply.filesystem = space.filesystem;
  }
  if (root.request.want_facts && root.fd) reply.in_use = os::processes_using(root.path, kProcessesMax);
  return ok();
}

Result<Reply> Session::on(u32 number, const ScanRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  transaction_.reset();
  root_.reset();
  Root root;
  root.request = request;
  ScanReply reply;
  reply.hostname = os::hostname();
  const bool is_target = request.role == Role::target;
  TRY_STATUS(is_target ? open_target(root, reply) : open_source(root));
  reply.path = root.path;
  reply.absent = !root.fd;
  if (root.fd) {
    TRY(tree::Exclude exclude, tree::Exclude::parse(request.exclude));
    scan::Options options;
    options.exclude = std::move(exclude);
    options.bytecode = request.bytecode;
    options.want_xattrs = request.policy.xattrs;
    options.want_capabilities = request.policy.xattrs && request.policy.owner;  // both need root on both sides
    options.trust_cache = !request.full;
    options.stop = connection_->stop_of(number);
    options.progress = [&, last = Deadline{}](u64 files, u64 bytes, u64 total) mutable {
      const auto now = std::chrono::steady_clock::now();
      if (now - last < std::chrono::milliseconds(200)) return;
      last = now;
      send_progress(number, {Phase::scan, files, 0, bytes, total});
    };
    TRY(root.scan, scan::scan(root.fd.get(), options, root.cache));
    save_cache(root);
    reply.environment = environment_facts(root.fd.get(), root.path);
  }
  const tree::Tree& tree = root.scan.tree;
  reply.root = tree.root(request.policy);
  reply.full = tree.full();
  reply.entries = tree.entries().size();
  reply.empty_dir = reply.entries == 1 && root.scan.unmanaged.empty();
  reply.files = tree.file_count();
  reply.bytes = tree.content_bytes();
  reply.files_hashed = root.scan.counters.files_hashed;
  reply.bytes_hashed = root.scan.counters.bytes_hashed;
  reply.problems_total = root.scan.problems.size();
  for (std::size_t i = 0; i < std::min(kProblemsMax, root.scan.problems.size()); ++i)
    reply.problems.push_back({root.scan.problems[i].path.bytes(), root.scan.problems[i].what});
  if (is_target) TRY_STATUS(describe_state(root, reply));
  // What the walk needed goes back to the system: the agent may live on for a long transfer.
  ::malloc_trim(0);
  reply.seconds = Seconds(std::chrono::steady_clock::now() - began).count();
  root_ = std::move(root);
  return Reply{std::move(reply)};
}

}  // namespace envsync::agent
