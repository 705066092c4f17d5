// SPDX-License-Identifier: MIT
#include "store/remember.hpp"

#include <algorithm>

#include "store/workers.hpp"

namespace envsync::store {
namespace {

constexpr i64 kSettledNs = 4'000'000'000;  // more than the stat cache asks for on any filesystem

}  // namespace

void remember(scan::StatCache& cache, int at, std::span<const tree::Entry> entries, const std::vector<u32>& indexes, bool network,
              const std::function<std::string(const tree::Entry&)>& path_of) {
  if (indexes.empty()) return;
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
    const scan::StatKey key = scan::key_of(*stat);
    // RACE: the cache believes no stat that is younger than a tick of the clock, as another write in that tick would not show.
    // Here it would: we gave the file an old mtime after our last write, and until the exchange nobody else could reach it.
    const bool shows_writes = key.mtime_ns < clock - kSettledNs;
    cache.put(key, {file->digest, std::move(*xattrs), true}, shows_writes ? std::max(clock, key.ctime_ns + kSettledNs) : clock, network);
    return ok();
  }));
}

}  // namespace envsync::store
