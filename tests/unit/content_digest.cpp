// SPDX-License-Identifier: MIT
#include "content/digest.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using content::ContentId, content::Digest, content::FileHasher, content::kSegmentBytes;

namespace {

/// Bytes that no two segments share.
Bytes pattern(u64 size) {
  Bytes bytes(static_cast<std::size_t>(size));
  for (u64 i = 0; i < size; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

Digest file_digest(ByteView bytes, std::size_t step) {
  FileHasher hasher;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(step, bytes.size()))) hasher.update(bytes.first(std::min(step, bytes.size())));
  return hasher.finish();
}

}  // namespace

TEST_CASE("a digest is XXH3-128 in canonical order") {
  CHECK(content::digest_of({}).hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(content::digest_of(as_bytes("hello\n")).hex() == "6bba86c7e069f56d5a10b435f1c8e49c");
  CHECK(content::digest_of(as_bytes("hello\n"), 2).hex() == "af11d9b0cffbfbb05088912fd669cd63");
  CHECK(content::checksum_of(as_bytes("hello\n")) == 0x99fc819aaba2462au);
}

TEST_CASE("the digest of a file does not depend on how its bytes arrive") {
  const Bytes bytes = pattern(300'000);
  for (const std::size_t step : {std::size_t{1000}, std::size_t{65536}, std::size_t{300'000}}) CHECK(file_digest(bytes, step) == content::digest_of(bytes));
  CHECK(file_digest({}, 1) == content::digest_of({}));
}

TEST_CASE("a file of one segment has the digest of its bytes, a larger one that of its segments and size") {
  const Bytes bytes = pattern(kSegmentBytes + 5);
  const ByteView all = bytes;
  CHECK(file_digest(all.first(kSegmentBytes), 3u << 20).hex() == "57d1f663ebb3a39ab6310923f7c5e971");
  CHECK(file_digest(all, 3u << 20).hex() == "dd12e545085a96542e9caa3aca5d59f2");
  const std::array segments{content::digest_of(all.first(kSegmentBytes)), content::digest_of(all.subspan(kSegmentBytes))};
  CHECK(content::digest_of_segments(segments, all.size()).hex() == "dd12e545085a96542e9caa3aca5d59f2");
  CHECK(content::digest_of_segments(std::span(segments).first(1), kSegmentBytes) == segments[0]);
  CHECK(content::digest_of_segments({}, 0) == content::digest_of({}));
}

TEST_CASE("the name of a content leads back to it, and no other name does") {
  const ContentId id{content::digest_of(as_bytes("hello\n")), 0x1f};
  CHECK(id.name() == "6bba86c7e069f56d5a10b435f1c8e49c.1f");
  CHECK(ContentId::parse(id.name()) == id);
  CHECK(ContentId::parse(ContentId{id.digest, ~u64{0}}.name())->size == ~u64{0});
  for (const char* bad : {"", "6bba86c7e069f56d5a10b435f1c8e49c", "6bba86c7e069f56d5a10b435f1c8e49c.", "6bba86c7e069f56d5a10b435f1c8e49c.01f",
                          "6BBA86c7e069f56d5a10b435f1c8e49c.1f", "6bba86c7e069f56d5a10b435f1c8e49c.1F", "6bba86c7e069f56d5a10b435f1c8e49c.-1",
                          "6bba86c7e069f56d5a10b435f1c8e49c.1ffffffffffffffff", "6bba86c7e069f56d5a10b435f1c8e49c 1f", "6bba86c7e069f56d5a10b435f1c8e49c.1f "})
    CHECK_FALSE(ContentId::parse(bad));
  CHECK_FALSE(Digest::parse("6bba86c7e069f56d5a10b435f1c8e4"));
}
