// SPDX-License-Identifier: MIT
// One task a folder: open it beneath the root, list it, stat what it holds, and hand its folders on. A folder is open only
// while its task runs, so there are as many open as threads, however deep the tree is.
#include "scan/walk.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <ranges>
#include <unordered_set>

#include "scan/walk_node.hpp"
#include "scan/workers.hpp"

namespace envsync::scan {

namespace {

/// What a task knows of its folder while it looks at what the folder holds.
struct Folder {
  os::Fd fd;
  i64 clock_ns = 0;                          // from before any of its stats
  std::unordered_set<std::string> sources;   // x.py, where there is an x.pyc to be judged by it
};

class Walker {
 public:
  Walker(int root_fd, const os::Stat& root, Depth depth, const Options& options, const Believed& cache)
      : root_fd_(root_fd), root_(root), depth_(depth), options_(options), cache_(cache) {
    made_.emplace_back().emplace_back();
    shared_.push_back(&made_.front().front());
  }

  Result<void> run() {
    run_workers(thread_count(options_), [this](u32) { work(); });
    if (options_.stop.stop_requested()) return stopped();
    if (root_error_) return std::move(*root_error_);
    return ok();
  }
  /// Parents before children.
  std::vector<Node*> nodes();

 private:
  /// A worker's own.
  struct Mine {
    std::deque<Node> made;
    std::vector<Node*> pending;
    bool is_busy = false;
  };

  void work();
  Node* next(Mine& mine);
  void share(std::vector<Node*>& mine);
  void visit(Node& node);
  void look_at(Node& node, const Folder& folder, const os::DirEntry& found);
  bool is_bytecode(const Folder& folder, const std::string& name, os::Kind kind) const;
  void add_file(Node& node, const Folder& folder, const std::string& name, tree::RelPath path, const os::Stat& stat);
  void add_link(Node& node, int dir, const std::string& name, tree::RelPath path, const os::Stat& stat);
  void fail(Node& node, Error error);
  std::optional<Cached> known(const Folder& folder, const std::string& name, const StatKey& key);
  Result<tree::Xattrs> dir_xattrs(const Folder& folder, const StatKey& key);
  bool is_mounted_over(const os::Stat& stat) const;

  const int root_fd_;
  const os::Stat root_;
  const Depth depth_;
  const Options& options_;
  const Believed& cache_;
  std::optional<Error> root_error_;  // written by the root's task only

  std::atomic<u32> waiting_{0};      // workers without a folder
  std::mutex mutex_;                 // guards everything below
  std::condition_variable changed_;
  std::list<std::deque<Node>> made_;  // by each worker; a node belongs to the one that visits it
  std::deque<Node*> shared_;
  u32 busy_ = 0;                     // workers with folders of their own
};

void Walker::work() {
  // A worker goes on with what it found, last in, first out: neighbours in the tree are neighbours in time. It shares the folders nearest
  // to the root, which hold most, and only while somebody waits: 8,000 folders are too many to hand over one by one.
  Mine mine;
  while (Node* node = next(mine)) {
    visit(*node);
    for (tree::RelPath& path : node->found_dirs) {
      Node& child = mine.made.emplace_back();
      child.parent = node;
      child.entry.path = std::move(path);
      node->subdirs.push_back(&child);
      mine.pending.push_back(&child);
    }
    node->found_dirs = {};
    if (waiting_ > 0 && mine.pending.size() > 1) share(mine.pending);
  }
  const std::lock_guard lock(mutex_);
  made_.push_back(std::move(mine.made));
}

/// Null when nothing is left, or at a stop.
Node* Walker::next(Mine& mine) {
  if (mine.pending.empty()) {
    std::unique_lock lock(mutex_);
    if (std::exchange(mine.is_busy, false) && --busy_ == 0) changed_.notify_all();
    ++waiting_;
    changed_.wait(lock, [&] { return !shared_.empty() || busy_ == 0; });
    --waiting_;
    if (shared_.empty()) return nullptr;
    mine.is_busy = true;
    ++busy_;
    mine.pending.push_back(shared_.front());
    shared_.pop_front();
  }
  if (options_.stop.stop_requested()) {
    // The one that leaves because of a stop lets the others see it too.
    const std::lock_guard lock(mutex_);
    --busy_;
    shared_.clear();
    changed_.notify_all();
    return nullptr;
  }
  Node* node = mine.pending.back();
  mine.pending.pop_back();
  return node;
}

std::vector<Node*> Walker::nodes() {
  std::vector<Node*> nodes{&made_.front().front()};
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.insert(nodes.end(), nodes[i]->subdirs.begin(), nodes[i]->subdirs.end());
  return nodes;
}

void Walker::share(std::vector<Node*>& mine) {
  const std::lock_guard lock(mutex_);
  const auto half = mine.begin() + static_cast<std::ptrdiff_t>(mine.size() / 2);
  shared_.insert(shared_.end(), mine.begin(), half);
  mine.erase(mine.begin(), half);
  changed_.notify_all();
}

void Walker::fail(Node& node, Error error) {
  node.is_dropped = true;
  if (node.parent == nullptr) {
    root_error_ = std::move(error);
  } else if (error.sys_errno != ENOENT) {  // gone since it was listed: as if it had been gone before
    node.problems.push_back({node.entry.path, describe(error)});
  }
}

void Walker::visit(Node& node) {
  Folder folder;
  folder.clock_ns = os::filesystem_clock_ns();
  auto dir = os::open_dir(root_fd_, node.entry.path.bytes());
  if (!dir) return fail(node, std::move(dir).error());
  folder.fd = std::move(*dir);
  auto stat = os::stat_fd(folder.fd.get());
  if (!stat) return fail(node, std::move(stat).error());
  auto names = os::list(folder.fd.get(), node.entry.path.bytes());
  if (!names) return fail(node, std::move(names).error());
  node.key = key_of(*stat);
  node.entry.mode = stat->mode;
  node.entry.owner = {stat->uid, stat->gid};
  if (depth_ == Depth::entries && options_.want_xattrs) {
    auto xattrs = dir_xattrs(folder, node.key);
    if (!xattrs) return fail(node, std::move(xattrs).error());
    node.entry.xattrs = std::move(*xattrs);
  }
  const auto is_source = [](const os::DirEntry& e) { return e.name.ends_with(".py"); };
  const auto is_compiled = [](const os::DirEntry& e) { return !tree::source_beside(e.name).empty(); };
  if (options_.bytecode == tree::Bytecode::leave_out && std::ranges::any_of(*names, is_compiled))
    for (const os::DirEntry& found : *names | std::views::filter(is_source)) folder.sources.insert(found.name);
  node.items.reserve(names->size());
  for (const os::DirEntry& found : *names) {
    if (options_.stop.stop_requested()) return;
    look_at(node, folder, found);
  }
}

/// What the cache knows of an entry; where it knows a digest only, the attributes are read and added.
std::optional<Cached> Walker::known(const Folder& folder, const std::string& name, const StatKey& key) {
  if (cache_.cache == nullptr || !options_.trust_cache) return std::nullopt;
  auto cached = cache_.cache->find(key);
  if (!cached || cached->has_xattrs || !options_.want_xattrs) return cached;
  auto list = os::xattrs(folder.fd.get(), name);
  const auto after = os::stat_at(folder.fd.get(), name);
  if (!list || !after || key_of(*after) != key) return std::nullopt;
  cached->xattrs = managed_xattrs(std::move(*list));
  cached->has_xattrs = true;
  cache_.cache->put(key, *cached, folder.clock_ns, cache_.is_network);
  return cached;
}

Result<tree::Xattrs> Walker::dir_xattrs(const Folder& folder, const StatKey& key) {
  if (auto cached = known(folder, "", key)) return wanted_xattrs(std::move(cached->xattrs), options_);
  TRY(auto list, os::xattrs(folder.fd.get(), ""));
  Cached cached{.digest = {}, .xattrs = managed_xattrs(std::move(list)), .has_xattrs = true};
  const auto after = os::stat_fd(folder.fd.get());
  if (cache_.cache != nullptr && after && key_of(*after) == key) cache_.cache->put(key, cached, folder.clock_ns, cache_.is_network);
  return wanted_xattrs(std::move(cached.xattrs), options_);
}

bool Walker::is_mounted_over(const os::Stat& stat) const {
  if (stat.mount_root) return true;
  if (stat.mount_id != 0 && root_.mount_id != 0) return stat.mount_id != root_.mount_id;
  return stat.kind == os::Kind::directory && stat.dev != root_.dev;
}

bool Walker::is_bytecode(const Folder& folder, const std::string& name, os::Kind kind) const {
  if (options_.bytecode == tree::Bytecode::ship) return false;
  if (kind == os::Kind::directory) return tree::is_pycache_dir(name);
  return !folder.sources.empty() && folder.sources.contains(tree::source_beside(name));
}

void Walker::look_at(Node& node, const Folder& folder, const os::DirEntry& found) {
  // Some filesystems have longer names than Linux promises; and a path must fit into a message.
  if (!tree::is_component(found.name) || node.entry.path.bytes().size() + 1 + found.name.size() > tree::kPathBytesMax) {
    node.problems.push_back({node.entry.path, "holds an entry whose path is too long"});
    node.is_dropped = node.parent != nullptr;
    return;
  }
  tree::RelPath path = node.entry.path.child(found.name);
  os::Kind kind = found.kind;
  os::Stat stat;
  const auto look = [&]() -> std::optional<Error> {
    auto got = os::stat_at(folder.fd.get(), found.name);
    if (!got) return std::move(got).error();
    stat = *got;
    kind = stat.kind;
    return std::nullopt;
  };
  // Kind::other is a special file, or a filesystem that does not tell.
  std::optional<Error> error;
  const bool has_stat = found.kind == os::Kind::other;
  if (has_stat) error = look();
  if (!error) {
    const bool is_excluded = options_.exclude.matches(path, kind == os::Kind::directory);
    if (is_excluded || is_bytecode(folder, found.name, kind)) {
      node.unmanaged.push_back({std::move(path), kind, !is_excluded});
      return;
    }
    if (!has_stat) error = look();
  }
  if (error && error->sys_errno == ENOENT) return;
  if (error) node.problems.push_back({std::move(path), describe(*error)});
  else if (is_mounted_over(stat)) node.problems.push_back({std::move(path), "a filesystem is mounted here"});
  else switch (kind) {
    case os::Kind::directory: node.found_dirs.push_back(std::move(path)); break;
    case os::Kind::file: add_file(node, folder, found.name, std::move(path), stat); break;
    case os::Kind::symlink: add_link(node, folder.fd.get(), found.name, std::move(path), stat); break;
    case os::Kind::other: node.problems.push_back({std::move(path), "is a socket, pipe or device"}); break;
  }
}

void Walker::add_link(Node& node, int dir, const std::string& name, tree::RelPath path, const os::Stat& stat) {
  std::string target;
  if (depth_ == Depth::entries) {
    auto read = os::read_link(dir, name);
    if (!read) {
      if (read.error().sys_errno != ENOENT) node.problems.push_back({std::move(path), describe(read.error())});
      return;
    }
    target = std::move(*read);
  }
  Item& item = node.items.emplace_back();
  item.key = key_of(stat);
  item.entry.path = std::move(path);
  item.entry.owner = {stat.uid, stat.gid};
  item.entry.body = tree::Symlink{std::move(target)};
}

void Walker::add_file(Node& node, const Folder& folder, const std::string& name, tree::RelPath path, const os::Stat& stat) {
  Item& item = node.items.emplace_back();
  item.key = key_of(stat);
  item.is_linked = stat.nlink > 1;
  item.entry.path = std::move(path);
  item.entry.mode = stat.mode;
  item.entry.mtime_ns = stat.mtime_ns;
  item.entry.owner = {stat.uid, stat.gid};
  tree::File file{.size = stat.size, .digest = {}, .link_group = 0};
  if (depth_ == Depth::entries) {
    auto cached = known(folder, name, item.key);
    item.is_cached = item.is_read = cached.has_value();
    if (cached) {
      file.digest = cached->digest;
      if (!cached->xattrs.empty()) item.entry.xattrs = wanted_xattrs(std::move(cached->xattrs), options_);
    }
  }
  item.entry.body = file;
}

}  // namespace

tree::Xattrs managed_xattrs(os::XattrList list) {
  std::erase_if(list, [](const auto& xattr) { return !(xattr.first.size() > 5 && xattr.first.starts_with("user.")) && xattr.first != "security.capability" && !xattr.first.starts_with("trusted."); });
  return list;
}

tree::Xattrs wanted_xattrs(tree::Xattrs kept, const Options& options) {
  if (!options.want_xattrs) return {};
  const auto dropped = std::erase_if(kept, [&](const auto& xattr) {
    return xattr.first.starts_with("trusted.") || (!options.want_capabilities && xattr.first == "security.capability");
  });
  if (dropped > 0 && options.left_out != nullptr) ++*options.left_out;
  return kept;
}

std::string describe(const Error& error) {
  if (error.sys_errno == EACCES || error.sys_errno == EPERM) return "permission denied";
  if (error.sys_errno == EXDEV) return "a filesystem is mounted here";
  // Another thing took its place since it was listed.
  if (error.sys_errno == ELOOP || error.sys_errno == ENOTDIR || error.sys_errno == EINVAL || error.sys_errno == EISDIR) return kChanged;
  return error.causes.empty() ? error.what : error.causes.front();
}

Error stopped() { return Error(ErrorCode::interrupted, "the scan was stopped"); }

Result<Listing> walk(int root_fd, Depth depth, const Options& options, const Believed& cache) {
  TRY(const os::Stat root, os::stat_fd(root_fd));
  Walker walker(root_fd, root, depth, options, cache);
  TRY_STATUS(walker.run());
  const std::vector<Node*> nodes = walker.nodes();
  drop_unmanaged_dirs(nodes);
  return to_listing(nodes);
}

}  // namespace envsync::scan
