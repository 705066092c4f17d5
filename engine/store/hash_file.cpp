// SPDX-License-Identifier: MIT
#include "store/hash_file.hpp"

#include <algorithm>

namespace envsync::store {
namespace {

constexpr std::size_t kBuffer = 1u << 20;

/// Calls take(offset, bytes) with all of the file, in order.
template <class Take>
Result<content::ContentId> read_through(int fd, std::string_view name, const Take& take) {
  TRY(const os::Stat stat, os::stat_fd(fd));
  Bytes buffer(static_cast<std::size_t>(std::clamp<u64>(stat.size + 1, 4096, kBuffer)));
  content::FileHasher hasher;
  for (;;) {
    TRY(const std::size_t got, os::read_at(fd, hasher.size(), buffer, name));
    const ByteView bytes = ByteView(buffer).first(got);
    TRY_STATUS(take(hasher.size(), bytes));
    hasher.update(bytes);
    if (got < buffer.size()) break;
  }
  const u64 size = hasher.size();
  return content::ContentId{hasher.finish(), size};
}

}  // namespace

Result<content::ContentId> hash_fd(int fd, std::string_view name_for_errors) {
  return read_through(fd, name_for_errors, [](u64, ByteView) { return ok(); });
}

Result<content::ContentId> hash_file(int at, std::string_view rel) {
  TRY(const os::Fd fd, os::open_file(at, rel));
  return hash_fd(fd.get(), rel);
}

Result<Copied> copy_file(os::Files& files, int from, int to, std::string_view name_for_errors) {
  TRY(const bool is_reflink, files.reflink(from, to));
  if (is_reflink) {
    TRY(const auto content, hash_fd(to, name_for_errors));
    return Copied{content, true};
  }
  u64 started = 0;
  TRY(const auto content, read_through(from, name_for_errors, [&](u64 offset, ByteView bytes) -> Result<void> {
        TRY_STATUS(files.write_at(to, offset, bytes, name_for_errors));
        const u64 end = offset + bytes.size();
        // DURABILITY: writeback begins while we go on, so that sealing has little left to wait for.
        if (end - started < content::kSegmentBytes) return ok();
        TRY_STATUS(files.start_writeback(to, started, end - started));
        started = end;
        return ok();
      }));
  return Copied{content, false};
}

}  // namespace envsync::store
