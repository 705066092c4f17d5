// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/xattr.h>

#include <doctest/doctest.h>

#include "format/messages.hpp"
#include "support/scan_folder.hpp"

using namespace envsync;
using namespace envsync::testing;
using scan::Cached, scan::Scan, scan::StatCache, scan::StatKey;

namespace {

constexpr i64 kMs = 1'000'000;

StatKey key(u64 ino, i64 mtime_ns = 1000 * kMs, i64 ctime_ns = 1000 * kMs) {
  return {.dev = 3, .ino = ino, .size = 5, .mtime_ns = mtime_ns, .ctime_ns = ctime_ns};
}
Cached cached(std::string_view text) { return {.digest = content::digest_of(as_bytes(text)), .xattrs = {}, .has_xattrs = true}; }

bool stores(i64 mtime_ns, i64 ctime_ns, bool network) {
  StatCache cache;
  cache.put(key(1, mtime_ns, ctime_ns), cached("x"), 10'000 * kMs, network);
  return cache.size() == 1;
}

StatCache filled() {
  StatCache cache;
  for (const u64 ino : {9u, 4u, 7u}) cache.put(key(ino), cached(std::to_string(ino)), 5000 * kMs, false);
  Cached with = cached("x");
  with.xattrs = {{"user.a", "1"}, {"user.b", ""}};
  cache.put(key(11), with, 5000 * kMs, false);
  return cache;
}

}  // namespace

TEST_CASE("only what had settled when its stat was taken is stored") {
  CHECK(stores(9979 * kMs, 9979 * kMs, false));
  CHECK_FALSE(stores(9981 * kMs, 0, false));
  CHECK_FALSE(stores(0, 9981 * kMs, false));
  CHECK_FALSE(stores(9980 * kMs, 9980 * kMs, false));
  CHECK(stores(6999 * kMs, 6999 * kMs, true));
  CHECK_FALSE(stores(7001 * kMs, 0, true));
  CHECK_FALSE(stores(0, 7001 * kMs, true));
  CHECK_FALSE(stores(99'999 * kMs, 0, false));  // from the future
}

TEST_CASE("an entry is found by the whole of its stat and by nothing less") {
  const StatCache cache = filled();
  CHECK(cache.find(key(4))->digest == content::digest_of(as_bytes("4")));
  CHECK(cache.find(key(11))->xattrs.size() == 2);
  for (auto change : {+[](StatKey& k) { ++k.dev; }, +[](StatKey& k) { ++k.ino; }, +[](StatKey& k) { ++k.size; }, +[](StatKey& k) { ++k.mtime_ns; },
                      +[](StatKey& k) { ++k.ctime_ns; }}) {
    StatKey other = key(4);
    change(other);
    CHECK_FALSE(cache.find(other));
  }
}

TEST_CASE("a cache comes back from its bytes") {
  const StatCache back = StatCache::decode(filled().encode());
  CHECK(back.size() == 4);
  CHECK_FALSE(back.changed());
  CHECK(back.find(key(7))->digest == content::digest_of(as_bytes("7")));
  CHECK(back.find(key(11))->xattrs == tree::Xattrs{{"user.a", "1"}, {"user.b", ""}});
  CHECK(StatCache::decode(StatCache().encode()).size() == 0);
}

TEST_CASE("the bytes of a cache are what their grammar says") {
  StatCache cache;
  cache.put({.dev = 1, .ino = 300, .size = 5, .mtime_ns = 10, .ctime_ns = 8}, {.digest = content::digest_of(as_bytes("x")), .xattrs = {{"user.a", "v"}}, .has_xattrs = true}, kMs * 100, false);
  cache.put({.dev = 1, .ino = 299, .size = 4096, .mtime_ns = 7, .ctime_ns = 9}, {.digest = {}, .xattrs = {}, .has_xattrs = true}, kMs * 100, false);
  const auto payload = format::open_file("ESTC", 1, cache.encode());
  REQUIRE(payload);
  CHECK(to_hex(*payload) == "02"
                            "02" "02" "d604" "8020" "0e" "04"
                            "07" "00" "02" "05" "06" "03" "5c7401c0ec22eeeeeaf06c6480b2cd11" "01" "06757365722e61" "0176");
}

TEST_CASE("only what was looked up or put since loading is written, so that a cache does not grow for ever") {
  StatCache cache = StatCache::decode(filled().encode());
  CHECK(cache.find(key(7)));
  cache.put(key(20), cached("new"), 5000 * kMs, false);
  const StatCache next = StatCache::decode(cache.encode());
  CHECK(next.size() == 2);
  CHECK(next.find(key(7)));
  CHECK(next.find(key(20)));
}

TEST_CASE("a cache with any byte changed, cut or added is an empty cache") {
  const Bytes good = filled().encode();
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x41};
    CHECK(StatCache::decode(bad).size() == 0);
    CHECK(StatCache::decode(ByteView(good).first(i)).size() == 0);
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  CHECK(StatCache::decode(longer).size() == 0);
}

TEST_CASE("a cache whose checksum is right and whose entries are not is believed in whole or not at all") {
  const Bytes payload = *format::open_file("ESTC", 1, filled().encode());
  const auto sealed = [](ByteView bytes) { return StatCache::decode(format::seal_file("ESTC", 1, bytes)).size(); };
  for (std::size_t i = 0; i < payload.size(); ++i) {
    for (const u8 flip : {u8{1}, u8{0x80}, u8{0xff}}) {
      Bytes bad = payload;
      bad[i] ^= std::byte{flip};
      const std::size_t size = sealed(bad);
      CHECK((size == 0 || size == 4));
    }
    CHECK(sealed(ByteView(payload).first(i)) == 0);
  }
  Bytes many;
  put_varint(many, 8'000'000);
  CHECK(sealed(many) == 0);
}

TEST_CASE("a link of our own moves what is known to the new ctime") {
  StatCache cache = filled();
  const StatKey from = key(4);
  StatKey to = from;
  to.ctime_ns += 60 * kMs;
  cache.moved(from, to);
  CHECK(cache.find(to)->digest == content::digest_of(as_bytes("4")));
  const StatCache next = StatCache::decode(cache.encode());
  CHECK(next.find(to));
  CHECK_FALSE(next.find(from));
  SUBCASE("but not to another size, time or inode") {
    for (auto change : {+[](StatKey& k) { ++k.size; }, +[](StatKey& k) { ++k.mtime_ns; }, +[](StatKey& k) { ++k.ino; }}) {
      StatKey other = to;
      change(other);
      cache.moved(to, other);
      CHECK_FALSE(cache.find(other));
    }
  }
  SUBCASE("and what is not known stays unknown") {
    cache.moved(key(99), key(99, 1000 * kMs, 1001 * kMs));
    CHECK_FALSE(cache.find(key(99, 1000 * kMs, 1001 * kMs)));
  }
}

TEST_CASE("a cache is saved and loaded, and an absent or broken file is an empty one") {
  Folder folder;
  os::PosixFiles files;
  CHECK(StatCache::load(folder.fd(), "cache").size() == 0);
  REQUIRE(filled().save(files, folder.fd(), "cache"));
  CHECK(StatCache::load(folder.fd(), "cache").size() == 4);
  folder.write("cache", "no cache");
  CHECK(StatCache::load(folder.fd(), "cache").size() == 0);
}

TEST_CASE("changed says whether there is something to save") {
  StatCache cache = StatCache::decode(filled().encode());
  CHECK(cache.find(key(4)));
  cache.put(key(4), cached("4"), 5000 * kMs, false);
  CHECK_FALSE(cache.changed());
  cache.put(key(4), cached("other"), 5000 * kMs, false);
  CHECK(cache.changed());
}

TEST_CASE("a second scan reads nothing, unless something changed") {
  Folder folder;
  folder.write("a", "1");
  folder.write("d/b", "2");
  settle();
  StatCache cache;
  CHECK(scan_all(folder, cache).counters.files_hashed == 2);
  const Scan again = scan_all(folder, cache);
  CHECK(again.counters.files_hashed == 0);
  CHECK(again.counters.cache_hits == 2);

  // The same size and the same mtime: only the ctime tells.
  const os::Stat before = *os::stat_at(folder.fd(), "a");
  folder.write("a", "9");
  os::PosixFiles files;
  REQUIRE(files.set_mtime(folder.fd(), "a", before.mtime_ns));
  const Scan changed = scan_all(folder, cache);
  CHECK(changed.counters.files_hashed == 1);
  CHECK(changed.tree.find(*tree::RelPath::parse("a"))->file()->digest == content::digest_of(as_bytes("9")));
}

TEST_CASE("a file that was just written is read again next time") {
  Folder folder;
  folder.write("a", "1");
  StatCache cache;
  // From the future, as after a clock was set back: never settled.
  os::PosixFiles files;
  REQUIRE(files.set_mtime(folder.fd(), "a", os::filesystem_clock_ns() + 3'600'000 * kMs));
  settle();
  for (int i = 0; i < 2; ++i) CHECK(scan_all(folder, cache).counters.files_hashed == 1);
}

TEST_CASE("a full scan believes the bytes and not the cache, and mends it") {
  Folder folder;
  folder.write("a", "1");
  settle();
  StatCache cache;
  cache.put(scan::key_of(*os::stat_at(folder.fd(), "a")), cached("a lie"), os::filesystem_clock_ns(), false);
  const auto digest = [](const Scan& scan) { return scan.tree.entries()[1].file()->digest; };
  CHECK(digest(scan_all(folder, cache)) == content::digest_of(as_bytes("a lie")));
  scan::Options full;
  full.trust_cache = false;
  CHECK(digest(scan_all(folder, cache, full)) == content::digest_of(as_bytes("1")));
  CHECK(digest(scan_all(folder, cache)) == content::digest_of(as_bytes("1")));
}

TEST_CASE("where only the digest is known the attributes are read and the file is not") {
  Folder folder;
  folder.write("a", "1");
  const bool has_xattrs = ::setxattr(folder.path("a").c_str(), "user.a", "v", 1, 0) == 0;
  settle();
  StatCache cache;
  cache.put(scan::key_of(*os::stat_at(folder.fd(), "a")), {.digest = content::digest_of(as_bytes("1")), .xattrs = {}, .has_xattrs = false}, os::filesystem_clock_ns(), false);
  const Scan scan = scan_all(folder, cache);
  CHECK(scan.counters.files_hashed == 0);
  CHECK(scan.tree.entries()[1].xattrs.size() == (has_xattrs ? 1 : 0));
  CHECK(cache.find(scan.stats[1])->has_xattrs);
}

TEST_CASE("a cache may be used from several threads") {
  StatCache cache;
  {
    std::vector<std::jthread> threads;
    for (u64 t = 0; t < 4; ++t) threads.emplace_back([&cache, t] {
      for (u64 i = 0; i < 2000; ++i) {
        cache.put(key(i * 4 + t), cached(std::to_string(i)), 5000 * kMs, false);
        CHECK(cache.find(key(i * 4 + t)));
        static_cast<void>(cache.find(key(i * 4 + (t + 1) % 4)));
      }
    });
  }
  CHECK(cache.size() == 8000);
  CHECK(StatCache::decode(cache.encode()).size() == 8000);
}
