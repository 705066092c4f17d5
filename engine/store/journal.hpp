// SPDX-License-Identifier: MIT
// The durable record of one transaction: staging/<tx>/journal. Each step is appended and synced before the next begins, so
// that recovery knows how far the transaction came. Private to store.
//
//   journal := record * zeros                                  -- preallocated, so that an append changes no size
//   record  := length:u32le type:u8 payload[length] checksum:u64le      checksum: XXH3-64 of length, type and payload
//   payload of begin, prepared := terms (below); of all others: empty
//   terms   := version:u8=1 run:string boot:string commit_root:string flags:u8 base:marker staged:marker base_number:u32le number:u32le
//              keep:u32le base_mode:u32le staged_mode:u32le    -- string: varint length, bytes
//   marker  := ino:u64le btime_ns:u64le handle:string
//   flags   := 1 base absent, 2 a base record is written, 4 the base has a number, 8 mtimes are written
//
// An append that a crash cut is a torn tail: it never took effect, and it is cut off and synced before anything is appended. A
// bad record before a good one is no tear but damage: nothing of such a journal is believed.
#pragma once

#include <optional>
#include <string>

#include "os/files.hpp"
#include "store/marker.hpp"
#include "store/recovery.hpp"
#include "tree/path.hpp"

namespace envsync::store {

enum class Entry : u8 { begin = 1, prepared, committed, reverting, accepting, abandoned, rolled_back, accepted };

/// What recovery must know of a transaction.
struct Terms {
  std::string run;
  std::string boot;                      // id of the boot in which it ran: what was not synced is believed in no other
  tree::RelPath commit_root;
  bool base_absent = false;
  bool writes_base = false;              // record-base lies in staging until accept
  bool write_mtime = true;
  std::optional<u32> base_number;        // of the record that holds the base tree
  u32 number = 0;                        // of the desired tree's record
  u32 keep = 0;                          // generations beside the current and 0
  u32 base_mode = 0, staged_mode = 0;    // of the commit root, before and after; 0 where it is no folder
  Marker base, staged;                   // ino 0: not known (yet)
  bool operator==(const Terms&) const = default;
};
Bytes encode_terms(const Terms& terms);
std::optional<Terms> decode_terms(ByteView in);

/// The framing alone: one record, and what a journal's bytes say.
Bytes encode_record(Entry entry, ByteView payload);
enum class Tail : u8 { clean, torn, damaged };
struct Parsed {
  Last last = Last::none;
  std::optional<Entry> last_entry;
  std::optional<Terms> terms;            // of the last begin or prepared
  std::size_t end = 0;                   // of the good records
  Tail tail = Tail::clean;
};
Parsed parse_journal(ByteView bytes);

class Journal {
 public:
  Journal() = default;
  /// Makes the file in `tx`, an open folder. The caller syncs the folder.
  static Result<Journal> create(os::Files& files, int tx);
  /// Absent: a journal without records, to which nothing can be appended. Damaged: ErrorCode::corrupt.
  static Result<Journal> open(os::Files& files, int tx);
  /// Only looks: a torn tail stays. Absent: nothing parsed.
  static Result<Parsed> peek(int tx);

  const Parsed& parsed() const { return parsed_; }
  bool exists() const { return static_cast<bool>(fd_); }
  /// Synced when it returns. After an error it did not take effect, and the journal may be appended to again.
  Result<void> append(Entry entry, ByteView payload = {});

 private:
  os::Files* files_ = nullptr;           // outlives this
  os::Fd fd_;
  Parsed parsed_;
  bool is_torn_ = false;                 // bytes of no effect lie behind parsed_.end
};

}  // namespace envsync::store
