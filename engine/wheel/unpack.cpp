// SPDX-License-Identifier: MIT
#include "wheel/unpack.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "os/process.hpp"
#include "base/sha256.hpp"

namespace envsync::wheel {

namespace {

constexpr u32 kFolderMode = 0755, kFileMode = 0644, kProgramMode = 0755;

struct Job { std::size_t wheel = 0; const PlacedFile* file = nullptr; };

class Unpacker {
 public:
  Unpacker(os::Files& files, const std::vector<Opened>& wheels, int root, const Progress& progress, std::stop_token stop)
      : files_(files), wheels_(wheels), root_(root), progress_(progress), stop_(std::move(stop)) {}

  Result<void> run() {
    TRY_STATUS(gather());
    TRY_STATUS(make_folders());
    for (const auto& [path, written] : written_) TRY_STATUS(write_text(path, *written));
    std::vector<std::jthread> others;
    try {
      for (u32 i = 1; i < std::min<u32>(os::cpu_count(), kThreadsMax); ++i) others.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // fewer threads do the same
    }
    work();
    others.clear();
    if (error_) return *std::move(error_);
    return ok();
  }

 private:
  static constexpr u32 kThreadsMax = 16;

  /// One writer a path.
  Result<void> gather() {
    std::map<tree::RelPath, Job> jobs;
    for (std::size_t i = 0; i < wheels_.size(); ++i) {
      for (const PlacedFile& file : wheels_[i].layout.files) {
        jobs.insert_or_assign(file.path, Job{i, &file});
        written_.erase(file.path);
      }
      for (const auto& [path, written] : wheels_[i].layout.written) {
        jobs.erase(path);
        written_.insert_or_assign(path, &written);
      }
    }
    for (const auto& [path, job] : jobs) {
      jobs_.push_back(job);
      total_ += entry_of(job).size;
      add_folders(path);
    }
    for (const auto& [path, written] : written_) add_folders(path);
    for (const tree::RelPath& folder : folders_) {
      const auto job = jobs.find(folder);
      if (job == jobs.end() && !written_.contains(folder)) continue;
      const std::string& wheel = wheels_[job != jobs.end() ? job->second.wheel : 0].archive.name();
      return refused(wheel, fmt::format("'{}' is a file of it, and a folder of another wheel", printable(folder.bytes())));
    }
    // The largest first, so that no thread is left with one at the end.
    std::ranges::stable_sort(jobs_, std::ranges::greater{}, [&](const Job& job) { return entry_of(job).size; });
    return ok();
  }

  const ArchiveEntry& entry_of(const Job& job) const { return wheels_[job.wheel].archive.entries()[job.file->entry]; }
  void add_folders(const tree::RelPath& path) {
    for (tree::RelPath up = path.parent(); !up.is_root() && folders_.insert(up).second;) up = up.parent();
  }

  Result<void> make_folders() {
    for (const tree::RelPath& folder : folders_) TRY_STATUS(files_.mkdir(root_, folder.bytes(), kFolderMode));
    return ok();
  }

  Result<void> write_text(const tree::RelPath& path, const WrittenFile& written) {
    TRY(const os::Fd fd, files_.create(root_, path.bytes(), kFileMode));
    TRY_STATUS(files_.write_at(fd.get(), 0, as_bytes(written.text), path.bytes()));
    TRY_STATUS(files_.chmod(fd.get(), written.is_executable ? kProgramMode : kFileMode));
    return files_.set_mtime(root_, path.bytes(), written.mtime_ns);
  }

  Result<void> write(Reader& reader, const Job& job) {
    const ArchiveEntry& entry = entry_of(job);
    const std::string& path = job.file->path.bytes();
    TRY(const os::Fd fd, files_.create(root_, path, kFileMode));
    Sha256Hasher hasher;
    u64 at = 0;
    TRY_STATUS(reader.read(entry, [&](ByteView piece) -> Result<void> {
      if (stop_.stop_requested()) return Error{ErrorCode::interrupted, "the request was cancelled"};
      hasher.update(piece);
      TRY_STATUS(files_.write_at(fd.get(), at, piece, path));
      at += piece.size();
      return ok();
    }));
    if (hasher.finish() != job.file->sum)
      return refused(wheels_[job.wheel].archive.name(), fmt::format("'{}' is not what its RECORD says: another sha256", printable(entry.name)));
    TRY_STATUS(files_.chmod(fd.get(), job.file->is_executable ? kProgramMode : kFileMode));
    return files_.set_mtime(root_, path, entry.mtime_ns);
  }

  void work() {
    std::vector<std::optional<Reader>> readers(wheels_.size());
    for (std::size_t done = 0;;) {
      const auto job = next(done);
      if (!job) return;
      auto result = [&]() -> Result<void> {
        auto& reader = readers[job->wheel];
        if (!reader) {
          TRY(Reader opened, Reader::open(wheels_[job->wheel].archive));
          reader.emplace(std::move(opened));
        }
        return write(*reader, *job);
      }();
      if (!result) return fail(std::move(result).error());
      done = entry_of(*job).size;
    }
  }

  std::optional<Job> next(u64 done_bytes) {
    const std::lock_guard lock(mutex_);
    done_ += done_bytes;
    if (progress_) progress_(done_, total_);
    if (error_ || next_ == jobs_.size()) return std::nullopt;
    return jobs_[next_++];
  }
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  os::Files& files_;
  const std::vector<Opened>& wheels_;
  const int root_;
  const Progress& progress_;
  const std::stop_token stop_;
  std::vector<Job> jobs_;
  std::map<tree::RelPath, const WrittenFile*> written_;
  std::set<tree::RelPath> folders_;
  u64 total_ = 0;

  std::mutex mutex_;  // all below
  std::size_t next_ = 0;
  u64 done_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Opened> open_wheel(int folder, const std::string& name) {
  TRY(os::Fd file, os::open_file(folder, name));
  TRY(Archive archive, Archive::open(std::move(file), name));
  TRY(Reader reader, Reader::open(archive));
  TRY(const Texts texts, read_texts(archive, reader));
  TRY(Layout layout, lay_out(archive, texts));
  return Opened{std::move(archive), std::move(layout)};
}

Result<void> unpack(os::Files& files, const std::vector<Opened>& wheels, int root, const Progress& progress, std::stop_token stop) {
  return Unpacker(files, wheels, root, progress, std::move(stop)).run();
}

}  // namespace envsync::wheel
