// SPDX-License-Identifier: MIT
// Scanning a folder of a test's own, and what came out of it as text.
#pragma once

#include <string>
#include <thread>

#include "scan/scan.hpp"
#include "support/os_folder.hpp"

namespace envsync::testing {

inline scan::Scan scan_all(const Folder& folder, scan::StatCache& cache, const scan::Options& options = {}) {
  auto result = scan::scan(folder.fd(), options, cache);
  ENVSYNC_CHECK(result.has_value());
  return std::move(*result);
}
inline scan::Scan scan_all(const Folder& folder, const scan::Options& options = {}) {
  scan::StatCache cache;
  return scan_all(folder, cache, options);
}

/// "a b/c"
inline std::string paths(const scan::Scan& scan) {
  std::string text;
  for (const tree::Entry& entry : scan.tree.entries())
    if (!entry.path.is_root()) text += (text.empty() ? "" : " ") + entry.path.bytes();
  return text;
}
/// "a: is a socket, pipe or device; b: ..."
template <class Listed>
std::string told(const std::vector<Listed>& list) {
  std::string text;
  for (const Listed& item : list) text += (text.empty() ? "" : "; ") + item.path.bytes() + ": " + item.what;
  return text;
}
/// "d/ f p/*": a slash after a folder, a star after bytecode
inline std::string unmanaged(const scan::Scan& scan) {
  std::string text;
  for (const scan::Unmanaged& entry : scan.unmanaged)
    text += (text.empty() ? "" : " ") + entry.path.bytes() + (entry.kind == os::Kind::directory ? "/" : "") + (entry.is_bytecode ? "*" : "");
  return text;
}

/// Until the clock that stamps files is past everything written so far by more than the stat cache wants.
inline void settle() {
  const i64 until = os::filesystem_clock_ns() + 30'000'000;
  while (os::filesystem_clock_ns() < until) std::this_thread::yield();
}

}  // namespace envsync::testing
