// SPDX-License-Identifier: MIT
#include "store/remember.hpp"

#include <chrono>
#include <thread>

#include "store/workers.hpp"

namespace envsync::store {

void remember(scan::StatCache& cache, int at, std::span<const tree::Entry> entries, const std::vector<u32>& indexes, bool network,
              const std::function<std::string(const tree::Entry&)>& path_of) {
  if (indexes.empty()) return;
  // What is younger than a tick of the filesystem's clock is not believed. So much is waited, where a transaction was that fast.
  constexpr i64 kSettledNs = 24'000'000;
  const auto last = os::stat_at(at, path_of(entries[indexes.back()]));
  const i64 age = last ? os::filesystem_clock_ns() - last->ctime_ns : kSettledNs;
  if (!network && age < kSettledNs) std::this_thread::sleep_for(std::chrono::nanoseconds(kSettledNs));
  const i64 clock = os::filesystem_clock_ns();
  static_cast<void>(for_each_index(indexes.size(), 2000, [&](std::size_t i) -> Result<void> {
    const tree::Entry& entry = entries[indexes[i]];
    const tree::File* file = entry.file();
    const std::string path = path_of(entry);
    const auto stat = os::stat_at(at, path);
    if (!file || !stat || stat->kind != os::Kind::file || stat->size != file->size) return ok();
    auto xattrs = os::xattrs(at, path);
    if (!xattrs) return ok();
    // As the scan keeps them: what else there is belongs to the host.
    std::erase_if(*xattrs, [](const auto& x) { return !x.first.starts_with("user.") && x.first != "security.capability"; });
    cache.put(scan::key_of(*stat), {file->digest, std::move(*xattrs), true}, clock, network);
    return ok();
  }));
}

}  // namespace envsync::store
