// SPDX-License-Identifier: MIT
#include "store/state.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/process.hpp"
#include "store/record.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kLockTextMax = 4096;
constexpr u32 kWritableByOthers = 022;

/// Opens `name` in `at` if it is a folder of ours that nobody else may write to; an empty descriptor where it is absent.
Result<os::Fd> open_ours(int at, const std::string& name, const std::string& shown) {
  TRY(const auto stat, os::stat_if_exists(at, name));
  if (!stat) return os::Fd();
  const Error refused = Error(ErrorCode::place_refused, fmt::format("'{}' cannot hold envsync's state", printable(shown)));
  if (stat->kind != os::Kind::directory) return Error(refused).cause("it is not a folder");
  if (stat->uid != ::geteuid()) return Error(refused).cause(fmt::format("it belongs to user {}", stat->uid));
  if (stat->mode & kWritableByOthers) return Error(refused).cause("others may write to it").hint(fmt::format("run `chmod go-w '{}'`", printable(shown)));
  auto opened = os::open_dir(at, name);
  if (!opened && opened.error().sys_errno == EXDEV) return Error(refused).cause("a filesystem is mounted there");
  return opened;
}

/// A place that cannot be written to is no fault of the disk.
Error unwritable(Error error, const std::string& shown) {
  const int number = error.sys_errno;
  if (number != EROFS && number != EACCES && number != EPERM) return error;
  error.code = ErrorCode::place_refused;
  return std::move(error).context(fmt::format("'{}' cannot hold envsync's state", printable(shown))).note("nothing was changed");
}

Result<os::Fd> make_ours(os::Files& files, int at, const std::string& name, const std::string& shown) {
  auto made = files.mkdir(at, name, 0700);
  if (!made && made.error().sys_errno != EEXIST) return unwritable(std::move(made).error(), shown);
  TRY(os::Fd fd, open_ours(at, name, shown));
  if (!fd) return os::os_error(ENOENT, "open", shown);
  // DURABILITY: the folders of the state must outlive a power cut that the environment outlives.
  if (made) TRY_STATUS(files.fsync(at, shown));
  return fd;
}

/// Makes the folders above the environment. They are synced one by one, so that none is lost under what follows.
Result<os::Fd> make_parents(os::Files& files, const std::string& parent) {
  std::string have = parent;
  auto opened = os::open_dir_absolute(have);
  while (!opened && opened.error().sys_errno == ENOENT && have != "/") {
    have.resize(std::max<std::size_t>(1, have.rfind('/')));
    opened = os::open_dir_absolute(have);
  }
  if (!opened) return std::move(opened).error();
  os::Fd fd = std::move(*opened);
  while (have != parent) {
    const std::size_t begin = have == "/" ? 1 : have.size() + 1;
    const std::string name = parent.substr(begin, parent.find('/', begin) - begin);
    have = parent.substr(0, begin + name.size());
    auto made = files.mkdir(fd.get(), name, 0755);
    if (!made && made.error().sys_errno != EEXIST) return unwritable(std::move(made).error(), have);
    TRY_STATUS(files.fsync(fd.get(), have));
    TRY(fd, os::open_dir(fd.get(), name));
  }
  return fd;
}

/// Two lines: who holds it, for people; and its run and process, for an agent of the same run.
struct LockText { std::string holder, run, process; };

std::string encode(const LockText& text) { return fmt::format("{}\n{} {}\n", text.holder, text.run, text.process); }

LockText read_lock_text(int state) {
  const auto text = os::read_small(state, kLockFile, kLockTextMax);
  if (!text) return {};
  const std::size_t end = std::min(text->find('\n'), text->size());
  LockText out{printable(std::string_view(*text).substr(0, end)), {}, {}};
  if (end == text->size()) return out;
  const std::string line = text->substr(end + 1, text->find('\n', end + 1) - end - 1);
  const std::size_t space = line.find(' ');
  if (space == std::string::npos) return out;
  out.run = line.substr(0, space);
  out.process = line.substr(space + 1);
  return out;
}

Result<os::Fd> open_lock_file(os::Files& files, int state) {
  auto made = files.create(state, kLockFile, 0600);
  if (!made && made.error().sys_errno == EEXIST) return files.open_write(state, kLockFile);
  return made;
}

}  // namespace

State::State(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;
bool State::exists() const { return static_cast<bool>(impl_->fd); }
const Place& State::place() const { return impl_->place; }
int State::fd() const { return impl_->fd.get(); }
os::Files& State::files() const { return *impl_->files; }

Result<State> State::open(os::Files& files, Place place, OpenMode mode) {
  auto impl = std::make_unique<Impl>();
  impl->files = &files;
  const std::string parent = place.path.substr(0, std::max<std::size_t>(1, place.path.size() - place.name.size() - 1));
  if (!place.parent && mode == OpenMode::create) {
    TRY(place.parent, make_parents(files, parent));
    TRY(Place again, resolve_place(place.path));
    place = std::move(again);
  }
  impl->place = std::move(place);
  const Place& at = impl->place;
  const std::string shown = fmt::format("{}/{}", parent == "/" ? "" : parent, at.state_name);
  if (at.parent && mode == OpenMode::create) {
    TRY(const os::Fd outer, make_ours(files, at.parent.get(), at.state_name, shown));
    TRY(impl->fd, make_ours(files, outer.get(), at.name, fmt::format("{}/{}", shown, at.name)));
    for (const char* name : {kStagingDir, kRecordsDir, kContentsDir})
      TRY_STATUS(make_ours(files, impl->fd.get(), name, fmt::format("{}/{}/{}", shown, at.name, name)));
  } else if (at.parent) {
    TRY(const os::Fd outer, open_ours(at.parent.get(), at.state_name, shown));
    if (outer) {
      TRY(impl->fd, open_ours(outer.get(), at.name, fmt::format("{}/{}", shown, at.name)));
    }
  }
  return State(std::move(impl));
}

void State::end_holder_of(const std::string& run, Deadline deadline) const {
  constexpr Seconds kPatience{5};
  const LockText text = read_lock_text(fd());
  if (run.empty() || text.run != run || text.process.empty() || text.process == os::process_token()) return;
  const auto may_kill = [this] {
    const auto now = moment();
    return !now || !now->committing;
  };
  (void)os::end_process(text.process, kPatience, may_kill, deadline);
}

Result<Lock> State::lock(const std::string& holder_text, double wait_seconds, const std::string& run) {
  ENVSYNC_CHECK(exists());
  // So much is always waited: a look at who holds the lock takes it for a moment, and the agent of a run that was killed needs
  // one to see that.
  constexpr double kLeastSeconds = 1;
  constexpr auto kPause = std::chrono::milliseconds(20);
  const Deadline deadline = deadline_in(Seconds(std::max(kLeastSeconds, wait_seconds)));
  for (bool is_first = true;; is_first = false) {
    auto opened = open_lock_file(files(), fd());
    if (!opened) return unwritable(std::move(opened).error(), place().path);
    os::Fd file = std::move(*opened);
    TRY(auto held, os::try_lock(std::move(file)));
    if (held) {
      // RACE: `prune --all` may have deleted the folder while we waited; then this lock guards nothing.
      TRY(const auto named, os::stat_if_exists(fd(), kLockFile));
      TRY(const auto ours, os::stat_fd(held->get()));
      if (named && named->ino == ours.ino) {
        TRY_STATUS(files().truncate(held->get(), 0));
        TRY_STATUS(files().write_at(held->get(), 0, as_bytes(encode({holder_text.substr(0, kLockTextMax / 2), run, os::process_token()})), kLockFile));
        return Lock(std::move(*held));
      }
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    if (is_first) end_holder_of(run, deadline);
    std::this_thread::sleep_for(kPause);
  }
  const std::string holder = read_lock_text(fd()).holder;
  return Error(ErrorCode::locked, fmt::format("'{}' is held by another run", printable(place().path)))
      .cause(holder.empty() ? "its holder left no name" : fmt::format("held by {}", holder))
      .hint("wait for it, or pass --lock-wait");
}

std::string State::lock_holder() const {
  if (!exists()) return {};
  // Not through Files: this only looks, and takes the lock for the moment of looking.
  auto file = os::open_file(fd(), kLockFile);
  if (!file) return {};
  const auto free = os::try_lock(std::move(*file));
  if (!free || *free) return {};
  const std::string text = read_lock_text(fd()).holder;
  return text.empty() ? "another run" : text;
}

Result<std::vector<RecordHead>> State::heads() const {
  std::vector<RecordHead> heads;
  if (!exists()) return heads;
  TRY(const auto numbers, record_numbers(fd()));
  for (const u32 number : numbers) {
    TRY(const std::string text, os::read_small(fd(), record_path(number), kRecordBytesMax));
    auto head = decode_record_head(number, as_bytes(text));
    if (!head && number != numbers.back()) {
      // Nothing but the way back to it is lost.
      RecordHead damaged;
      damaged.number = number;
      damaged.damaged = true;
      heads.push_back(std::move(damaged));
      continue;
    }
    if (!head) {
      const std::string folder = place().path.substr(0, place().path.size() - place().name.size()) + place().state_name + "/" + place().name;
      return std::move(head).error().hint(fmt::format("move '{}/{}' away: generation {} is lost with it, all others stay", printable(folder),
                                                      record_path(number), number));
    }
    heads.push_back(std::move(*head));
  }
  return heads;
}

Result<Record> State::load(u32 number) const {
  auto record = exists() ? read_record(fd(), record_path(number), number) : Result<Record>(os::os_error(ENOENT, "open", record_path(number)));
  if (!record && record.error().sys_errno == ENOENT)
    return Error(ErrorCode::no_generation, fmt::format("generation {} of '{}' is not kept", number, printable(place().path)));
  return record;
}

scan::StatCache State::load_cache() const {
  if (!exists()) return {};
  scan::StatCache cache = scan::StatCache::load(fd(), kCacheFile);
  for (const auto& [from, to] : impl_->moves) cache.moved(from, to);
  return cache;
}

void State::note_moves(std::vector<std::pair<scan::StatKey, scan::StatKey>> moves) {
  impl_->moves.insert(impl_->moves.end(), moves.begin(), moves.end());
}

Result<void> State::save_cache(const scan::StatCache& cache) const {
  ENVSYNC_CHECK(exists());
  return cache.save(files(), fd(), kCacheFile);
}

Result<std::vector<std::string>> staging_names(int state) {
  std::vector<std::string> names;
  TRY(const auto stat, os::stat_if_exists(state, kStagingDir));
  if (!stat) return names;
  TRY(const os::Fd dir, os::open_dir(state, kStagingDir));
  TRY(const auto entries, os::list(dir.get(), kStagingDir));
  for (const auto& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace envsync::store
