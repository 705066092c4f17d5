// SPDX-License-Identifier: MIT
// The writing half of deltas: parts of what the target has become parts of what it gets.
#include <optional>

#include "agent/delta.hpp"
#include "agent/each.hpp"
#include "base/buffer.hpp"

namespace envsync::agent {

namespace {

/// Bytes of the base at `from` that become those at `to`.
struct Part { u64 to = 0, from = 0; u32 length = 0; u32 base = 0; };

constexpr std::size_t kUnitBytes = 2u << 20;  // LIMIT: of each core, beside the packs that come
constexpr std::size_t kUnitParts = 4096;

/// Offsets of a file's fine chunks, by number; the end of each but the last is the next one's begin or the end of its range.
struct Offsets {
  std::vector<u64> begins;
  explicit Offsets(const FineCut& cut) {
    begins.reserve(cut.lengths.size());
    std::size_t range = 0;
    u64 at = cut.ranges.empty() ? 0 : cut.ranges.front().offset;
    for (const u16 length : cut.lengths) {
      while (range < cut.ranges.size() && at >= cut.ranges[range].end()) {
        ++range;
        if (range < cut.ranges.size()) at = cut.ranges[range].offset;
      }
      begins.push_back(at);
      at += length;
    }
  }
};

class Copier {
 public:
  Copier(int root_fd, const delta::CopyPlan& plan, const FineCuts& cuts, store::Transaction& transaction, std::stop_token stop)
      : root_fd_(root_fd), plan_(plan), cuts_(cuts), transaction_(transaction), stop_(std::move(stop)), offsets_(plan.bases.size()) {}

  Result<u64> run() {
    for (const delta::FileCopies& file : plan_.files) {
      if (!transaction_.expects(file.want)) return Error{ErrorCode::protocol, "a copy into a content that is not wanted"};
      TRY_STATUS(transaction_.build(file.want));
      const std::vector<Part> parts = resolve(file);
      const auto units = split(parts);
      for_each_index(units.size(), [&](std::size_t i) {
        auto done = stop_.stop_requested() ? Result<void>(Error{ErrorCode::interrupted, "the request was cancelled"}) : copy(file.want, units[i]);
        const std::lock_guard lock(mutex_);
        if (!done && result_) result_ = std::move(done);
      });
      if (!result_) return std::move(result_).error();
    }
    return copied_.load();
  }

 private:
  using Unit = std::span<const Part>;

  /// Chunk numbers become offsets. What names no chunk is left out: its file then stays incomplete.
  std::vector<Part> resolve(const delta::FileCopies& file) {
    std::vector<Part> parts;
    const auto add = [&](u64 to, u64 from, u64 length, u32 base) {
      for (u64 done = 0; done < length;) {
        const u64 part = std::min<u64>(length - done, kUnitBytes);
        const bool goes_on = !parts.empty() && parts.back().base == base && parts.back().to + parts.back().length == to + done &&
                             parts.back().from + parts.back().length == from + done && parts.back().length + part <= kUnitBytes;
        if (goes_on) parts.back().length += narrow<u32>(part);
        else parts.push_back({to + done, from + done, narrow<u32>(part), base});
        done += part;
      }
    };
    for (const delta::Copy& copy : file.copies) {
      if (!copy.by_chunk || copy.base == delta::Copy::kOwn) {
        add(copy.to, copy.from, copy.length, copy.base);
        continue;
      }
      const auto cut = cuts_.find(plan_.bases[copy.base].bytes());
      if (cut == cuts_.end()) continue;
      std::optional<Offsets>& offsets = offsets_[copy.base];
      if (!offsets) offsets.emplace(cut->second);
      u64 done = 0;
      for (u64 number = copy.from; done < copy.length && number < offsets->begins.size(); ++number) {
        const u64 length = std::min<u64>(cut->second.lengths[static_cast<std::size_t>(number)], copy.length - done);
        add(copy.to + done, offsets->begins[static_cast<std::size_t>(number)], length, copy.base);
        done += length;
      }
    }
    return parts;
  }

  static std::vector<Unit> split(const std::vector<Part>& parts) {
    std::vector<Unit> units;
    for (std::size_t begin = 0; begin < parts.size();) {
      std::size_t end = begin;
      u64 bytes = 0;
      while (end < parts.size() && end - begin < kUnitParts && (end == begin || bytes + parts[end].length <= kUnitBytes)) bytes += parts[end++].length;
      units.emplace_back(parts.data() + begin, end - begin);
      begin = end;
    }
    return units;
  }

  /// `fd` is that of base `open`.
  Result<std::size_t> read_base(const Part& part, std::span<std::byte> into, os::Fd& fd, u32& open) const {
    const std::string& path = plan_.bases[part.base].bytes();
    if (open != part.base) {
      auto opened = os::open_file(root_fd_, path);
      fd = opened ? std::move(*opened) : os::Fd();
      open = part.base;
    }
    return fd ? os::read_at(fd.get(), part.from, into, path) : Result<std::size_t>(std::size_t{0});
  }

  Result<void> copy(u32 want, Unit unit) {
    u64 total = 0;
    for (const Part& part : unit) total += part.length;
    Buffer bytes(static_cast<std::size_t>(total));
    std::vector<content::Piece> pieces;
    std::size_t filled = 0;
    os::Fd fd;
    u32 open = ~u32{0};
    for (const Part& part : unit) {
      const std::span<std::byte> place(bytes.begin() + filled, part.length);
      const auto got = part.base == delta::Copy::kOwn ? transaction_.read_begun(want, part.from, place) : read_base(part, place, fd, open);
      if (!got || *got != part.length) continue;
      pieces.push_back({want, part.to, part.length});
      filled += part.length;
    }
    copied_ += filled;
    return transaction_.put(pieces, ByteView(bytes).first(filled));
  }

  const int root_fd_;
  const delta::CopyPlan& plan_;
  const FineCuts& cuts_;
  store::Transaction& transaction_;
  const std::stop_token stop_;
  std::vector<std::optional<Offsets>> offsets_;  // of each base, once it is asked for
  std::atomic<u64> copied_{0};
  std::mutex mutex_;  // result_
  Result<void> result_ = ok();
};

}  // namespace

Result<u64> copy_parts(int root_fd, const delta::CopyPlan& plan, const FineCuts& cuts, store::Transaction& transaction, std::stop_token stop) {
  return Copier(root_fd, plan, cuts, transaction, std::move(stop)).run();
}

}  // namespace envsync::agent
