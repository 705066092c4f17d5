// SPDX-License-Identifier: MIT
#include <algorithm>

#include "scan/scan.hpp"
#include "scan/walk.hpp"

namespace envsync::scan {

namespace {

/// Empty where `now` is what the scan saw. A folder's times and size change when bytecode is written into it, and what it holds is
/// compared entry by entry; so of a folder only its own metadata counts.
std::string difference(int root_fd, const tree::Entry& then, const StatKey& then_key, const tree::Entry& now, const StatKey& now_key,
                       const Options& options) {
  if (then.body.index() != now.body.index()) return "is of another type";
  if (then_key == now_key) return {};
  if (!then.is_dir()) {
    if (then_key.ino == now_key.ino && then_key.size == now_key.size && then_key.mtime_ns == now_key.mtime_ns) return "its metadata changed";
    return "its content changed";
  }
  if (then.mode != now.mode || then.owner != now.owner) return "its metadata changed";
  if (!options.want_xattrs) return {};
  auto list = os::xattrs(root_fd, then.path.bytes());
  if (!list) return describe(list.error());
  return wanted_xattrs(managed_xattrs(std::move(*list)), options) == then.xattrs ? std::string() : "its metadata changed";
}

}  // namespace

Result<std::vector<Differs>> recheck(int root_fd, const tree::Tree& tree, std::span<const StatKey> expected, const Options& options,
                                     std::size_t limit) {
  ENVSYNC_CHECK(expected.size() == tree.entries().size());
  std::vector<Differs> differing;
  Listing now;
  if (root_fd >= 0) {
    TRY(now, walk(root_fd, Depth::stats, options, {}));
  }
  const auto then = tree.entries();
  for (std::size_t i = 0, k = 0; (i < then.size() || k < now.entries.size()) && differing.size() < limit;) {
    const int order = i == then.size() ? 1 : k == now.entries.size() ? -1 : then[i].path.bytes().compare(now.entries[k].path.bytes());
    std::string what;
    if (order < 0) what = "is gone";
    else if (order > 0) what = "is new";
    else what = difference(root_fd, then[i], expected[i], now.entries[k], now.stats[k], options);
    if (!what.empty()) differing.push_back({order > 0 ? now.entries[k].path : then[i].path, std::move(what)});
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
  for (Problem& problem : now.problems) differing.push_back({std::move(problem.path), std::move(problem.what)});
  // What became a pipe is gone as well; the reason that says more stays.
  std::ranges::sort(differing, [](const Differs& a, const Differs& b) {
    return a.path != b.path ? a.path < b.path : a.what != "is gone" && b.what == "is gone";
  });
  const auto [again, end] = std::ranges::unique(differing, {}, &Differs::path);
  differing.erase(again, end);
  if (differing.size() > limit) differing.resize(limit);
  return differing;
}

}  // namespace envsync::scan
