// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

#include "store/journal.hpp"
#include "support/faulty_files.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::store;
using namespace envsync::testing;

namespace {

Terms terms() {
  Terms t;
  t.run = "20240102T030405.000000Z-0badcafe";
  t.boot = "b00t";
  t.commit_root = *tree::RelPath::parse("lib/python3.12");
  t.writes_base = true;
  t.base_number = 7;
  t.number = 8;
  t.keep = 2;
  t.base_mode = 0755;
  t.staged_mode = 0750;
  t.base = {11, 12, "handle"};
  t.staged = {21, 22, {}};
  return t;
}

Bytes journal(std::initializer_list<Entry> entries) {
  Bytes out;
  for (const Entry entry : entries) {
    const bool has_terms = entry == Entry::begin || entry == Entry::prepared;
    const Bytes record = encode_record(entry, has_terms ? encode_terms(terms()) : Bytes());
    out.insert(out.end(), record.begin(), record.end());
  }
  return out;
}

const std::initializer_list<Entry> kWhole{Entry::begin, Entry::prepared, Entry::committed, Entry::accepting, Entry::accepted};

}  // namespace

TEST_CASE("journal: terms survive their bytes, and no prefix of them decodes") {
  const Bytes bytes = encode_terms(terms());
  CHECK(decode_terms(bytes) == terms());
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(decode_terms(ByteView(bytes).first(size)).has_value());
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode_terms(longer).has_value());
}

TEST_CASE("journal: the last whole record counts, and zeros behind it are free space") {
  Bytes bytes = journal({Entry::begin, Entry::prepared});
  bytes.resize(bytes.size() + 4096);
  const Parsed parsed = parse_journal(bytes);
  CHECK(parsed.last == Last::prepared);
  CHECK(parsed.terms == terms());
  CHECK(parsed.tail == Tail::clean);
  CHECK(parse_journal({}).last == Last::none);
  CHECK(parse_journal({}).tail == Tail::clean);
}

TEST_CASE("journal: every record has its golden bytes") {
  CHECK(to_hex(encode_record(Entry::committed, {})) == "0000000003e865f61a0fe3e86f");
  Terms t;
  t.number = 1;
  CHECK(to_hex(encode_terms(t)) == "0100000008000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000000000000000000000");
}

TEST_CASE("journal: cut at any length it tells a state that it had, and never one that it had not") {
  const Bytes whole = journal(kWhole);
  std::vector<std::size_t> ends;
  for (Bytes part; const Entry entry : kWhole) {
    const Bytes record = journal({entry});
    part.insert(part.end(), record.begin(), record.end());
    ends.push_back(part.size());
  }
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    Bytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t records = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), size) - ends.begin());
    CHECK(parse_journal(bytes).end == (records == 0 ? 0 : ends[records - 1]));
    CHECK(parse_journal(bytes).tail != Tail::damaged);
    bytes.resize(size + 512);  // as preallocated; what was cut may have been zeros
    const Parsed parsed = parse_journal(bytes);
    CHECK((parsed.end == 0 || std::ranges::find(ends, parsed.end) != ends.end()));
    CHECK(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(parsed.end), whole.begin()));
    CHECK(parsed.tail != Tail::damaged);
  }
}

TEST_CASE("journal: a flipped bit is damage where a good record follows, and a torn tail where none does") {
  const Bytes whole = journal(kWhole);
  const std::size_t last_begins = whole.size() - journal({Entry::accepted}).size();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      Bytes bytes = whole;
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      const Parsed parsed = parse_journal(bytes);
      CHECK(parsed.end <= at);
      CHECK(parsed.tail == (at < last_begins ? Tail::damaged : Tail::torn));
    }
  }
}

TEST_CASE("journal: what it appends it finds again, and a torn tail is cut off before anything is appended") {
  Folder folder;
  FaultyFiles files;
  {
    Journal written = Journal::create(files, folder.fd()).value();
    REQUIRE(written.append(Entry::begin, encode_terms(terms())));
    REQUIRE(written.append(Entry::prepared, encode_terms(terms())));
  }
  const std::size_t end = Journal::peek(folder.fd()).value().end;
  // Half of a record that a crash cut.
  const Bytes torn = encode_record(Entry::prepared, encode_terms(terms()));
  const os::Fd raw = files.open_write(folder.fd(), "journal").value();
  REQUIRE(files.write_at(raw.get(), end, ByteView(torn).first(torn.size() - 3), "journal"));
  CHECK(Journal::peek(folder.fd()).value().tail == Tail::torn);
  Journal again = Journal::open(files, folder.fd()).value();
  CHECK(again.parsed().last == Last::prepared);
  REQUIRE(again.append(Entry::abandoned));
  const Parsed parsed = Journal::peek(folder.fd()).value();
  CHECK(parsed.last == Last::terminal);
  CHECK(parsed.last_entry == Entry::abandoned);
  CHECK(parsed.tail == Tail::clean);
}

TEST_CASE("journal: an append that fails did not happen, and the next one does") {
  for (const char* fault : {"write_at:1:EIO", "write_at:1:short", "fdatasync:1:EIO"}) {
    CAPTURE(fault);
    Folder folder;
    FaultyFiles files;
    Journal journal = Journal::create(files, folder.fd()).value();
    REQUIRE(journal.append(Entry::begin, encode_terms(terms())));
    files.set(*Fault::parse(fault));
    CHECK_FALSE(journal.append(Entry::prepared, encode_terms(terms())));
    CHECK(journal.parsed().last == Last::begin);
    REQUIRE(journal.append(Entry::abandoned));
    const Parsed parsed = Journal::peek(folder.fd()).value();
    CHECK(parsed.last_entry == Entry::abandoned);
    CHECK(parsed.tail == Tail::clean);
  }
}

TEST_CASE("journal: a damaged one cannot be opened") {
  Folder folder;
  os::PosixFiles files;
  Bytes bytes = journal(kWhole);
  bytes[3] ^= std::byte{1};
  folder.write("journal", as_text(bytes));
  const auto opened = Journal::open(files, folder.fd());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::corrupt);
}
