// SPDX-License-Identifier: MIT
#include "content/pack.hpp"
#include "format/messages.hpp"
#include "support/message_samples.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::format;
using namespace envsync::test;

namespace {

// count 3; wants 7, -2, +3999994 in zigzag; sizes 300, 0, 2^50; three digests; paths that share 0, 4 and 3 bytes; of the third
// only the segments from the sixth, 65,535.
constexpr std::string_view kGoldenColumns =
    "03"
    "0e" "03" "f4a3e803"
    "ac02" "00" "8080808080808002"
    "0102030405060708090a0b0c0d0e0f10"
    "1112131415161718191a1b1c1d1e1f20"
    "2122232425262728292a2b2c2d2e2f30"
    "0008" "6c69622f612e7079"
    "0404" "622e7079"
    "0300"
    "01" "02" "05" "ffff03";

Bytes packed(std::string_view hex) { return content::compress(from_hex(hex).value(), 1); }

}  // namespace

TEST_CASE("pull items have the columns that the grammar gives") {
  const auto columns = content::decompress(encode_pull_items(sample_items()), 1 << 20);
  REQUIRE(columns);
  CHECK(to_hex(*columns) == kGoldenColumns);
  const auto items = decode_pull_items(packed(kGoldenColumns));
  REQUIRE(items);
  CHECK(*items == sample_items());
}

TEST_CASE("no pull items are a list of none") {
  const auto items = decode_pull_items(encode_pull_items({}));
  REQUIRE(items);
  CHECK(items->empty());
}

TEST_CASE("pull items that do not hold together are refused") {
  const std::string digest(32, '0');
  CHECK(decode_pull_items(packed("01" "02" "00" + digest + "0001" "61" "00")));
  CHECK_FALSE(decode_pull_items({}));
  CHECK_FALSE(decode_pull_items(as_bytes("not zstd")));
  CHECK_FALSE(decode_pull_items(packed("01" "01" "00" + digest + "0001" "61" "00")));          // want -1
  CHECK_FALSE(decode_pull_items(packed("01" "80a4e803" "00" + digest + "0001" "61" "00")));    // want 4,000,000
  CHECK_FALSE(decode_pull_items(packed("01" "02" "00" + digest + "0101" "61" "00")));          // shares a byte with no path
  CHECK_FALSE(decode_pull_items(packed("01" "02" "00" + digest + "0002" "61" "00")));          // path cut
  CHECK_FALSE(decode_pull_items(packed("01" "02" "00" + digest + "0002" "2e2e" "00")));        // ".."
  CHECK_FALSE(decode_pull_items(packed("01" "02" "00" + digest + "0000" "00")));               // the root
  CHECK_FALSE(decode_pull_items(packed("01" "02" "00" + digest + "0001" "61" "0000" "00")));        // a byte too many
  CHECK_FALSE(decode_pull_items(packed("02" "02" "00" + digest + "0001" "61" "00")));          // one is missing
  CHECK_FALSE(decode_pull_items(packed("ffffffffffffffffff01" + digest)));                // 2^64-1 items
}

TEST_CASE("a range of segments lies in a file that has them") {
  const std::string digest(32, '0');
  const auto ranges = [&](const std::string& size, const std::string& columns) { return decode_pull_items(packed("01" "02" + size + digest + "0001" "61" + columns)).has_value(); };
  const std::string three_segments = "80808009", one_segment = "80808004";  // 18 MiB, 8 MiB
  CHECK(ranges(three_segments, "01" "00" "00" "03"));
  CHECK(ranges(three_segments, "01" "00" "02" "01"));
  CHECK_FALSE(ranges(three_segments, "01" "00" "02" "02"));
  CHECK_FALSE(ranges(three_segments, "01" "00" "03" "01"));
  CHECK_FALSE(ranges(three_segments, "01" "00" "00" "00"));
  CHECK_FALSE(ranges(three_segments, "01" "01" "00" "01"));
  CHECK_FALSE(ranges(three_segments, "02" "00" "00" "01" "00" "01" "01"));
  CHECK_FALSE(ranges(three_segments, "01" "00" "00"));
  CHECK_FALSE(ranges(one_segment, "01" "00" "00" "01"));
}

TEST_CASE("parts of a file travel, and lie in it one after the other") {
  PullItem item{.want = 1, .path = rel("a"), .content = {{}, 300}, .ranges = {{0, 10}, {12, 200}, {299, 1}}};
  const auto there = decode_pull_items(encode_pull_items({{.want = 0, .path = rel("0"), .content = {{}, 5}}, item}));
  REQUIRE(there);
  CHECK(there->at(0).ranges.empty());
  CHECK(there->at(1) == item);
  const std::string digest(32, '0');
  const auto parts = [&](const std::string& columns) { return decode_pull_items(packed("01" "02" "64" + digest + "0001" "61" "00" + columns)).has_value(); };
  CHECK_FALSE(parts("01" "00" "02" "000a" "500a" "00"));  // a byte too many
  CHECK(parts("01" "00" "02" "000a" "500a"));
  CHECK_FALSE(parts("01" "00" "01" "0065"));           // 101 bytes of 100
  CHECK_FALSE(parts("01" "00" "02" "000a" "5a01"));    // behind the end
  CHECK_FALSE(parts("01" "00" "01" "0000"));           // empty
  CHECK_FALSE(parts("01" "00" "00"));
  CHECK_FALSE(parts("01" "01" "01" "0001"));           // no such file
  CHECK_FALSE(parts("02" "00" "01" "0001" "00" "01" "0001"));
  CHECK_FALSE(parts("01" "00" "ffffff7f" "0001"));     // more parts than bytes
  CHECK_FALSE(decode_pull_items(packed("01" "02" "80808009" + digest + "0001" "61" "01" "00" "00" "01" "01" "00" "01" "0001")));  // segments, too
}

TEST_CASE("paths of a few bytes cannot stand for gigabytes of shared prefixes") {
  // 200,000 paths, each all of the path before: 12 kB per path from two bytes.
  std::string long_path = "a";
  while (long_path.size() < 12'000) long_path += std::string(200, 'b') + "/c";
  Bytes columns;
  constexpr u64 kCount = 200'000;
  put_varint(columns, kCount);
  columns.resize(columns.size() + kCount * 2 + kCount * 16);
  for (u64 i = 0; i < kCount; ++i) {
    put_varint(columns, i == 0 ? 0 : long_path.size());
    put_string(columns, i == 0 ? long_path : std::string());
  }
  const auto items = decode_pull_items(content::compress(columns, 1));
  REQUIRE_FALSE(items);
  CHECK(items.error().code == ErrorCode::protocol);
  CHECK(items.error().causes.at(0) == "a path is none");
}
