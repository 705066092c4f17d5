// SPDX-License-Identifier: MIT
// An environment in a folder of a test's own, and whole runs against it: open, lock, recover, scan, begin, put, seal, commit,
// accept, as the agent does it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scan/scan.hpp"
#include "store/state.hpp"
#include "store/transaction.hpp"
#include "support/os_folder.hpp"
#include "support/scan_folder.hpp"
#include "support/tree_literal.hpp"

namespace envsync::testing {

/// A tree and the bytes of its contents: what a source would have.
struct Desired {
  tree::Tree tree;
  std::map<content::ContentId, std::string> texts;
};

inline void add_text(Desired& desired, std::string text) {
  content::FileHasher hasher;
  hasher.update(as_bytes(text));
  const content::ContentId id{hasher.finish(), text.size()};
  desired.texts[id] = std::move(text);
}

/// As test::tree(), with the contents.
inline Desired desired(std::initializer_list<std::string_view> lines) {
  Desired made;
  made.tree = test::tree(lines);
  for (const std::string_view line : lines) {
    const std::size_t equals = line.find('=');
    if (equals != line.npos && line.find(" == ") == line.npos && line.find(" -> ") == line.npos) add_text(made, std::string(line.substr(equals + 1)));
  }
  return made;
}

/// A folder in memory where the machine has one: for tests of hundreds of runs, each of which syncs twenty times.
struct FastFolder {
  FastFolder() {
    const char* before = std::getenv("TMPDIR");
    const std::string kept = before ? before : "";
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
    folder = std::make_unique<Folder>();
    if (before) ::setenv("TMPDIR", kept.c_str(), 1);
    else ::unsetenv("TMPDIR");
  }
  std::unique_ptr<Folder> folder;
};

inline tree::RelPath rel(std::string_view path) { return *tree::RelPath::parse(std::string(path)); }

/// The same tree with one entry altered.
template <class Alter>
Desired altered(const Desired& from, std::string_view path, Alter alter) {
  std::vector<tree::Entry> entries(from.tree.entries().begin(), from.tree.entries().end());
  for (tree::Entry& entry : entries)
    if (entry.path.bytes() == path) alter(entry);
  return {tree::Tree::from_unsorted(std::move(entries)).value(), from.texts};
}

struct Settings {
  std::string commit_root = {};
  bool adopt = true;
  u32 keep = 2;
  std::vector<std::string> drop = {}, exclude = {};
  tree::ComparePolicy policy = {};
  bool use_local = true, verify_staged = false, write_mtime = true, preserve_owner = false;
  bool find_users = false;
  std::vector<store::HostFolder> host_folders = {};
  std::string run = "20240102T030405.000000Z-00000000";
};

/// One run, step by step.
struct Run {
  std::unique_ptr<store::State> state;
  std::unique_ptr<store::Lock> lock;
  scan::StatCache cache;
  scan::Scan observed;
  store::Recovered recovered;
  scan::Counters counters;
  std::unique_ptr<store::Transaction> transaction;

  Run() = default;
  Run(const Run&) = delete;
  ~Run() { transaction.reset(); }

  Result<void> open(os::Files& files, const std::string& path, const Settings& settings) {
    TRY(store::Place place, store::resolve_place(path));
    TRY(store::State opened, store::State::open(files, std::move(place), store::OpenMode::create));
    state = std::make_unique<store::State>(std::move(opened));
    TRY(store::Lock held, state->lock("a test", 0));
    lock = std::make_unique<store::Lock>(std::move(held));
    TRY(recovered, store::recover(*state, *lock));
    cache = state->load_cache();
    TRY(const os::Fd root, store::open_environment(state->place()));
    if (!root) return ok();
    scan::Options options;
    options.threads = 1;
    TRY(options.exclude, tree::Exclude::parse(settings.exclude));
    options.want_xattrs = settings.policy.xattrs;
    TRY(observed, scan::scan(root.get(), options, cache));
    counters = observed.counters;
    return ok();
  }

  Result<void> begin(const tree::Tree& tree, const Settings& settings) {
    store::Begin b;
    b.desired = tree;
    b.commit_root = rel(settings.commit_root);
    b.head.policy = settings.policy;
    b.head.exclude = settings.exclude;
    b.head.run = settings.run;
    b.head.name = "test";
    b.adopt = settings.adopt;
    b.keep_generations = settings.keep;
    b.drop_unmanaged = settings.drop;
    b.use_local_content = settings.use_local;
    b.verify_staged = settings.verify_staged;
    b.write_mtime = settings.write_mtime;
    b.preserve_owner = settings.preserve_owner;
    b.host_folders = settings.host_folders;
    b.find_users = settings.find_users;
    TRY(store::Transaction begun, store::Transaction::begin(*state, *lock, std::move(b), std::move(observed), cache, {}));
    transaction = std::make_unique<store::Transaction>(std::move(begun));
    return ok();
  }

  /// Sends what is wanted: small files together, large ones in segments.
  Result<void> put(const Desired& from) {
    std::vector<content::Piece> pieces;
    Bytes content;
    for (const u32 index : transaction->needs().wanted) {
      const tree::File& file = *from.tree.entries()[index].file();
      const auto found = from.texts.find(file.content());
      if (found == from.texts.end()) return Error(ErrorCode::content_gone, from.tree.entries()[index].path.bytes());
      const ByteView bytes = as_bytes(found->second);
      for (u64 at = 0; at < file.size; at += content::kSegmentBytes) {
        const ByteView part = bytes.subspan(at, std::min<u64>(content::kSegmentBytes, file.size - at));
        pieces.push_back({index, at, narrow<u32>(part.size())});
        content.insert(content.end(), part.begin(), part.end());
        if (file.size > content::kSegmentBytes) {
          TRY_STATUS(transaction->put(std::exchange(pieces, {}), std::exchange(content, {})));
        }
      }
    }
    return transaction->put(pieces, content);
  }
};

inline Result<store::Accepted> apply(os::Files& files, const std::string& path, const Desired& to, const Settings& settings = {}) {
  Run run;
  TRY_STATUS(run.open(files, path, settings));
  TRY_STATUS(run.begin(to.tree, settings));
  TRY_STATUS(run.put(to));
  TRY_STATUS(run.transaction->seal({}));
  TRY_STATUS(run.transaction->commit({}));
  return run.transaction->accept({});
}

/// What lies at `path` now, read from its bytes; absent where nothing does.
inline tree::Tree tree_at(const std::string& path, const Settings& settings = {}) {
  auto root = os::open_dir_absolute(path);
  if (!root) return {};
  scan::StatCache none;
  scan::Options options;
  options.threads = 1;
  options.exclude = tree::Exclude::parse(settings.exclude).value();
  return scan::scan(root->get(), options, none).value().tree;
}

/// "lib/a.py=text lib/b -> x" of what differs between a tree and what lies at the path; empty: they are equal.
inline std::string differences(const tree::Tree& expected, const std::string& path, const Settings& settings = {}) {
  const tree::Tree found = tree_at(path, settings);
  std::string text;
  for (const tree::Change& change : tree::diff(expected, found, settings.policy)) {
    constexpr std::string_view kKinds = "+-~mt";
    text += fmt::format("{}{} ", kKinds[static_cast<std::size_t>(change.kind)], (change.to ? change.to : change.from)->path.bytes());
  }
  if (text.empty() && found.is_absent() != expected.is_absent()) return "absent";
  return text;
}

/// An error as one line, for CHECK(told(x) == "").
template <class T>
std::string told(const Result<T>& result) {
  if (result) return "";
  std::string text = fmt::format("{}: {}", info(result.error().code).name, result.error().what);
  for (const std::string& cause : result.error().causes) text += ": " + cause;
  return text;
}

/// Numbers of the kept records.
inline std::string generations(os::Files& files, const std::string& path) {
  auto state = store::State::open(files, store::resolve_place(path).value(), store::OpenMode::existing).value();
  std::string text;
  const auto heads = state.heads().value();
  for (const auto& head : heads) text += fmt::format("{}{}{}", text.empty() ? "" : " ", head.number, head.adopted ? "a" : "");
  return text;
}

/// Contents that a kept record names and that neither the pool nor the live tree has; empty: the invariant holds.
inline std::string lost_contents(os::Files& files, const std::string& path, const std::vector<content::ContentId>& known_lost = {}) {
  auto state = store::State::open(files, store::resolve_place(path).value(), store::OpenMode::existing).value();
  if (!state.exists()) return "";
  const tree::Tree live = tree_at(path);
  std::string text;
  const auto heads = state.heads().value();
  for (const auto& head : heads) {
    const store::Record record = state.load(head.number).value();
    for (const tree::Entry& entry : record.tree.entries()) {
      const tree::File* file = entry.file();
      if (!file || std::find(known_lost.begin(), known_lost.end(), file->content()) != known_lost.end()) continue;
      bool is_there = false;
      for (const tree::Entry& other : live.entries()) is_there = is_there || (other.file() && other.file()->content() == file->content());
      const std::string in_pool = "contents/" + file->content().name();
      if (auto pooled = os::read_small(state.fd(), in_pool, 64u << 20)) {
        content::FileHasher hasher;
        hasher.update(as_bytes(*pooled));
        is_there = is_there || hasher.finish() == file->digest;
      }
      if (!is_there) text += fmt::format("{}:{} ", head.number, entry.path.bytes());
    }
  }
  return text;
}

}  // namespace envsync::testing
