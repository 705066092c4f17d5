// SPDX-License-Identifier: MIT
#include "wheel/cache.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/guard.hpp"
#include "os/process.hpp"
#include "python/environment.hpp"

namespace envsync::wheel {

namespace {

constexpr std::string_view kFolder = "wheels", kSuffix = ".whl", kUnfinished = "new-";
constexpr std::string_view kLayoutVersion = "envsync wheels 1";  // changes with what is made of a wheel
constexpr u32 kPrivate = 0700, kRootMode = 0755;
constexpr std::size_t kWheelsMax = 2000;  // LIMIT: an environment has some 300 distributions
constexpr std::size_t kKeptMax = 4;       // LIMIT: unpacked sets of wheels that stay for the next run
constexpr i64 kAbandonedNs = 24ll * 3600 * 1'000'000'000;

bool is_wheel(const os::DirEntry& entry) { return entry.name.ends_with(kSuffix) && entry.name.size() > kSuffix.size(); }

/// The file names of each distribution; an error where one has several.
Result<void> check_names(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> by_distribution;
  for (const std::string& name : names) by_distribution[python::normalize_name(std::string_view(name).substr(0, name.find('-')))].push_back(name);
  for (const auto& [distribution, files] : by_distribution) {
    if (files.size() < 2) continue;
    Error error{ErrorCode::wheel_refused, fmt::format("the folder holds {} wheels of '{}'", files.size(), printable(distribution))};
    for (const std::string& file : files) error.causes.push_back(printable(file));
    return std::move(error).note("nothing of them was installed").hint("name the one wheel that is meant, or leave one of each distribution in the folder");
  }
  return ok();
}

class Cache {
 public:
  Cache(os::Files& files, const std::string& cache) : files_(files), path_(cache.empty() ? cache : fmt::format("{}/{}", cache, kFolder)), cache_(cache) {}

  Result<void> open() {
    if (cache_.empty()) return Error{ErrorCode::failed, "there is no cache folder to unpack wheels in"}.hint("set XDG_CACHE_HOME or HOME to a folder of this user");
    TRY(const os::Fd base, os::open_dir_absolute(cache_));
    TRY_STATUS(os::make_dirs(files_, base.get(), kFolder, kPrivate));
    TRY(folder_, os::open_dir(base.get(), kFolder));
    return ok();
  }

  /// Held by a shared lock, so that nobody's pruning takes it away; nullopt: not there.
  std::optional<Unpacked> take(const std::string& name) {
    auto root = os::open_dir(folder_.get(), name);
    if (!root || !os::try_share(*root)) return std::nullopt;
    const auto there = os::stat_if_exists(folder_.get(), name);
    const auto opened = os::stat_fd(root->get());
    if (!there || !*there || !opened || (*there)->ino != opened->ino) return std::nullopt;  // it was pruned in between
    (void)files_.set_mtime(folder_.get(), name, os::filesystem_clock_ns());
    return Unpacked{std::move(*root), fmt::format("{}/{}", path_, name)};
  }

  Result<Unpacked> add(const std::string& name, const std::vector<Opened>& wheels, const Progress& progress, const std::stop_token& stop) {
    TRY_STATUS(check_space(wheels));
    const std::string unfinished = fmt::format("{}{}", kUnfinished, os::random_token());
    TRY_STATUS(files_.mkdir(folder_.get(), unfinished, kRootMode));
    const ScopeGuard undo([&] { (void)os::remove_tree(files_, folder_.get(), unfinished); });
    {
      TRY(const os::Fd root, os::open_dir(folder_.get(), unfinished));
      TRY_STATUS(wheel::unpack(files_, wheels, root.get(), progress, stop));
      TRY_STATUS(files_.syncfs(root.get()));
    }
    // Where another run was faster, its folder is as good.
    const auto renamed = files_.rename_noreplace(folder_.get(), unfinished, folder_.get(), name);
    auto made = take(name);
    if (made) return *std::move(made);
    if (!renamed) return renamed.error();
    return Error{ErrorCode::io, fmt::format("'{}/{}' went while it was used", path_, name)}.hint("run again");
  }

  /// Lets go of what was used least, but for what somebody holds.
  void prune() {
    const auto entries = os::list(folder_.get(), path_);
    if (!entries) return;
    std::vector<std::pair<i64, std::string>> kept;  // by last use
    const i64 now = os::filesystem_clock_ns();
    for (const os::DirEntry& entry : *entries) {
      const auto st = os::stat_at(folder_.get(), entry.name);
      if (!st) continue;
      if (!entry.name.starts_with(kUnfinished)) kept.emplace_back(st->mtime_ns, entry.name);
      else if (now - st->mtime_ns > kAbandonedNs) (void)os::remove_tree(files_, folder_.get(), entry.name);
    }
    if (kept.size() <= kKeptMax) return;
    std::ranges::sort(kept, std::ranges::greater{});
    for (std::size_t i = kKeptMax; i < kept.size(); ++i) drop(kept[i].second);
  }

 private:
  void drop(const std::string& name) {
    auto fd = os::open_dir(folder_.get(), name);
    if (!fd) return;
    const auto lock = os::try_lock(std::move(*fd));
    if (!lock || !*lock) return;
    const std::string away = fmt::format("{}{}", kUnfinished, os::random_token());
    if (files_.rename_noreplace(folder_.get(), name, folder_.get(), away)) (void)os::remove_tree(files_, folder_.get(), away);
  }

  Result<void> check_space(const std::vector<Opened>& wheels) const {
    u64 needed = 0;
    for (const Opened& wheel : wheels) needed += wheel.archive.unpacked_bytes();
    TRY(const os::Space space, os::space(folder_.get()));
    if (needed <= space.bytes_free) return ok();
    return Error{ErrorCode::no_space, fmt::format("unpacking the wheels takes {} in '{}', which has {} free", human_bytes(needed), printable(path_), human_bytes(space.bytes_free))}
        .note("nothing was unpacked")
        .hint("free some space there, or set XDG_CACHE_HOME to a larger filesystem");
  }

  os::Files& files_;
  const std::string path_, cache_;
  os::Fd folder_;
};

Result<std::string> digest_of_all(const Found& wheels, const DigestOf& digest_of) {
  content::Hasher hasher;
  Bytes bytes;
  put_string(bytes, kLayoutVersion);
  for (const std::string& name : wheels.names) {
    TRY(const os::Fd file, os::open_file(wheels.folder.get(), name));
    TRY(const content::Digest digest, digest_of(file.get(), name));
    put_string(bytes, name);
    put_string(bytes, as_text(digest.bytes));
  }
  hasher.update(bytes);
  return hasher.digest().hex();
}

}  // namespace

Result<std::optional<Found>> find(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  Found found;
  if (name.ends_with(kSuffix)) {
    TRY(found.folder, os::open_dir_absolute(path.substr(0, std::max<std::size_t>(slash, 1))));
    TRY(const auto st, os::stat_if_exists(found.folder.get(), name));
    if (!st || st->kind != os::Kind::file) return std::optional<Found>();
    found.names.push_back(name);
    return std::optional(std::move(found));
  }
  TRY(found.folder, os::open_dir_absolute(path));
  TRY(const auto entries, os::list(found.folder.get(), path));
  for (const os::DirEntry& entry : entries) {
    if (entry.name == "pyvenv.cfg" || entry.name.ends_with(".dist-info")) return std::optional<Found>();
    if (is_wheel(entry)) found.names.push_back(entry.name);
  }
  if (found.names.empty()) return std::optional<Found>();
  std::ranges::sort(found.names);
  return std::optional(std::move(found));
}

Result<Unpacked> unpacked(os::Files& files, const std::string& cache, const Found& wheels, const DigestOf& digest_of, const Progress& progress,
                          std::stop_token stop) {
  if (wheels.names.size() > kWheelsMax) return Error{ErrorCode::wheel_refused, fmt::format("the folder holds {} wheels, more than {}", wheels.names.size(), kWheelsMax)};
  TRY_STATUS(check_names(wheels.names));
  Cache held(files, cache);
  TRY_STATUS(held.open());
  TRY(const std::string name, digest_of_all(wheels, digest_of));
  if (auto there = held.take(name)) return *std::move(there);
  std::vector<Opened> opened;
  for (const std::string& wheel : wheels.names) {
    TRY(Opened one, open_wheel(wheels.folder.get(), wheel));
    opened.push_back(std::move(one));
  }
  TRY(Unpacked made, held.add(name, opened, progress, stop));
  held.prune();
  return made;
}

}  // namespace envsync::wheel
