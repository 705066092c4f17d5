// SPDX-License-Identifier: MIT
// The log of one run: $XDG_STATE_HOME/envsync/runs/<run>.ndjson, the lines of --json. It holds names and figures, no file
// contents. The last 20 are kept. A log that cannot be written never fails the run; it says so once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <envsync/result.hpp>

#include "cli/io.hpp"

namespace envsync::cli {

/// "20261130T180400.123456Z-1a2b3c4d": sorts by time, as the engine's run ids do.
std::string make_run_name(i64 now_ns, u32 random);
/// Where logs lie by the XDG rules; empty where neither XDG_STATE_HOME nor HOME says.
std::string run_log_folder(const Io& io);
/// The path with the home folder as "~".
std::string under_home(const std::string& path, const Io& io);

class RunLog {
 public:
  /// Creates the folder, the file (for its owner alone), and removes the oldest beyond 20.
  static Result<RunLog> open(const std::string& folder, const std::string& run);
  RunLog(RunLog&&) noexcept;
  RunLog& operator=(RunLog&&) noexcept;
  ~RunLog();

  /// One line, at once in the file.
  void write(const std::string& line);
  const std::string& path() const;
  /// Whether a line was lost, the disk being full for instance.
  bool has_failed() const;

 private:
  struct Impl;
  explicit RunLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace envsync::cli
