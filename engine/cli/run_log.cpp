// SPDX-License-Identifier: MIT
// The only file that knows spdlog. Debian ships its compiled library, which has no package file that CMake's plain name reads.
#ifndef SPDLOG_COMPILED_LIB
#define SPDLOG_COMPILED_LIB
#define SPDLOG_SHARED_LIB
#endif
#include "cli/run_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

namespace envsync::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kKept = 20;

bool is_run_name(const std::string& file) {
  // Only what make_run_name() makes is ours to remove: 8 digits, T, 6 digits, ...
  constexpr std::string_view kForm = "dddddddd" "T" "dddddd.dddddd" "Z-";
  if (!file.ends_with(".ndjson") || file.size() <= kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = file[i] >= '0' && file[i] <= '9';
    if (kForm[i] == 'd' ? !is_digit : file[i] != kForm[i]) return false;
  }
  return true;
}

void drop_oldest(const fs::path& folder) {
  std::error_code ignored;  // another run may be removing the same ones
  std::vector<fs::path> logs;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored))
    if (is_run_name(at->path().filename().string())) logs.push_back(at->path());
  std::ranges::sort(logs);
  for (std::size_t i = 0; i + kKept < logs.size(); ++i) fs::remove(logs[i], ignored);
}

Error log_error(const std::string& path, const std::string& why) { return Error(ErrorCode::io, fmt::format("cannot write the run log '{}'", path)).cause(why); }

}  // namespace

struct RunLog::Impl {
  std::string path;
  std::shared_ptr<spdlog::logger> logger;
  bool has_failed = false;
};

RunLog::RunLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunLog::RunLog(RunLog&&) noexcept = default;
RunLog& RunLog::operator=(RunLog&&) noexcept = default;
RunLog::~RunLog() = default;

std::string make_run_name(i64 now_ns, u32 random) {
  const std::time_t seconds = static_cast<std::time_t>(now_ns / 1'000'000'000);
  std::tm t{};
  ::gmtime_r(&seconds, &t);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:06}Z-{:08x}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
                     now_ns % 1'000'000'000 / 1000, random);
}

std::string run_log_folder(const Io& io) {
  // The XDG rules: a relative path in the variable is ignored.
  if (const std::string state = io.environment("XDG_STATE_HOME"); state.starts_with('/')) return state + "/envsync/runs";
  if (const std::string home = io.environment("HOME"); home.starts_with('/')) return home + "/.local/state/envsync/runs";
  return {};
}

std::string under_home(const std::string& path, const Io& io) {
  const std::string home = io.environment("HOME");
  return home.size() > 1 && path.starts_with(home + "/") ? "~" + path.substr(home.size()) : path;
}

Result<RunLog> RunLog::open(const std::string& folder, const std::string& run) {
  const std::string path = folder + "/" + run + ".ndjson";
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) return log_error(path, problem.message());
  // O_EXCL and 0600 before spdlog opens it by name: its own open follows links and leaves the mode to the umask.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return log_error(path, std::strerror(errno));
  ::close(fd);
  try {
    auto impl = std::make_unique<Impl>();
    impl->path = path;
    impl->logger = std::make_shared<spdlog::logger>("run", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    impl->logger->set_pattern("%v");
    impl->logger->flush_on(spdlog::level::trace);
    impl->logger->set_error_handler([state = impl.get()](const std::string&) { state->has_failed = true; });
    drop_oldest(folder);
    return RunLog(std::move(impl));
  } catch (const std::exception& error) {
    return log_error(path, error.what());
  }
}

void RunLog::write(const std::string& line) { impl_->logger->info(spdlog::string_view_t(line)); }
const std::string& RunLog::path() const { return impl_->path; }
bool RunLog::has_failed() const { return impl_->has_failed; }

}  // namespace envsync::cli
