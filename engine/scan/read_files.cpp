// SPDX-License-Identifier: MIT
// Small files are read whole, in runs of one folder. A large file is read in segments by as many threads as are free; the one
// that finishes its last segment completes it. A file counts as read when the stats before and after agree.
#include "scan/read_files.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "scan/workers.hpp"

namespace envsync::scan {

namespace {

using content::kSegmentBytes;

constexpr int kReadsMax = 3;                    // of a file that changes meanwhile
constexpr std::size_t kBufferBytes = 1u << 20;  // fits the second-level cache, so that hashing reads it from there
constexpr std::size_t kRunFilesMax = 64;        // of one folder in one job

/// A large file while its segments are read.
struct Large {
  u32 index = 0;
  std::mutex mutex;                             // guards the opening
  bool is_opened = false;
  os::Fd fd;
  os::Stat before;
  i64 clock_ns = 0;
  std::vector<content::Digest> segments;        // each written by the thread that read it
  std::atomic<u64> left = 0;                    // segments
  std::atomic<bool> is_spoiled = false;         // it is not what its stat said: read again as a whole
};

/// Either files indexes[first, first + count) of one folder, or one segment of a large file.
struct Job {
  std::size_t first = 0, count = 0;
  Large* large = nullptr;
  u64 segment = 0;
};

class Reader {
 public:
  Reader(int root_fd, Listing& listing, std::vector<u32> indexes, const Options& options, const Believed& cache)
      : root_fd_(root_fd), listing_(listing), indexes_(std::move(indexes)), options_(options), cache_(cache) {}
  Result<ReadReport> run();

 private:
  void plan_jobs();
  void work(bool is_caller);
  void read_run(const Job& job, Bytes& buffer);
  void read_segment(const Job& job, Bytes& buffer);
  void complete(Large& large, Bytes& buffer);
  /// Reads until it holds still; empty, or why it cannot be read.
  std::optional<std::string> read_file(u32 index, int dir, std::string_view name, Bytes& buffer);
  std::optional<content::Digest> read_once(int fd, u64 size, Bytes& buffer);
  void set(u32 index, const os::Stat& stat, Cached cached, i64 clock_ns);
  void fail(u32 index, std::string why);
  void count(u64 files, u64 bytes) { files_ += files; bytes_ += bytes; }

  const int root_fd_;
  Listing& listing_;                            // each index is written by one thread at a time
  const std::vector<u32> indexes_;
  const Options& options_;
  const Believed& cache_;
  std::vector<std::unique_ptr<Large>> large_;
  std::vector<Job> jobs_;
  u64 bytes_planned_ = 0;
  std::atomic<std::size_t> next_job_ = 0;
  std::atomic<u64> files_ = 0, bytes_ = 0;
  std::mutex mutex_;                            // guards failed_
  std::vector<std::pair<u32, std::string>> failed_;
};

std::string_view folder_of(const tree::Entry& entry) {
  const std::size_t slash = entry.path.bytes().rfind('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(entry.path.bytes()).substr(0, slash);
}

/// The walk saw it: what is gone now has changed.
std::string why_unopened(const Error& error) { return error.sys_errno == ENOENT ? kChanged : describe(error); }

void Reader::plan_jobs() {
  for (std::size_t i = 0; i < indexes_.size(); ++i) {
    const tree::Entry& entry = listing_.entries[indexes_[i]];
    const u64 size = entry.file()->size;
    bytes_planned_ += size;
    if (size > kSegmentBytes) {
      Large& large = *large_.emplace_back(std::make_unique<Large>());
      large.index = indexes_[i];
      const u64 segments = (size + kSegmentBytes - 1) / kSegmentBytes;
      large.segments.resize(static_cast<std::size_t>(segments));
      large.left = segments;
      for (u64 s = 0; s < segments; ++s) jobs_.push_back({0, 0, &large, s});
      continue;
    }
    Job* last = jobs_.empty() ? nullptr : &jobs_.back();
    const bool joins = last != nullptr && last->large == nullptr && last->first + last->count == i && last->count < kRunFilesMax &&
                       folder_of(listing_.entries[indexes_[i - 1]]) == folder_of(entry);
    if (joins) ++last->count;
    else jobs_.push_back({i, 1, nullptr, 0});
  }
}

Result<ReadReport> Reader::run() {
  plan_jobs();
  const auto threads = static_cast<u32>(std::min<std::size_t>(thread_count(options_), std::max<std::size_t>(1, jobs_.size())));
  run_workers(threads, [this](u32 number) { work(number == 0); });
  if (options_.stop.stop_requested()) return stopped();
  std::ranges::sort(failed_);
  return ReadReport{std::move(failed_), files_, bytes_};
}

void Reader::work(bool is_caller) {
  Bytes buffer(kBufferBytes);
  for (;;) {
    const std::size_t at = next_job_++;
    if (at >= jobs_.size() || options_.stop.stop_requested()) return;
    const Job& job = jobs_[at];
    if (job.large != nullptr) read_segment(job, buffer);
    else read_run(job, buffer);
    // Told by the calling thread alone: so it is one at a time, under no lock.
    if (is_caller && options_.progress) options_.progress(files_, bytes_, bytes_planned_);
  }
}

void Reader::fail(u32 index, std::string why) {
  const std::lock_guard lock(mutex_);
  failed_.emplace_back(index, std::move(why));
}

void Reader::set(u32 index, const os::Stat& stat, Cached cached, i64 clock_ns) {
  const StatKey key = key_of(stat);
  if (cache_.cache != nullptr) cache_.cache->put(key, cached, clock_ns, cache_.is_network);
  tree::Entry& entry = listing_.entries[index];
  entry.mode = stat.mode;
  entry.mtime_ns = stat.mtime_ns;
  entry.owner = {stat.uid, stat.gid};
  entry.xattrs = wanted_xattrs(std::move(cached.xattrs), options_);
  entry.body = tree::File{.size = stat.size, .digest = cached.digest, .link_group = 0};
  listing_.stats[index] = key;
}

void Reader::read_run(const Job& job, Bytes& buffer) {
  const std::string folder(folder_of(listing_.entries[indexes_[job.first]]));
  const auto dir = os::open_dir(root_fd_, folder);
  for (std::size_t i = job.first; i < job.first + job.count; ++i) {
    if (options_.stop.stop_requested()) return;
    const u32 index = indexes_[i];
    if (!dir) { fail(index, why_unopened(dir.error())); continue; }
    const std::string name(listing_.entries[index].path.name());
    if (auto why = read_file(index, dir->get(), name, buffer)) fail(index, std::move(*why));
  }
}

std::optional<content::Digest> Reader::read_once(int fd, u64 size, Bytes& buffer) {
  content::FileHasher hasher;
  while (hasher.size() < size) {
    if (options_.stop.stop_requested()) return std::nullopt;
    const auto wanted = static_cast<std::size_t>(std::min<u64>(buffer.size(), size - hasher.size()));
    const auto got = os::read_at(fd, hasher.size(), std::span(buffer).first(wanted), "a file");
    if (!got || *got != wanted) return std::nullopt;
    hasher.update(ByteView(buffer).first(wanted));
  }
  count(0, size);
  return hasher.finish();
}

std::optional<std::string> Reader::read_file(u32 index, int dir, std::string_view name, Bytes& buffer) {
  for (int i = 0; i < kReadsMax; ++i) {
    if (options_.stop.stop_requested()) return std::nullopt;
    const i64 clock_ns = os::filesystem_clock_ns();
    const auto file = os::open_file(dir, name);
    if (!file) return why_unopened(file.error());
    const auto before = os::stat_fd(file->get());
    if (!before) return describe(before.error());
    const auto digest = read_once(file->get(), before->size, buffer);
    if (!digest) continue;
    Cached cached{.digest = *digest, .xattrs = {}, .has_xattrs = options_.want_xattrs};
    if (options_.want_xattrs) {
      auto list = os::xattrs(dir, name);
      if (!list) return describe(list.error());
      cached.xattrs = managed_xattrs(std::move(*list));
    }
    // RACE: by path, so that a file that took this one's place meanwhile shows too; one that comes later is the recheck's.
    const auto after = os::stat_at(dir, name);
    if (!after || key_of(*after) != key_of(*before)) continue;
    set(index, *before, std::move(cached), clock_ns);
    count(1, 0);
    return std::nullopt;
  }
  return kChanged;
}

void Reader::read_segment(const Job& job, Bytes& buffer) {
  Large& large = *job.large;
  const std::string& path = listing_.entries[large.index].path.bytes();
  {
    const std::lock_guard lock(large.mutex);
    if (!large.is_opened) {
      large.is_opened = true;
      large.clock_ns = os::filesystem_clock_ns();
      auto file = os::open_file(root_fd_, path);
      const auto before = file ? os::stat_fd(file->get()) : Result<os::Stat>(Error());
      if (before && before->size == listing_.entries[large.index].file()->size) {
        large.fd = std::move(*file);
        large.before = *before;
      } else {
        large.is_spoiled = true;
      }
    }
  }
  if (!large.is_spoiled) {
    const u64 offset = job.segment * kSegmentBytes;
    const u64 size = std::min(kSegmentBytes, large.before.size - offset);
    content::Hasher hasher;
    for (u64 done = 0; done < size && !large.is_spoiled && !options_.stop.stop_requested();) {
      const auto wanted = static_cast<std::size_t>(std::min<u64>(buffer.size(), size - done));
      const auto got = os::read_at(large.fd.get(), offset + done, std::span(buffer).first(wanted), path);
      if (!got || *got != wanted) large.is_spoiled = true;
      else hasher.update(ByteView(buffer).first(wanted));
      done += wanted;
    }
    large.segments[static_cast<std::size_t>(job.segment)] = hasher.digest();
    count(0, size);
  }
  if (--large.left == 0 && !options_.stop.stop_requested()) complete(large, buffer);
}

void Reader::complete(Large& large, Bytes& buffer) {
  const tree::Entry& entry = listing_.entries[large.index];
  const std::string& path = entry.path.bytes();
  if (!large.is_spoiled) {
    Cached cached{.digest = content::digest_of_segments(large.segments, large.before.size), .xattrs = {}, .has_xattrs = options_.want_xattrs};
    auto list = options_.want_xattrs ? os::xattrs(root_fd_, path) : Result<os::XattrList>(os::XattrList());
    const auto after = os::stat_at(root_fd_, path);
    large.fd.reset();
    if (list && after && key_of(*after) == key_of(large.before)) {
      cached.xattrs = managed_xattrs(std::move(*list));
      set(large.index, large.before, std::move(cached), large.clock_ns);
      count(1, 0);
      return;
    }
  }
  large.fd.reset();
  // It changed, or cannot be read: once more as a whole, which finds out why.
  const auto dir = os::open_dir(root_fd_, folder_of(entry));
  if (!dir) return fail(large.index, why_unopened(dir.error()));
  if (auto why = read_file(large.index, dir->get(), std::string(entry.path.name()), buffer)) fail(large.index, std::move(*why));
}

}  // namespace

Result<ReadReport> read_files(int root_fd, Listing& listing, std::vector<u32> indexes, const Options& options, const Believed& cache) {
  if (indexes.empty()) return ReadReport{};
  return Reader(root_fd, listing, std::move(indexes), options, cache).run();
}

}  // namespace envsync::scan
