// SPDX-License-Identifier: MIT
#include "content/pack.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::content;

namespace {

Bytes noise(std::size_t size) {
  std::mt19937_64 random(7);
  Bytes bytes;
  while (bytes.size() < size) put_le<u64>(bytes, random());
  bytes.resize(size);
  return bytes;
}

Bytes text(std::size_t size) {
  std::mt19937_64 random(8);
  Bytes bytes;
  while (bytes.size() < size) put_string(bytes, "import numpy as np  # line " + std::to_string(random() % 100'000) + "\n");
  bytes.resize(size);
  return bytes;
}

OpenPack pack_of(Bytes bytes) {
  const u32 half = static_cast<u32>(bytes.size() / 2);
  return {{{.want = 7, .offset = 0, .length = half}, {.want = 9, .offset = 1u << 20, .length = static_cast<u32>(bytes.size()) - half}}, std::move(bytes)};
}

bool same(const OpenPack& a, const OpenPack& b) {
  return a.bytes == b.bytes && std::ranges::equal(a.pieces, b.pieces, [](const Piece& x, const Piece& y) {
    return x.want == y.want && x.offset == y.offset && x.length == y.length;
  });
}

constexpr std::size_t kHeader = 24;
u8 codec(const Bytes& encoded) { return static_cast<u8>(encoded[4]); }

}  // namespace

TEST_CASE("a raw pack has the bytes that its grammar says") {
  const OpenPack pack{{{.want = 1, .offset = 2, .length = 2}, {.want = 3, .offset = 0, .length = 1}}, {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}};
  CHECK(to_hex(encode_pack(pack, kRawLevel)) ==
        "4550310a" "00000000" "23000000" "02000000" "7f47b618e38b09b9"
        "01000000" "0200000000000000" "02000000" "03000000" "0000000000000000" "01000000" "616263");
}

TEST_CASE("a pack gives back its pieces and bytes at every level") {
  for (const int level : {kRawLevel, -3, 1, 3, 6, 1000, -999}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3000}, std::size_t{1} << 20}) {
      const OpenPack pack = pack_of(text(size));
      const auto back = decode_pack(encode_pack(pack, level));
      REQUIRE(back);
      CHECK(same(*back, pack));
    }
  }
}

TEST_CASE("what compresses is sent compressed, what does not is sent raw") {
  const Bytes encoded = encode_pack(pack_of(text(1u << 20)), 3);
  CHECK(codec(encoded) == 1);
  CHECK(encoded.size() < (1u << 20) / 4);
  CHECK(codec(encode_pack(pack_of(noise(1u << 20)), 3)) == 0);
  CHECK(codec(encode_pack(pack_of(noise(4000)), 3)) == 0);
  CHECK(codec(encode_pack(pack_of(text(1u << 20)), kRawLevel)) == 0);
}

TEST_CASE("a pack of noise with text between is judged by its mixture") {
  Bytes mixed = noise(2u << 20);
  const Bytes middle = text(2u << 20);
  mixed.insert(mixed.end(), middle.begin(), middle.end());
  CHECK(codec(encode_pack(pack_of(mixed), 1)) == 1);
}

TEST_CASE("a pack of the largest size allowed travels") {
  OpenPack pack{{{.want = 0, .offset = 0, .length = static_cast<u32>(kPackRawMax - 16)}}, Bytes(kPackRawMax - 16)};
  const auto back = decode_pack(encode_pack(pack, 1));
  REQUIRE(back);
  CHECK(same(*back, pack));
}

TEST_CASE("a pack with any byte changed, cut or added is refused") {
  for (const int level : {kRawLevel, 3}) {
    const OpenPack pack = pack_of(text(2000));
    const Bytes whole = encode_pack(pack, level);
    CHECK(codec(whole) == (level == kRawLevel ? 0 : 1));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const u8 flip : {u8{1}, u8{0x80}, u8{0xff}}) {
        Bytes bad = whole;
        bad[i] ^= std::byte{flip};
        const auto back = decode_pack(bad);
        // A byte of the frame's own header may say the same thing twice; content that is believed must be the content.
        CHECK((!back || same(*back, pack)));
      }
      CHECK_FALSE(decode_pack(ByteView(whole).first(i)));
    }
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode_pack(longer));
  }
}

TEST_CASE("a header cannot ask for more memory than a pack may have") {
  Bytes head = encode_pack({}, kRawLevel);
  const auto with = [&](std::size_t at, u32 value) {
    Bytes bytes = head;
    Bytes le;
    put_le(le, value);
    std::ranges::copy(le, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return bytes;
  };
  CHECK(decode_pack(head));
  CHECK_FALSE(decode_pack(with(8, kPackRawMax + 1)));
  CHECK_FALSE(decode_pack(with(12, kPackPiecesMax + 1)));
  CHECK_FALSE(decode_pack(with(12, 1)));
}

TEST_CASE("a piece that ends beyond what a file can be is refused") {
  const OpenPack pack{{{.want = 0, .offset = ~u64{0}, .length = 1}}, Bytes(1)};
  CHECK_FALSE(decode_pack(encode_pack(pack, kRawLevel)));
}

TEST_CASE("compressed bytes come back, and never more than the limit") {
  const Bytes bytes = text(500'000);
  const Bytes packed = compress(bytes, 3);
  CHECK(*decompress(packed, bytes.size()) == bytes);
  CHECK_FALSE(decompress(packed, bytes.size() - 1));
  CHECK(decompress(compress({}, 3), 0)->empty());
  Bytes twice = packed;
  twice.insert(twice.end(), packed.begin(), packed.end());
  CHECK_FALSE(decompress(twice, bytes.size() * 2));
}

TEST_CASE("a short frame that claims a long content is refused before memory is asked for") {
  // magic, a descriptor with an 8-byte content size and one segment, 512 GiB, an empty last block
  const Bytes bomb = *from_hex("28b52ffd" "e0" "0000000080000000" "010000");
  CHECK_FALSE(decompress(bomb, std::size_t{1} << 40));
}

TEST_CASE("a fixed level stays") {
  LevelGovernor fixed(-3);
  for (const std::size_t queued : {0u, 8u, 0u}) CHECK(fixed.next(queued, 8, 1e6) == -3);
}

TEST_CASE("a sender that waits for the compressor gets faster packs, in the end raw ones") {
  LevelGovernor governor;
  int last = governor.next(8, 8, 0);
  for (int i = 0; i < 40; ++i) {
    const int level = governor.next(0, 8, 500e6);
    CHECK(level <= last);
    last = level;
  }
  CHECK(last == kRawLevel);
}

TEST_CASE("a full queue raises the level as far as the link is slow, and a fast link lowers it again") {
  const auto after_full_queue = [](LevelGovernor& governor, double rate) {
    int last = 0;
    for (int i = 0; i < 40; ++i) last = governor.next(8, 8, rate);
    return last;
  };
  LevelGovernor governor;
  CHECK(after_full_queue(governor, 0) == 1);
  CHECK(after_full_queue(governor, 120e6) == 1);
  CHECK(after_full_queue(governor, 12e6) == 3);
  CHECK(after_full_queue(governor, 1e6) == 6);
  CHECK(governor.next(8, 8, 120e6) == 1);
}

TEST_CASE("one full queue among empty ones changes nothing") {
  LevelGovernor governor;
  (void)governor.next(4, 8, 1e6);
  for (int i = 0; i < 20; ++i) CHECK(governor.next(i % 3 == 0 ? 0 : 8, 8, 1e6) == 1);
}

TEST_CASE("an empty queue says nothing before the first packs could fill it") {
  LevelGovernor governor;
  for (int i = 0; i < 8; ++i) CHECK(governor.next(0, 8, 0) == 1);
  for (int i = 0; i < 4; ++i) (void)governor.next(0, 8, 0);
  CHECK(governor.next(0, 8, 0) < 1);
}
