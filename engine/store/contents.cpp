// SPDX-License-Identifier: MIT
// Where each missing content comes from, cheapest first: the live tree, the pool, leftovers of earlier runs, another folder of
// this host; the rest is wanted from the source. Whatever is taken is verified while it is taken.
#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

#include "store/hash_file.hpp"
#include "store/leftovers.hpp"
#include "store/receiving.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {
namespace {

enum class From : u8 { nothing, live, pool, leftover, same_host, source };

struct Job {
  const std::vector<u32>* users = nullptr;
  const ContentId* content = nullptr;
  From from = From::source;
  std::string path;                  // beneath its origin
  int at = -1;
  bool may_move = false;             // a leftover that has no other link
  std::string_view folder;           // of this host
};


}  // namespace

class ContentFinder {
 public:
  ContentFinder(Transaction::Impl& t, const StepSink& sink) : t_(t), sink_(sink) {}

  Result<void> run() {
    for (auto& [content, users] : t_.plan.contents) {
      Job job;
      job.users = &users;
      job.content = &content;
      if (content.size == 0) job.from = From::nothing;
      jobs_.push_back(std::move(job));
    }
    std::ranges::sort(jobs_, [this](const Job& a, const Job& b) { return before(a, b); });
    if (t_.begin.use_local_content) {
      find_live();
      TRY_STATUS(find_in_pool());
      TRY_STATUS(find_leftovers());
      for (const HostFolder& folder : t_.begin.host_folders) TRY_STATUS(find_in_folder(folder));
    }
    TRY_STATUS(check_space());
    TRY_STATUS(take_all());
    TRY_STATUS(take_partial());
    TRY_STATUS(leftovers_.remove(*t_.files));
    TRY_STATUS(look_again());
    list_wanted();
    return ok();
  }

 private:
  const tree::Entry& first(const Job& job) const { return t_.desired()[job.users->front()]; }

  /// In order of folder, the files of one together; large ones after all small ones.
  bool before(const Job& a, const Job& b) const {
    const bool a_large = a.content->size > content::kSegmentBytes, b_large = b.content->size > content::kSegmentBytes;
    if (a_large != b_large) return b_large;
    const std::string_view a_path = first(a).path.bytes(), b_path = first(b).path.bytes();
    const auto folder = [](std::string_view path) { return path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/')); };
    const int order = folder(a_path).compare(folder(b_path));
    return order != 0 ? order < 0 : a_path < b_path;
  }

  bool any_missing() const {
    return std::ranges::any_of(jobs_, [](const Job& job) { return job.from == From::source; });
  }

  void find_live() {
    if (!any_missing()) return;
    std::unordered_map<ContentId, u32, content::ContentIdHash> found;
    for (u32 i = 0; i < t_.base().size(); ++i)
      if (const tree::File* file = t_.base()[i].file(); file && t_.plan.contents.contains(file->content())) found.emplace(file->content(), i);
    for (Job& job : jobs_) {
      const auto at = found.find(*job.content);
      if (job.from != From::source || at == found.end()) continue;
      job.from = From::live;
      job.at = t_.live.get();
      job.path = t_.base()[at->second].path.bytes();
    }
  }

  Result<void> find_in_pool() {
    if (!any_missing()) return ok();
    TRY(const auto pool, list_pool(t_.state->fd()));
    for (Job& job : jobs_) {
      if (job.from != From::source || !std::ranges::binary_search(pool, *job.content)) continue;
      job.from = From::pool;
      job.at = t_.state->fd();
      job.path = content_path(*job.content);
    }
    return ok();
  }

  Result<void> find_leftovers() {
    TRY(leftovers_, Leftovers::open(*t_.state, t_.tx));
    if (leftovers_.empty() || !any_missing()) return ok();
    Contents missing;
    for (const Job& job : jobs_)
      if (job.from == From::source) missing.insert(*job.content);
    TRY_STATUS(leftovers_.identify(missing, *t_.cache, sink_, t_.bytes_read));
    for (Job& job : jobs_) {
      const Leftovers::File* file = job.from == From::source ? leftovers_.find(*job.content) : nullptr;
      if (!file) continue;
      job.from = From::leftover;
      job.at = file->at;
      job.path = file->path;
      job.may_move = file->may_move;
    }
    return ok();
  }

  Result<void> find_in_folder(const HostFolder& folder) {
    if (!any_missing()) return ok();
    TRY(os::Fd at, os::open_dir_absolute(folder.path));
    std::unordered_map<u32, const tree::RelPath*> given;
    for (const auto& [index, path] : folder.files) given.emplace(index, &path);
    for (Job& job : jobs_) {
      if (job.from != From::source) continue;
      const tree::RelPath* path = folder.files.empty() ? &first(job).path : nullptr;
      for (const u32 user : *job.users)
        if (const auto found = given.find(user); path == nullptr && found != given.end()) path = found->second;
      if (path == nullptr) continue;
      job.from = From::same_host;
      job.at = at.get();
      job.path = path->bytes();
      job.folder = folder.path;
    }
    folders_.push_back(std::move(at));
    return ok();
  }

  Result<void> check_space() {
    tree::StagedSpace space;
    for (const Job& job : jobs_) {
      const u64 copies = job.users->size() - (job.from == From::leftover && job.may_move ? 1 : 0);
      for (u64 i = 0; i < copies; ++i) space.add_file(job.content->size);
    }
    for (std::size_t i = 0; i < t_.plan.folders.size(); ++i) space.add_folder();
    return t_.check_space(space, leftovers_.bytes());
  }

  Result<void> take_all() {
    u64 files = 0, bytes = 0;
    std::vector<Job*> work;
    for (Job& job : jobs_) {
      if (job.from == From::source) continue;
      work.push_back(&job);
      files += job.users->size();
      bytes += job.content->size;
    }
    Progress progress(sink_, Phase::stage, files, bytes);
    TRY_STATUS(for_each_index(work.size(), 16, [&](std::size_t i) -> Result<void> {
      if (t_.begin.stop.stop_requested()) return Error(ErrorCode::interrupted, "the run was stopped");
      TRY(const bool is_taken, take(*work[i]));
      if (!is_taken) work[i]->from = From::source;
      else progress.add(work[i]->users->size(), work[i]->content->size);
      return ok();
    }));
    progress.finish();
    return ok();
  }

  /// False: what lies there is not that content any more.
  Result<bool> take(const Job& job) {
    const u32 index = job.users->front();
    const u64 names = job.users->size();
    if (job.from == From::nothing) {
      if (content::digest_of({}) != job.content->digest)
        return Error(ErrorCode::protocol, fmt::format("an empty file with a digest of its own: '{}'", t_.shown(first(job).path)));
      TRY_STATUS(t_.make_small(index, {}));
    } else if (job.from == From::leftover && job.may_move) {
      TRY_STATUS(t_.take_file(index, job.at, job.path));
      ++t_.files_linked;
      t_.files_copied += names - 1;
    } else {
      TRY(const bool is_taken, job.from == From::pool ? take_from_pool(job, index) : copy(job, index));
      if (!is_taken) return false;
      t_.files_copied += names - 1;
    }
    TRY_STATUS(t_.finish_content(*job.users));
    return true;
  }

  Result<bool> copy(const Job& job, u32 index) {
    auto from = os::open_file(job.at, job.path);
    bool is_same = false;
    if (from) {
      TRY(is_same, t_.make_copy(index, from->get()));
    }
    if (is_same) ++t_.files_copied;
    if (is_same || job.from != From::same_host) return is_same;
    Error error(ErrorCode::source_changed, fmt::format("'{}/{}' is not what it was when it was scanned", printable(job.folder), printable(job.path)));
    return from ? error : std::move(error).cause(from.error().what);
  }

  /// A link where nothing about the file changes; the pool's own name goes at accept.
  Result<bool> take_from_pool(const Job& job, u32 index) {
    TRY(const auto stat, os::stat_if_exists(job.at, job.path));
    if (!stat || stat->size != job.content->size) return false;
    if (job.users->size() > 1 || !fits(*stat, job, t_.desired()[index])) return copy(job, index);
    auto found = hash_file(job.at, job.path);
    if (!found || *found != *job.content) return false;
    t_.bytes_read += found->size;
    const std::string to = t_.staged_path(t_.desired()[index].path);
    if (!t_.files->link(job.at, job.path, t_.dir.get(), to)) return copy(job, index);
    TRY(const os::Stat made, os::stat_at(t_.dir.get(), to));
    t_.staged[index] = scan::key_of(made);
    ++t_.files_linked;
    const std::lock_guard lock(t_.link_mutex);
    pool_links_.push_back(index);
    return true;
  }

  /// A leftover of an earlier run may have been another link of what came from the pool: its deletion moved the ctime.
  Result<void> look_again() {
    for (const u32 index : pool_links_) {
      TRY(const os::Stat stat, os::stat_at(t_.dir.get(), t_.staged_path(t_.desired()[index].path)));
      scan::StatKey& noted = t_.staged[index];
      if (stat.ino != noted.ino || stat.size != noted.size || stat.mtime_ns != noted.mtime_ns) continue;  // the seal finds it
      noted.ctime_ns = stat.ctime_ns;
      if (const auto group = t_.plan.members.find(index); group != t_.plan.members.end())
        for (const u32 member : group->second) t_.staged[member] = noted;
    }
    return ok();
  }

  bool fits(const os::Stat& stat, const Job& job, const tree::Entry& entry) const {
    if (stat.mode != entry.mode || (t_.begin.write_mtime && stat.mtime_ns != entry.mtime_ns)) return false;
    const tree::Owner owner = t_.begin.preserve_owner ? entry.owner : tree::Owner{::geteuid(), ::getegid()};
    const bool is_owner = (stat.uid == owner.uid && stat.gid == owner.gid) || (!t_.begin.preserve_owner && ::geteuid() == 0);
    if (!is_owner) return false;
    const auto xattrs = os::xattrs(job.at, job.path);
    if (!xattrs) return false;
    tree::Xattrs managed;
    for (const auto& x : *xattrs)
      if (x.first.starts_with("user.") || x.first == "security.capability") managed.push_back(x);
    return managed == entry.xattrs;
  }

  /// Large contents that an earlier run had begun to receive are gone on with.
  Result<void> take_partial() {
    for (const Job& job : jobs_) {
      const bool has_segments = job.from == From::source && job.content->size > content::kSegmentBytes;
      const auto partial = has_segments ? leftovers_.find_partial(*job.content) : std::nullopt;
      if (!partial) continue;
      TRY(auto into, Receiving::take_over(*t_.files, t_.dir.get(), partial->at, *job.content, partial->may_trust, t_.bytes_read));
      if (into && into->segments_left == 0) into->give_back(into->digests.size() - 1);  // so that a last piece comes, and completes the file
      if (!into) continue;
      t_.built.insert(job.users->front());  // its segments may come from a base
      t_.receiving.emplace(job.users->front(), std::move(into));
    }
    return ok();
  }

  void list_wanted() {
    for (const Job& job : jobs_) {
      if (job.from != From::source) continue;
      const u32 index = job.users->front();
      t_.needs.wanted.push_back(index);
      t_.needs.wanted_bytes += job.content->size;
      const auto begun = t_.receiving.find(index);
      t_.wanted.emplace(index, begun != t_.receiving.end());
      if (begun != t_.receiving.end()) t_.needs.wanted_bytes -= list_missing(index, *begun->second, t_.needs.missing);
    }
    t_.wanted_left = t_.needs.wanted.size();
  }

  Transaction::Impl& t_;
  const StepSink& sink_;
  std::vector<Job> jobs_;
  Leftovers leftovers_;
  std::vector<u32> pool_links_;      // guarded by the transaction's link_mutex
  std::vector<os::Fd> folders_;      // of this host
};

Result<void> Transaction::Impl::find_contents(const StepSink& sink) { return ContentFinder(*this, sink).run(); }

}  // namespace envsync::store
