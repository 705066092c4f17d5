// SPDX-License-Identifier: MIT
#include "store/journal.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "content/digest.hpp"
#include "store/layout.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kPreallocated = 64u << 10;
constexpr std::size_t kJournalMax = 1u << 20;   // LIMIT: a transaction appends six records at most
constexpr std::size_t kPayloadMax = 64u << 10;  // LIMIT: a commit root is at most tree::kPathBytesMax
constexpr std::size_t kHeader = 5, kChecksum = 8;
constexpr u8 kTermsVersion = 1;

enum Flag : u8 { kBaseAbsent = 1, kWritesBase = 2, kHasBaseNumber = 4, kWriteMtime = 8 };

struct Record { Entry entry; ByteView payload; std::size_t size; };

/// The record at the front of `in`; nullopt where there is none.
std::optional<Record> take_record(ByteView in) {
  const ByteView whole = in;
  const auto length = take_le<u32>(in);
  const auto type = take_le<u8>(in);
  if (!length || !type || *length > kPayloadMax) return std::nullopt;
  if (*type < static_cast<u8>(Entry::begin) || *type > static_cast<u8>(Entry::accepted)) return std::nullopt;
  if (in.size() < *length + kChecksum) return std::nullopt;
  const ByteView payload = in.first(*length);
  in = in.subspan(*length);
  if (take_le<u64>(in) != content::checksum_of(whole.first(kHeader + *length))) return std::nullopt;
  return Record{static_cast<Entry>(*type), payload, kHeader + *length + kChecksum};
}

Last last_of(Entry entry) {
  switch (entry) {
    case Entry::begin: return Last::begin;
    case Entry::prepared: return Last::prepared;
    case Entry::committed: return Last::committed;
    case Entry::reverting: return Last::reverting;
    case Entry::accepting: return Last::accepting;
    case Entry::abandoned:
    case Entry::rolled_back:
    case Entry::accepted: return Last::terminal;
  }
  ENVSYNC_CHECK(false);
}

bool has_terms(Entry entry) { return entry == Entry::begin || entry == Entry::prepared; }

bool any_record_in(ByteView bytes) {
  for (; bytes.size() >= kHeader + kChecksum; bytes = bytes.subspan(1))
    if (take_record(bytes)) return true;
  return false;
}

}  // namespace

Bytes encode_terms(const Terms& t) {
  Bytes out;
  put_le(out, kTermsVersion);
  put_string(out, t.run);
  put_string(out, t.boot);
  put_string(out, t.commit_root.bytes());
  const int flags = (t.base_absent ? kBaseAbsent : 0) | (t.writes_base ? kWritesBase : 0) |
                    (t.base_number ? kHasBaseNumber : 0) | (t.write_mtime ? kWriteMtime : 0);
  put_le(out, static_cast<u8>(flags));
  put_marker(out, t.base);
  put_marker(out, t.staged);
  put_le(out, t.base_number.value_or(0));
  put_le(out, t.number);
  put_le(out, t.keep);
  put_le(out, t.base_mode);
  put_le(out, t.staged_mode);
  return out;
}

std::optional<Terms> decode_terms(ByteView in) {
  Terms t;
  if (take_le<u8>(in) != kTermsVersion) return std::nullopt;
  const auto run = take_string(in);
  if (!run) return std::nullopt;
  const auto boot = take_string(in);
  if (!boot) return std::nullopt;
  const auto root = take_string(in);
  if (!root) return std::nullopt;
  auto path = tree::RelPath::parse(std::string(*root));
  const auto flags = take_le<u8>(in);
  if (!path || !flags) return std::nullopt;
  auto base = take_marker(in);
  if (!base) return std::nullopt;
  auto staged = take_marker(in);
  if (!staged) return std::nullopt;
  const auto base_number = take_le<u32>(in), number = take_le<u32>(in), keep = take_le<u32>(in);
  const auto base_mode = take_le<u32>(in), staged_mode = take_le<u32>(in);
  if (!base_number || !number || !keep || !base_mode || !staged_mode || !in.empty()) return std::nullopt;
  t.run = *run;
  t.boot = *boot;
  t.commit_root = std::move(*path);
  t.base_absent = *flags & kBaseAbsent;
  t.writes_base = *flags & kWritesBase;
  t.write_mtime = *flags & kWriteMtime;
  if (*flags & kHasBaseNumber) t.base_number = *base_number;
  t.number = *number;
  t.keep = *keep;
  t.base_mode = *base_mode;
  t.staged_mode = *staged_mode;
  t.base = std::move(*base);
  t.staged = std::move(*staged);
  return t;
}

Bytes encode_record(Entry entry, ByteView payload) {
  Bytes out;
  put_le(out, narrow<u32>(payload.size()));
  put_le(out, static_cast<u8>(entry));
  out.insert(out.end(), payload.begin(), payload.end());
  put_le(out, content::checksum_of(out));
  return out;
}

Parsed parse_journal(ByteView bytes) {
  Parsed parsed;
  while (const auto record = take_record(bytes.subspan(parsed.end))) {
    if (has_terms(record->entry)) {
      auto terms = decode_terms(record->payload);
      if (!terms) {
        parsed.tail = Tail::damaged;  // whole by its checksum, yet not of this version
        return parsed;
      }
      parsed.terms = std::move(terms);
    }
    parsed.last = last_of(record->entry);
    parsed.last_entry = record->entry;
    parsed.end += record->size;
  }
  const ByteView rest = bytes.subspan(parsed.end);
  const bool is_empty = std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; });
  if (!is_empty) parsed.tail = any_record_in(rest) ? Tail::damaged : Tail::torn;
  return parsed;
}

Result<Journal> Journal::create(os::Files& files, int tx) {
  Journal journal;
  journal.files_ = &files;
  TRY(journal.fd_, files.create(tx, kJournalFile, 0600));
  TRY_STATUS(files.allocate(journal.fd_.get(), kPreallocated));
  return journal;
}

Result<Parsed> Journal::peek(int tx) {
  TRY(const auto stat, os::stat_if_exists(tx, kJournalFile));
  if (!stat) return Parsed{};
  TRY(const std::string text, os::read_small(tx, kJournalFile, kJournalMax));
  return parse_journal(as_bytes(text));
}

Result<Journal> Journal::open(os::Files& files, int tx) {
  Journal journal;
  journal.files_ = &files;
  TRY(const auto stat, os::stat_if_exists(tx, kJournalFile));
  if (!stat) return journal;
  TRY(journal.fd_, files.open_write(tx, kJournalFile));
  TRY(journal.parsed_, peek(tx));
  if (journal.parsed_.tail == Tail::damaged)
    return Error(ErrorCode::corrupt, "the journal of an interrupted run does not decode").cause("a record in its middle is damaged");
  journal.is_torn_ = journal.parsed_.tail == Tail::torn;
  return journal;
}

Result<void> Journal::append(Entry entry, ByteView payload) {
  if (!fd_) return os::os_error(ENOENT, "append to", kJournalFile);
  if (is_torn_) {
    // DURABILITY: cut and synced before anything follows, else what was torn could stand behind a shorter record.
    TRY_STATUS(files_->truncate(fd_.get(), parsed_.end));
    TRY_STATUS(files_->fdatasync(fd_.get(), kJournalFile));
    is_torn_ = false;
    parsed_.tail = Tail::clean;
  }
  const Bytes record = encode_record(entry, payload);
  is_torn_ = true;  // until the sync has succeeded
  TRY_STATUS(files_->write_at(fd_.get(), parsed_.end, record, kJournalFile));
  TRY_STATUS(files_->fdatasync(fd_.get(), kJournalFile));
  is_torn_ = false;
  parsed_.end += record.size();
  parsed_.last = last_of(entry);
  parsed_.last_entry = entry;
  if (has_terms(entry)) parsed_.terms = decode_terms(payload);
  return ok();
}

}  // namespace envsync::store
