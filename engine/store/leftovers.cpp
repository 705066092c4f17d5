// SPDX-License-Identifier: MIT
#include "store/leftovers.hpp"

#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include "os/process.hpp"
#include "store/discard.hpp"
#include "store/hash_file.hpp"
#include "store/journal.hpp"
#include "store/state_impl.hpp"
#include "store/workers.hpp"

namespace envsync::store {

Result<Leftovers> Leftovers::open(State& state, const std::string& own) {
  Leftovers leftovers;
  leftovers.state_ = &state;
  TRY(const auto names, staging_names(state.fd()));
  for (const std::string& name : names) {
    if (name == own) continue;
    TRY(os::Fd dir, os::open_dir(state.fd(), staging_path(name)));
    TRY(const Parsed journal, Journal::peek(dir.get()));
    const bool is_over = journal.last == Last::none || journal.last == Last::begin || journal.last == Last::terminal;
    if (!is_over || journal.tail == Tail::damaged)
      return Error(ErrorCode::interference, fmt::format("an interrupted run of '{}' is not settled", printable(state.place().path)))
          .hint("run again: recovery comes first");
    if (journal.last_entry == Entry::accepted) continue;  // a displaced tree that somebody stands in
    // After a power cut a file may have its name and size and lack its bytes.
    const bool may_trust = journal.terms && !journal.terms->boot.empty() && journal.terms->boot == os::boot_id();
    TRY_STATUS(leftovers.collect(dir.get(), may_trust));
    leftovers.names_.push_back(name);
    leftovers.folders_.push_back(std::move(dir));
  }
  return leftovers;
}

Result<void> Leftovers::collect(int at, bool may_trust) {
  TRY_STATUS(collect_partial(at, may_trust));
  std::vector<std::string> folders{kNew};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    TRY(const auto stat, os::stat_if_exists(at, folder));
    if (!stat) continue;
    if (stat->kind == os::Kind::file) files_.push_back({at, folder, *stat, stat->nlink == 1, may_trust});
    if (stat->kind != os::Kind::directory) continue;
    TRY(const os::Fd dir, os::open_dir(at, folder));
    TRY(const auto entries, os::list(dir.get(), folder));
    for (const auto& entry : entries) {
      const std::string path = folder + "/" + entry.name;
      TRY(const auto found, os::stat_if_exists(dir.get(), entry.name));
      if (!found) continue;
      if (found->kind == os::Kind::directory) folders.push_back(path);
      if (found->kind == os::Kind::file) files_.push_back({at, path, *found, found->nlink == 1, may_trust});
    }
  }
  return ok();
}

Result<void> Leftovers::collect_partial(int at, bool may_trust) {
  TRY(const auto stat, os::stat_if_exists(at, kPartialDir));
  if (!stat || stat->kind != os::Kind::directory) return ok();
  TRY(const os::Fd dir, os::open_dir(at, kPartialDir));
  TRY(const auto entries, os::list(dir.get(), kPartialDir));
  for (const auto& entry : entries) {
    const auto content = ContentId::parse(entry.name);
    if (!content) continue;  // a list
    TRY(const auto found, os::stat_if_exists(dir.get(), entry.name));
    if (!found) continue;
    partial_.emplace(*content, Partial{at, may_trust});
    partial_bytes_ += found->blocks * 512;
  }
  return ok();
}

std::optional<Leftovers::Partial> Leftovers::find_partial(const ContentId& content) const {
  const auto found = partial_.find(content);
  if (found == partial_.end()) return std::nullopt;
  return found->second;
}

u64 Leftovers::bytes() const {
  u64 total = partial_bytes_;
  for (const File& file : files_)
    if (file.may_move) total += file.stat.blocks * 512;
  return total;
}

Result<void> Leftovers::identify(const Contents& wanted, const scan::StatCache& cache, const StepSink& sink, std::atomic<u64>& bytes_read) {
  std::unordered_set<u64> sizes;
  for (const ContentId& id : wanted) sizes.insert(id.size);
  std::vector<std::size_t> candidates;
  u64 total = 0;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!sizes.contains(files_[i].stat.size)) continue;
    candidates.push_back(i);
    total += files_[i].stat.size;
  }
  Progress progress(sink, Phase::stage, candidates.size(), total);
  std::mutex mutex;  // guards known_
  return for_each_index(candidates.size(), 16, [&](std::size_t k) -> Result<void> {
    const File& file = files_[candidates[k]];
    std::optional<ContentId> content;
    if (const auto cached = file.may_trust ? cache.find(scan::key_of(file.stat)) : std::nullopt) {
      content = ContentId{cached->digest, file.stat.size};
    } else if (const auto read = hash_file(file.at, file.path)) {
      content = *read;
      bytes_read += read->size;
    }
    progress.add(1, file.stat.size);
    if (!content || !wanted.contains(*content)) return ok();
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = known_.emplace(*content, candidates[k]);
    if (!is_new && !files_[at->second].may_move) at->second = candidates[k];
    return ok();
  });
}

const Leftovers::File* Leftovers::find(const ContentId& content) const {
  const auto found = known_.find(content);
  return found == known_.end() ? nullptr : &files_[found->second];
}

Result<void> Leftovers::remove(os::Files& files) {
  CacheMoves none(nullptr);
  for (const std::string& name : names_) TRY_STATUS(discard_tree(files, state_->fd(), staging_path(name), {}, none));
  return ok();
}

}  // namespace envsync::store
