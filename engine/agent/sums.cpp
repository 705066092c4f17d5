// SPDX-License-Identifier: MIT
// sha256 of files beneath the scanned root, on every core: what RECORDs are held against.
#include <atomic>
#include <system_error>
#include <thread>

#include "agent/session.hpp"
#include "os/process.hpp"

namespace envsync::agent {

namespace {

constexpr std::size_t kBufferBytes = 1u << 20;

std::optional<Sha256> sum_of(int root_fd, const std::string& path, Bytes& buffer, const std::stop_token& stop) {
  auto fd = os::open_file(root_fd, path);
  if (!fd) return std::nullopt;
  Sha256Hasher hasher;
  for (u64 at = 0; !stop.stop_requested();) {
    const auto n = os::read_at(fd->get(), at, buffer, path);
    if (!n) return std::nullopt;
    if (*n == 0) return hasher.finish();
    hasher.update(ByteView(buffer).first(*n));
    at += *n;
  }
  return std::nullopt;
}

}  // namespace

format::SumsReply sums_of(int root_fd, const std::vector<std::string>& paths, std::stop_token stop) {
  constexpr u32 kThreadsMax = 32;  // LIMIT: each holds a buffer and a file
  format::SumsReply reply;
  reply.sums.resize(paths.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Bytes buffer(kBufferBytes);
    for (std::size_t i = next++; i < paths.size(); i = next++) reply.sums[i] = sum_of(root_fd, paths[i], buffer, stop);
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < std::min<std::size_t>({os::cpu_count(), kThreadsMax, paths.size()}); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The machine gives no more threads: those there are do it all.
  }
  work();
  others.clear();
  return reply;
}

}  // namespace envsync::agent
