// SPDX-License-Identifier: MIT
// Operations on more than one entry: replacing a small file, deleting a tree, making parents.
#include "os/files.hpp"

#include <cerrno>

#include <fcntl.h>

#include <fmt/format.h>

#include "base/guard.hpp"
#include "os/process.hpp"
#include "os/resolve.hpp"

namespace envsync::os {
namespace {

constexpr std::size_t kOpenFoldersMax = 64;  // LIMIT: deeper folders are closed and opened again on the way back
constexpr u32 kOwnerAll = 0700;

/// Depth first, without recursion. Each folder's names are read once, so that deleting does not disturb the listing.
class TreeRemover {
 public:
  TreeRemover(Files& files, int at, std::string rel) : files_(files), at_(at), path_(std::move(rel)) {}

  Result<void> run() {
    TRY(bool is_there, enter(at_, path_, path_.size()));
    if (!is_there) return ok();
    while (!stack_.empty()) {
      if (stack_.back().folders.empty()) {
        TRY_STATUS(leave());
        continue;
      }
      const std::string name = std::move(stack_.back().folders.back());
      stack_.back().folders.pop_back();
      TRY(const int dir, descriptor());
      const std::size_t length = path_.size();
      path_ += "/" + name;
      TRY(is_there, enter(dir, name, length));
      if (!is_there) path_.resize(length);
    }
    return ok();
  }

 private:
  struct Folder {
    Fd fd;                             // closed where the stack is deep
    std::size_t parent_length = 0;     // of path_, without this folder's name
    std::vector<std::string> folders;  // still to be deleted
  };

  /// Opens `name` in `dir`, deletes what is no folder, and pushes it; false where somebody else deleted it. `path_` names it
  /// already.
  Result<bool> enter(int dir, std::string_view name, std::size_t parent_length) {
    auto opened = open(dir, name);
    if (!opened && opened.error().sys_errno == ENOENT) return false;
    if (!opened) return std::move(opened).error();
    Fd fd = std::move(*opened);
    TRY(auto entries, list(fd.get(), path_));
    Folder folder;
    folder.parent_length = parent_length;
    for (auto& entry : entries) {
      if (entry.kind == Kind::directory) folder.folders.push_back(std::move(entry.name));
      else TRY_STATUS(unlink(fd.get(), entry.name, folder));
    }
    folder.fd = std::move(fd);
    stack_.push_back(std::move(folder));
    if (stack_.size() > kOpenFoldersMax) stack_[stack_.size() - 1 - kOpenFoldersMax].fd.reset();
    return true;
  }

  Result<Fd> open(int dir, std::string_view name) {
    auto fd = open_dir(dir, name);
    if (!fd && fd.error().sys_errno == EACCES) {
      const Fd closed(open_beneath(dir, name, O_PATH | O_DIRECTORY));
      if (closed && files_.chmod(closed.get(), kOwnerAll)) fd = open_dir(dir, name);
    }
    if (!fd) return std::move(fd).error().context(fmt::format("cannot delete '{}'", printable(path_)));
    return fd;
  }

  /// A filesystem that does not tell kinds shows its folders here.
  Result<void> unlink(int dir, const std::string& name, Folder& folder) {
    auto done = files_.unlink(dir, name);
    if (!done && done.error().sys_errno == EACCES && files_.chmod(dir, kOwnerAll)) done = files_.unlink(dir, name);
    if (done || done.error().sys_errno == ENOENT) return ok();
    if (done.error().sys_errno == EISDIR) {
      folder.folders.push_back(name);
      return ok();
    }
    return std::move(done).error().context(fmt::format("cannot empty '{}'", printable(path_)));
  }

  /// The descriptor of the top folder, opened again if the depth had it closed.
  Result<int> descriptor() {
    Folder& top = stack_.back();
    if (!top.fd) {
      TRY(top.fd, open_dir(at_, path_));
    }
    return top.fd.get();
  }

  /// Deletes the top folder, which is empty by now.
  Result<void> leave() {
    const std::size_t parent_length = stack_.back().parent_length;
    stack_.pop_back();
    Result<void> done = ok();
    if (stack_.empty()) {
      done = files_.rmdir(at_, path_);
    } else {
      const std::string name = path_.substr(parent_length + 1);
      path_.resize(parent_length);
      TRY(const int dir, descriptor());
      done = files_.rmdir(dir, name);
      if (!done && done.error().sys_errno == EACCES && files_.chmod(dir, kOwnerAll)) done = files_.rmdir(dir, name);
    }
    if (!done && done.error().sys_errno != ENOENT)
      return std::move(done).error().context(fmt::format("cannot empty '{}'", printable(path_)));
    return ok();
  }

  Files& files_;  // outlives the call
  int at_;
  std::string path_;  // of the top folder, beneath at_
  std::vector<Folder> stack_;
};

}  // namespace

namespace {

enum class Durable : bool { no, yes };

Result<void> replace(Files& files, int at, const std::string& rel, ByteView bytes, u32 mode, Durable durable) {
  const std::string temporary = fmt::format("{}.tmp-{}", rel, random_token().substr(0, 8));
  TRY(const Fd file, files.create(at, temporary, mode));
  ScopeGuard remove([&] { static_cast<void>(files.unlink(at, temporary)); });
  TRY_STATUS(files.write_at(file.get(), 0, bytes, temporary));
  // DURABILITY: the bytes before the name, else a power cut leaves an empty file under it.
  if (durable == Durable::yes) TRY_STATUS(files.fsync(file.get(), temporary));
  TRY_STATUS(files.rename(at, temporary, at, rel));
  remove.dismiss();
  return ok();
}

}  // namespace

Result<void> replace_file(Files& files, int at, const std::string& rel, ByteView bytes, u32 mode) { return replace(files, at, rel, bytes, mode, Durable::yes); }

Result<void> replace_cache_file(Files& files, int at, const std::string& rel, ByteView bytes) { return replace(files, at, rel, bytes, 0600, Durable::no); }

Result<void> remove_tree(Files& files, int at, const std::string& rel) {
  if (is_self(rel)) return resolve_error(EINVAL, "delete", rel);
  TRY(const auto found, stat_if_exists(at, rel));
  if (!found) return ok();
  if (found->kind != Kind::directory) return files.unlink(at, rel);
  return TreeRemover(files, at, rel).run();
}

Result<void> make_dirs(Files& files, int at, std::string_view rel, u32 mode) {
  if (is_self(rel)) return ok();
  for (std::size_t end = 0; end != rel.size();) {
    end = std::min(rel.find('/', end + 1), rel.size());
    const auto prefix = rel.substr(0, end);
    TRY(auto found, stat_if_exists(at, prefix));
    if (!found) {
      auto made = files.mkdir(at, prefix, mode);
      if (made) continue;
      if (made.error().sys_errno != EEXIST) return made;
      TRY(found, stat_if_exists(at, prefix));  // somebody else was faster
    }
    if (!found || found->kind != Kind::directory) return os_error(ENOTDIR, "make the folder", prefix);
  }
  return ok();
}

}  // namespace envsync::os
