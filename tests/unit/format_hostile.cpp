// SPDX-License-Identifier: MIT
// Whatever the other side sends is refused or accepted, and never costs much memory. What is accepted must encode again.
#include "content/pack.hpp"
#include "format/messages.hpp"
#include "support/message_samples.hpp"

#include <doctest/doctest.h>

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

using namespace envsync;
using namespace envsync::format;
using namespace envsync::test;

namespace {

std::atomic<i64> live_bytes{0};
std::atomic<i64> peak_bytes{0};

void* counted_new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  const i64 now = live_bytes += static_cast<i64>(malloc_usable_size(block));
  if (now > peak_bytes) peak_bytes = now;
  return block;
}
void counted_delete(void* block) noexcept {
  if (block != nullptr) live_bytes -= static_cast<i64>(malloc_usable_size(block));
  std::free(block);
}

/// The most that `decode` held at once beyond what was held before.
template <class F>
i64 peak_of(F decode) {
  const i64 before = live_bytes;
  peak_bytes = before;
  decode();
  return peak_bytes - before;
}

template <class Decode>
void damage_everywhere(const Bytes& good, Decode decode) {
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(flip);
      decode(bad);
    }
    decode(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

}  // namespace

void* operator new(std::size_t size) { return counted_new(size); }
void* operator new[](std::size_t size) { return counted_new(size); }
void operator delete(void* block) noexcept { counted_delete(block); }
void operator delete[](void* block) noexcept { counted_delete(block); }
void operator delete(void* block, std::size_t) noexcept { counted_delete(block); }
void operator delete[](void* block, std::size_t) noexcept { counted_delete(block); }

TEST_CASE("a message damaged at any byte is refused, or is another value that encodes and decodes") {
  for (const Request& request : sample_requests()) {
    damage_everywhere(encode(request), [](const Bytes& bad) {
      if (const auto value = decode_request(bad)) CHECK(decode_request(encode(*value)).has_value());
    });
  }
  for (const Reply& reply : sample_replies()) {
    damage_everywhere(encode(reply), [](const Bytes& bad) {
      if (const auto value = decode_reply(bad)) CHECK(decode_reply(encode(*value)).has_value());
    });
  }
  damage_everywhere(encode(sample_error()), [](const Bytes& bad) {
    if (const auto value = decode_error(bad)) CHECK(decode_error(encode(*value)).has_value());
  });
  damage_everywhere(encode(Hello{.build = "0.1.0", .exe_digest = "00ff", .pid = 1}), [](const Bytes& bad) {
    if (const auto value = decode_hello(bad)) CHECK(decode_hello(encode(*value)).value() == *value);
  });
  damage_everywhere(encode(Progress{.phase = Phase::seal, .files_done = 300}), [](const Bytes& bad) {
    if (const auto value = decode_progress(bad)) CHECK(decode_progress(encode(*value)).value() == *value);
  });
}

TEST_CASE("pull items damaged at any byte are refused, or are other items that encode and decode") {
  const Bytes columns = content::decompress(encode_pull_items(sample_items()), 1 << 20).value();
  damage_everywhere(columns, [](const Bytes& bad) {
    if (const auto items = decode_pull_items(content::compress(bad, 1))) {
      CHECK(decode_pull_items(encode_pull_items(*items)).value() == *items);
    }
  });
  damage_everywhere(encode_pull_items(sample_items()), [](const Bytes& bad) { static_cast<void>(decode_pull_items(bad)); });
}

TEST_CASE("a message over the limit is refused before it is parsed") {
  const Bytes large(kControlBytesMax + 1);
  CHECK(peak_of([&large] {
    CHECK_FALSE(decode_request(large));
    CHECK_FALSE(decode_reply(large));
    CHECK_FALSE(decode_error(large).has_value());
    CHECK_FALSE(decode_hello(large));
    CHECK_FALSE(decode_progress(large));
  }) < 100'000);
}

TEST_CASE("four megabytes of one repeated byte never become much more in memory") {
  // Each byte value is some field's tag or length somewhere: empty strings, empty submessages, unknown fields.
  for (int value = 0; value < 256; ++value) {
    const Bytes flood(kControlBytesMax, static_cast<std::byte>(value));
    CAPTURE(value);
    CHECK(peak_of([&flood] {
      static_cast<void>(decode_request(flood));
      static_cast<void>(decode_reply(flood));
      static_cast<void>(decode_error(flood).has_value());
    }) < i64{32} << 20);
  }
}

TEST_CASE("a megabyte of empty members never become much more in memory") {
  // For every tag of one byte: the tag and length 0, over and over; at the top, and inside each member of the top.
  for (int tag = 2; tag < 128; tag += 8) {
    Bytes inner;
    while (inner.size() < (1U << 20)) {
      inner.push_back(static_cast<std::byte>(tag));
      inner.push_back(std::byte{0});
    }
    for (int outer = 2; outer < 128; outer += 8) {
      Bytes nested{static_cast<std::byte>(outer)};
      put_varint(nested, inner.size());
      nested.insert(nested.end(), inner.begin(), inner.end());
      CAPTURE(tag);
      CAPTURE(outer);
      CHECK(peak_of([&nested] {
        static_cast<void>(decode_request(nested));
        static_cast<void>(decode_reply(nested));
      }) < i64{8} << 20);
    }
  }
}

TEST_CASE("a list of four million empty strings is refused by its count") {
  Bytes list;
  put_varint(list, 4'000'000);
  list.resize(list.size() + 4'000'000);
  Bytes reply{std::byte{(11 << 3) | 2}};  // Reply.files
  Bytes files{std::byte{(1 << 3) | 2}};   // FilesReply.files
  put_string(files, as_text(list));
  put_string(reply, as_text(files));
  CHECK(peak_of([&reply] {
    const auto back = decode_reply(reply);
    REQUIRE_FALSE(back);
    CHECK(back.error().causes.at(0) == "its field 'files' has too long a list");
  }) < i64{16} << 20);
}
