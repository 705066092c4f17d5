// SPDX-License-Identifier: MIT
#include "store/discard.hpp"

#include <atomic>
#include <cerrno>

#include "store/workers.hpp"

namespace envsync::store {
namespace {

constexpr u32 kOwnerAll = 0700;
constexpr std::size_t kFoldersPerThread = 64;

enum class What : u8 { everything, shared };

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + "/" + b;
}

class Discard {
 public:
  Discard(os::Files& files, int at, const std::string& rel, const Twin& twin, CacheMoves& moves, What what)
      : files_(files), at_(at), rel_(rel), twin_(twin), moves_(moves), what_(what) {}

  Result<Discarded> run() {
    TRY(const auto top, os::stat_if_exists(at_, rel_));
    if (!top) return Discarded{};
    if (top->kind != os::Kind::directory) {
      TRY_STATUS(remove_file(at_, rel_, twin_.at, twin_.rel));
      return Discarded{files_gone_, bytes_gone_};
    }
    TRY_STATUS(collect());
    TRY_STATUS(for_each_index(folders_.size(), kFoldersPerThread, [this](std::size_t i) { return empty(folders_[i]); }));
    if (what_ == What::everything) TRY_STATUS(remove_folders());
    return Discarded{files_gone_, bytes_gone_};
  }

 private:
  struct Folder {
    std::string below;               // beneath rel_
    std::vector<std::string> files;
  };

  /// A folder that lost its owner's bits is opened all the same: it is ours.
  Result<os::Fd> open_folder(const std::string& below) {
    auto opened = os::open_dir(at_, joined(rel_, below));
    if (opened || opened.error().sys_errno != EACCES || what_ != What::everything) return opened;
    // LIMIT: a folder that not even its owner may read cannot be chmod-ed through a descriptor; os::remove_tree can.
    TRY_STATUS(os::remove_tree(files_, at_, joined(rel_, below)));
    return os::Fd();
  }

  /// Folders, parents first, with the names of what is no folder in them.
  Result<void> collect() {
    folders_.push_back({});
    std::size_t level_end = 1;  // of folders_, for the level that is being read
    for (std::size_t i = 0; i < folders_.size(); ++i) {
      if (i == level_end) {
        levels_.push_back(level_end);
        level_end = folders_.size();
      }
      const std::string below = folders_[i].below;
      TRY(const os::Fd fd, open_folder(below));
      if (!fd) continue;
      TRY(auto entries, os::list(fd.get(), joined(rel_, below)));
      for (os::DirEntry& entry : entries) {
        if (entry.kind == os::Kind::other) {  // the filesystem may not tell
          TRY(const auto stat, os::stat_if_exists(fd.get(), entry.name));
          if (stat) entry.kind = stat->kind;
        }
        if (entry.kind == os::Kind::directory) folders_.push_back({joined(below, entry.name), {}});
        else folders_[i].files.push_back(std::move(entry.name));
      }
    }
    return ok();
  }

  /// Level by level, the deepest first. Measured: on some kernels a rmdir waits 3 ms for others to let go of the folder, and
  /// sixteen of them wait together.
  Result<void> remove_folders() {
    levels_.insert(levels_.begin(), 0);
    for (std::size_t end = folders_.size(); !levels_.empty(); levels_.pop_back()) {
      const std::size_t begin = levels_.back();
      TRY_STATUS(for_each_index(end - begin, 1, [&](std::size_t i) { return remove_folder(folders_[begin + i].below); }, Bound::waiting));
      end = begin;
    }
    return ok();
  }

  Result<void> empty(const Folder& folder) {
    if (folder.files.empty()) return ok();
    TRY(const os::Fd fd, os::open_dir(at_, joined(rel_, folder.below)));
    os::Fd twin;
    if (twin_.at >= 0)
      if (auto opened = os::open_dir(twin_.at, joined(twin_.rel, folder.below))) twin = std::move(*opened);
    for (const std::string& name : folder.files) TRY_STATUS(remove_file(fd.get(), name, twin ? twin.get() : -1, name));
    return ok();
  }

  /// RACE: the twin may be replaced meanwhile; it is then another inode and the cache learns nothing.
  Result<void> remove_file(int dir, const std::string& name, int twin_dir, const std::string& twin_name) {
    TRY(const auto before, os::stat_if_exists(dir, name));
    if (!before) return ok();
    const auto is_twin = [&](const os::Stat& other) { return other.ino == before->ino && other.dev == before->dev; };
    const bool may_share = before->nlink > 1 && twin_dir >= 0;
    if (what_ == What::shared) {
      const auto same = may_share ? os::stat_if_exists(twin_dir, twin_name) : Result<std::optional<os::Stat>>(std::nullopt);
      if (!same || !*same || !is_twin(**same)) return ok();
    }
    auto gone = files_.unlink(dir, name);
    if (!gone && gone.error().sys_errno == EACCES && files_.chmod(dir, kOwnerAll)) gone = files_.unlink(dir, name);
    if (!gone && gone.error().sys_errno != ENOENT) return gone;
    ++files_gone_;
    if (before->nlink <= 1) bytes_gone_ += before->blocks * 512;
    if (!may_share) return ok();
    const auto after = os::stat_if_exists(twin_dir, twin_name);
    if (after && *after && is_twin(**after)) moves_.moved(scan::key_of(*before), scan::key_of(**after));
    return ok();
  }

  Result<void> remove_folder(const std::string& below) {
    auto gone = files_.rmdir(at_, joined(rel_, below));
    if (!gone && gone.error().sys_errno == EACCES) {
      const std::size_t slash = below.rfind('/');
      TRY(const os::Fd parent, os::open_dir(at_, joined(rel_, slash == std::string::npos ? std::string() : below.substr(0, slash))));
      TRY_STATUS(files_.chmod(parent.get(), kOwnerAll));
      gone = files_.rmdir(at_, joined(rel_, below));
    }
    if (!gone && gone.error().sys_errno != ENOENT) return gone;
    return ok();
  }

  os::Files& files_;
  int at_;
  const std::string& rel_;
  const Twin& twin_;
  CacheMoves& moves_;
  What what_;
  std::vector<Folder> folders_;        // level by level
  std::vector<std::size_t> levels_;    // where each level but the first begins
  std::atomic<u64> files_gone_{0}, bytes_gone_{0};
};

}  // namespace

void CacheMoves::moved(const scan::StatKey& from, const scan::StatKey& to) {
  if (cache_ != nullptr) return cache_->moved(from, to);
  const std::lock_guard lock(mutex_);
  list_.emplace_back(from, to);
}

Result<Discarded> discard_tree(os::Files& files, int at, const std::string& rel, const Twin& twin, CacheMoves& moves) {
  return Discard(files, at, rel, twin, moves, What::everything).run();
}

Result<Discarded> discard_shared(os::Files& files, int at, const std::string& rel, const Twin& twin, CacheMoves& moves) {
  return Discard(files, at, rel, twin, moves, What::shared).run();
}

}  // namespace envsync::store
