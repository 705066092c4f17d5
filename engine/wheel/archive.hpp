// SPDX-License-Identifier: MIT
// A wheel as an archive. It is untrusted input: what is no plain list of regular files with safe names, or would grow beyond all
// measure, is refused before anything of it is unpacked.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "os/fd.hpp"

namespace envsync::wheel {

// LIMIT: the largest wheels on PyPI have 20,000 files and 4 GB.
inline constexpr u64 kEntriesMax = 250'000, kUnpackedMax = 64ull << 30;
/// What unpacks to more than kInflationMax times its size, and to more than kInflationFree bytes, is a bomb. Text of a wheel takes 3 to 10.
inline constexpr u64 kInflationMax = 200, kInflationFree = 256ull << 20;

/// A file of the archive; folders are left out.
struct ArchiveEntry {
  std::string name;          // a path as of tree/path.hpp
  u64 size = 0, packed = 0;
  bool is_executable = false;
  i64 mtime_ns = 0;
  u64 directory_at = 0, number = 0;  // where the archive describes it
};

class Archive {
 public:
  /// `name` is how messages call it.
  static Result<Archive> open(os::Fd file, std::string name);
  const std::string& name() const { return name_; }
  const std::vector<ArchiveEntry>& entries() const { return entries_; }  // in the archive's order, no name twice
  const ArchiveEntry* find(std::string_view name) const;
  u64 unpacked_bytes() const { return unpacked_; }
  int fd() const { return file_.get(); }

 private:
  Result<void> read_list();
  os::Fd file_;
  std::string name_;
  std::vector<ArchiveEntry> entries_;
  u64 unpacked_ = 0;
};

using Sink = std::function<Result<void>(ByteView)>;

/// Unpacks single entries; one thread each.
class Reader {
 public:
  /// Borrows the archive.
  static Result<Reader> open(const Archive& archive);
  Reader(Reader&&) noexcept;
  ~Reader();
  /// Gives the content in pieces. Its length and CRC are those that the archive promised, else an error, which may come after all pieces.
  Result<void> read(const ArchiveEntry& entry, const Sink& sink);
  /// A small entry; more than `limit` bytes are refused.
  Result<std::string> text(const ArchiveEntry& entry, u64 limit);

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// "the wheel 'x.whl' is refused", with the cause.
Error refused(const std::string& wheel, std::string cause);

}  // namespace envsync::wheel
