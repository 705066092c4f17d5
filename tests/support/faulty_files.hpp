// SPDX-License-Identifier: MIT
// Files that fail or kill on purpose: a decorator over PosixFiles that counts what changes a disk, by name and in all, and at
// one of these operations returns an error, writes short, or ends the process with SIGKILL. For test binaries only.
//
//   fault  := point ":" effect
//   point  := (operation | "any") ":" n            the n-th, counted from 1; "rename_exchange:1", "any:17"
//   effect := "before" | "after"                   SIGKILL before or after it
//           | "stop"                               SIGSTOP after it: goes on when told to
//           | "EIO" | "ENOSPC" | "EDQUOT" | "EXDEV" | "EINTR" | "EMLINK" | "EPERM" | "EACCES" | "EROFS" | "EOPNOTSUPP"
//           | "short"                              half of the bytes are written, then ENOSPC; other operations: ENOSPC
//           | "count"                              nothing happens
#pragma once

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <unistd.h>

#include "os/files.hpp"

namespace envsync::testing {

struct Fault {
  enum class Effect : u8 { none, fail, short_write, kill_before, kill_after, stop_after };
  std::string operation;  // "" is any
  u64 at = 0;             // 0: never
  Effect effect = Effect::none;
  int error = 0;          // of fail

  static std::optional<Fault> parse(std::string_view text);
};

inline std::optional<Fault> Fault::parse(std::string_view text) {
  const std::size_t first = text.find(':'), second = text.find(':', first == text.npos ? first : first + 1);
  if (second == text.npos) return std::nullopt;
  Fault fault;
  if (text.substr(0, first) != "any") fault.operation = text.substr(0, first);
  const auto number = text.substr(first + 1, second - first - 1);
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), fault.at);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || fault.at == 0) return std::nullopt;
  const auto effect = text.substr(second + 1);
  static const std::map<std::string_view, int> errors = {
      {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EXDEV", EXDEV}, {"EINTR", EINTR}, {"EMLINK", EMLINK},
      {"EPERM", EPERM}, {"EACCES", EACCES}, {"EROFS", EROFS}, {"EOPNOTSUPP", EOPNOTSUPP}};
  if (effect == "before") fault.effect = Effect::kill_before;
  else if (effect == "after") fault.effect = Effect::kill_after;
  else if (effect == "stop") fault.effect = Effect::stop_after;
  else if (effect == "short") fault.effect = Effect::short_write;
  else if (effect == "count") fault.effect = Effect::none;
  else if (const auto found = errors.find(effect); found != errors.end()) {
    fault.effect = Effect::fail;
    fault.error = found->second;
  } else return std::nullopt;
  return fault;
}

class FaultyFiles final : public os::Files {
 public:
  explicit FaultyFiles(Fault fault = {}) : fault_(std::move(fault)) {}
  /// From $ENVSYNC_FAULT; without it nothing ever fails. A value that is not a fault ends the process with status 2.
  static Fault from_environment() {
    const char* text = std::getenv("ENVSYNC_FAULT");
    if (!text || !*text) return {};
    const auto fault = Fault::parse(text);
    if (!fault) ::_exit(2);
    return *fault;
  }

  /// Starts counting anew, for the next fault.
  void set(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
    counts_.clear();
    total_ = 0;
    has_struck_ = false;
  }
  u64 total() const { const std::lock_guard lock(mutex_); return total_; }
  std::map<std::string, u64> counts() const { const std::lock_guard lock(mutex_); return counts_; }
  /// Whether the operation came that the fault waits for.
  bool has_struck() const { const std::lock_guard lock(mutex_); return has_struck_; }

  Result<void> mkdir(int at, std::string_view rel, u32 mode) override {
    return run<void>("mkdir", rel, [&] { return real_.mkdir(at, rel, mode); });
  }
  Result<void> unlink(int at, std::string_view rel) override {
    return run<void>("unlink", rel, [&] { return real_.unlink(at, rel); });
  }
  Result<void> rmdir(int at, std::string_view rel) override {
    return run<void>("rmdir", rel, [&] { return real_.rmdir(at, rel); });
  }
  Result<void> rename(int from_at, std::string_view from, int to_at, std::string_view to) override {
    return run<void>("rename", from, [&] { return real_.rename(from_at, from, to_at, to); });
  }
  Result<void> rename_noreplace(int from_at, std::string_view from, int to_at, std::string_view to) override {
    return run<void>("rename_noreplace", from, [&] { return real_.rename_noreplace(from_at, from, to_at, to); });
  }
  Result<void> rename_exchange(int a_at, std::string_view a, int b_at, std::string_view b) override {
    return run<void>("rename_exchange", a, [&] { return real_.rename_exchange(a_at, a, b_at, b); });
  }
  Result<void> link(int from_at, std::string_view from, int to_at, std::string_view to) override {
    return run<void>("link", from, [&] { return real_.link(from_at, from, to_at, to); });
  }
  Result<void> symlink(std::string_view target, int at, std::string_view rel) override {
    return run<void>("symlink", rel, [&] { return real_.symlink(target, at, rel); });
  }
  Result<os::Fd> create(int at, std::string_view rel, u32 mode) override {
    return run<os::Fd>("create", rel, [&] { return real_.create(at, rel, mode); });
  }
  Result<os::Fd> open_write(int at, std::string_view rel) override {
    return run<os::Fd>("open_write", rel, [&] { return real_.open_write(at, rel); });
  }
  Result<void> write_at(int fd, u64 offset, ByteView bytes, std::string_view name) override {
    return run<void>("write_at", name, [&] { return real_.write_at(fd, offset, bytes, name); },
                     [&] { static_cast<void>(real_.write_at(fd, offset, bytes.first(bytes.size() / 2), name)); });
  }
  Result<void> allocate(int fd, u64 size) override {
    return run<void>("allocate", "an open file", [&] { return real_.allocate(fd, size); });
  }
  Result<void> truncate(int fd, u64 size) override {
    return run<void>("truncate", "an open file", [&] { return real_.truncate(fd, size); });
  }
  Result<bool> reflink(int from_fd, int to_fd) override {
    return run<bool>("reflink", "an open file", [&] { return real_.reflink(from_fd, to_fd); });
  }
  Result<void> start_writeback(int fd, u64 offset, u64 size) override {
    return run<void>("start_writeback", "an open file", [&] { return real_.start_writeback(fd, offset, size); });
  }
  Result<void> chmod(int fd, u32 mode) override {
    return run<void>("chmod", "an open file", [&] { return real_.chmod(fd, mode); });
  }
  Result<void> chown(int at, std::string_view rel, u32 uid, u32 gid) override {
    return run<void>("chown", rel, [&] { return real_.chown(at, rel, uid, gid); });
  }
  Result<void> set_mtime(int at, std::string_view rel, i64 mtime_ns) override {
    return run<void>("set_mtime", rel, [&] { return real_.set_mtime(at, rel, mtime_ns); });
  }
  Result<void> set_xattr(int fd, const std::string& name, std::string_view value) override {
    return run<void>("set_xattr", name, [&] { return real_.set_xattr(fd, name, value); });
  }
  Result<void> remove_xattr(int fd, const std::string& name) override {
    return run<void>("remove_xattr", name, [&] { return real_.remove_xattr(fd, name); });
  }
  Result<void> fsync(int fd, std::string_view name) override {
    return run<void>("fsync", name, [&] { return real_.fsync(fd, name); });
  }
  Result<void> fdatasync(int fd, std::string_view name) override {
    return run<void>("fdatasync", name, [&] { return real_.fdatasync(fd, name); });
  }
  Result<void> syncfs(int fd) override {
    return run<void>("syncfs", "an open folder", [&] { return real_.syncfs(fd); });
  }

 private:
  /// Counts, and says what is to happen to this operation.
  Fault::Effect arrive(const std::string& operation) {
    const std::lock_guard lock(mutex_);
    const u64 of_name = ++counts_[operation];
    const u64 of_all = ++total_;
    const bool is_named = !fault_.operation.empty();
    if (is_named && fault_.operation != operation) return Fault::Effect::none;
    if (fault_.at == 0 || (is_named ? of_name : of_all) != fault_.at) return Fault::Effect::none;
    has_struck_ = true;
    return fault_.effect;
  }

  [[noreturn]] static void die() {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  template <class T, class Real, class Part>
  Result<T> run(const char* operation, std::string_view name, Real real, Part part) {
    switch (arrive(operation)) {
      case Fault::Effect::none: return real();
      case Fault::Effect::fail: return os::os_error(fault_.error, operation, name);
      case Fault::Effect::short_write: part(); return os::os_error(ENOSPC, operation, name);
      case Fault::Effect::kill_before: die();
      case Fault::Effect::kill_after: static_cast<void>(real()); die();
      case Fault::Effect::stop_after: {
        auto done = real();
        ::kill(::getpid(), SIGSTOP);
        return done;
      }
    }
    die();
  }
  template <class T, class Real>
  Result<T> run(const char* operation, std::string_view name, Real real) {
    return run<T>(operation, name, real, [] {});
  }

  os::PosixFiles real_;
  mutable std::mutex mutex_;  // guards what follows
  Fault fault_;
  std::map<std::string, u64> counts_;
  u64 total_ = 0;
  bool has_struck_ = false;
};

}  // namespace envsync::testing
