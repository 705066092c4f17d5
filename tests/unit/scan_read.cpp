// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>

#include <unistd.h>

#include <doctest/doctest.h>

#include "support/scan_folder.hpp"

using namespace envsync;
using namespace envsync::testing;
using scan::Scan;

namespace {

content::Digest digest_in(const Scan& scan, const char* path) { return scan.tree.find(*tree::RelPath::parse(path))->file()->digest; }

content::Digest digest_of_text(std::string_view text) {
  content::FileHasher hasher;
  hasher.update(as_bytes(text));
  return hasher.finish();
}

std::string text_of(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 12));
  return text;
}

}  // namespace

TEST_CASE("files around the length of a segment have the digest of their bytes, on one thread and on several") {
  Folder folder;
  const std::string text = text_of((17u << 20) + 3);
  const std::string_view all = text;
  constexpr std::size_t kSegment = content::kSegmentBytes;
  folder.write("empty", "");
  folder.write("buffer", all.substr(0, 1u << 20));
  folder.write("segment", all.substr(0, kSegment));
  folder.write("more", all.substr(0, kSegment + 1));
  folder.write("two", all.substr(0, 2 * kSegment));
  folder.write("many", all);
  for (const u32 threads : {1u, 3u}) {
    scan::Options options;
    options.threads = threads;
    const Scan scan = scan_all(folder, options);
    CHECK(digest_in(scan, "empty") == digest_of_text(""));
    CHECK(digest_in(scan, "buffer") == digest_of_text(all.substr(0, 1u << 20)));
    CHECK(digest_in(scan, "segment") == digest_of_text(all.substr(0, kSegment)));
    CHECK(digest_in(scan, "more") == digest_of_text(all.substr(0, kSegment + 1)));
    CHECK(digest_in(scan, "two") == digest_of_text(all.substr(0, 2 * kSegment)));
    CHECK(digest_in(scan, "many") == digest_of_text(all));
    CHECK(scan.counters.files_hashed == 6);
    CHECK(scan.counters.bytes_hashed == (1u << 20) + kSegment + kSegment + 1 + 2 * kSegment + all.size());
  }
}

TEST_CASE("a large file is read once and then known") {
  Folder folder;
  folder.write("large", text_of((9u << 20)));
  settle();
  scan::StatCache cache;
  CHECK(scan_all(folder, cache).counters.files_hashed == 1);
  CHECK(scan_all(folder, cache).counters.files_hashed == 0);
}

TEST_CASE("holes are zeros") {
  Folder folder;
  folder.write("sparse", "head");
  REQUIRE(::truncate(folder.path("sparse").c_str(), 20u << 20) == 0);
  std::string text(20u << 20, '\0');
  text.replace(0, 4, "head");
  CHECK(digest_in(scan_all(folder), "sparse") == digest_of_text(text));
}

TEST_CASE("progress tells what is done of how much, from one thread") {
  Folder folder;
  for (int i = 0; i < 300; ++i) folder.write("d" + std::to_string(i % 10) + "/" + std::to_string(i), "1234");
  const std::thread::id caller = std::this_thread::get_id();
  u64 calls = 0, last = 0;
  scan::Options options;
  options.threads = 1;
  options.progress = [&](u64, u64 bytes, u64 total) {
    CHECK(std::this_thread::get_id() == caller);
    CHECK(total == 1200);
    CHECK(bytes >= last);
    last = bytes;
    ++calls;
  };
  scan_all(folder, options);
  CHECK(calls > 0);
  CHECK(last == 1200);
}

TEST_CASE("a file that never holds still is named, a small one and a large one, with their hard links") {
  for (const u64 size : {u64{6} << 20, u64{24} << 20}) {
    Folder folder;
    folder.write("busy", "");
    folder.write("calm", "1");
    REQUIRE(::link(folder.path("busy").c_str(), folder.path("twin").c_str()) == 0);
    REQUIRE(::truncate(folder.path("busy").c_str(), static_cast<off_t>(size)) == 0);
    std::atomic<bool> is_over = false;
    std::jthread writer([&] {
      for (u64 i = 0; !is_over; ++i) static_cast<void>(::truncate(folder.path("busy").c_str(), static_cast<off_t>(size + i % 1000)));
    });
    // The writer may rest by chance while a file is read; it does not each time.
    std::string problems;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (problems.empty() && std::chrono::steady_clock::now() < deadline) {
      const Scan scan = scan_all(folder);
      CHECK(scan.tree.find(*tree::RelPath::parse("calm")) != nullptr);
      problems = told(scan.problems);
      if (!problems.empty()) CHECK(paths(scan) == "calm");
    }
    is_over = true;
    CHECK(problems == "busy: changed while it was read; twin: changed while it was read");
  }
}

TEST_CASE("files that come and go while the tree is scanned never break the scan") {
  Folder folder;
  for (int i = 0; i < 50; ++i) folder.write("d/" + std::to_string(i), "1");
  std::atomic<bool> is_over = false;
  std::jthread writer([&] {
    for (int i = 0; !is_over; ++i) {
      const std::string name = "d/" + std::to_string(i % 50);
      std::filesystem::remove(folder.path(name));
      if (i % 3 == 0) std::filesystem::create_directories(folder.path("e/" + std::to_string(i % 7)));
      if (i % 5 == 0) std::filesystem::remove_all(folder.path("e"));
      static_cast<void>(::link(folder.path("d/" + std::to_string((i + 1) % 50)).c_str(), folder.path(name).c_str()));
    }
  });
  scan::StatCache cache;
  for (int i = 0; i < 60; ++i) {
    const auto scan = scan::scan(folder.fd(), {}, cache);
    REQUIRE(scan);
    CHECK(scan->stats.size() == scan->tree.entries().size());
    REQUIRE(scan::recheck(folder.fd(), scan->tree, scan->stats, {}, 5));
  }
  is_over = true;
}
