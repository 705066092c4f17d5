// SPDX-License-Identifier: MIT
// One piece of work for each index, on several threads; and progress that several threads make. Private to store.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <envsync/result.hpp>

#include "os/process.hpp"
#include "store/transaction.hpp"

namespace envsync::store {

/// Calls work(i), which gives a Result<void>, for each i below `count`; after the first error no further one is begun, and that
/// error is the result. `per_thread`: fewer indexes than this are not worth another thread. Work that waits more than it
/// computes, as syncs do, gets more threads than there are processors.
enum class Bound : u8 { processors, waiting };
template <class Work>
Result<void> for_each_index(std::size_t count, std::size_t per_thread, const Work& work, Bound bound = Bound::processors) {
  constexpr u32 kThreadsMax = 32, kWaitingThreads = 16;  // LIMIT: each may hold a buffer and two files
  const u32 most = bound == Bound::waiting ? std::max(kWaitingThreads, os::cpu_count()) : os::cpu_count();
  const std::size_t wanted = std::min<std::size_t>({most, kThreadsMax, count / std::max<std::size_t>(1, per_thread) + 1});
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards first_error
  std::optional<Error> first_error;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      auto done = work(i);
      if (done) continue;
      next = count;
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::move(done).error();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(run);
    } catch (const std::system_error&) {
      // The machine gives no more threads: those there are do it all.
    }
    run();
  }
  if (first_error) return std::move(*first_error);
  return ok();
}

/// Counts what several threads do and tells it now and then, from one of them at a time.
class Progress {
 public:
  Progress(const StepSink& sink, Phase phase, u64 files_total, u64 bytes_total)
      : sink_(sink), step_{phase, 0, files_total, 0, bytes_total} {}
  void add(u64 files, u64 bytes) {
    const std::lock_guard lock(mutex_);
    step_.files_done += files;
    step_.bytes_done += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!sink_ || now - last_ < kBetween) return;
    last_ = now;
    sink_(step_);
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    if (sink_) sink_(step_);
  }

 private:
  static constexpr auto kBetween = std::chrono::milliseconds(100);
  const StepSink& sink_;  // outlives this
  std::mutex mutex_;      // guards what follows, and the sink
  Step step_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace envsync::store
