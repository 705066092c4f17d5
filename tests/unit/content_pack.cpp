// SPDX-License-Identifier: MIT
#include "content/pack.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <doctest/doctest.h>

#include "content/level_governor.hpp"

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

struct Given {
  std::vector<Piece> pieces;
  Bytes bytes;
};

Given given(Bytes bytes) {
  const u32 half = static_cast<u32>(bytes.size() / 2);
  return {{{.want = 7, .offset = 0, .length = half}, {.want = 9, .offset = 1u << 20, .length = static_cast<u32>(bytes.size()) - half}}, std::move(bytes)};
}

Bytes encode(const Given& pack, int level) {
  PackBuilder builder(pack.pieces.size(), pack.bytes.size());
  std::size_t at = 0;
  for (const Piece& piece : pack.pieces) {
    const auto place = builder.add(piece);
    std::copy_n(pack.bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.length, place.begin());
    at += piece.length;
  }
  const Buffer out = std::move(builder).finish(level);
  return Bytes(out.begin(), out.end());
}

Result<OpenPack> decode(ByteView encoded) { return decode_pack(Buffer::copy_of(encoded)); }

bool same(const OpenPack& a, const Given& b) {
  return std::ranges::equal(a.content(), b.bytes) && std::ranges::equal(a.pieces, b.pieces, [](const Piece& x, const Piece& y) {
    return x.want == y.want && x.offset == y.offset && x.length == y.length;
  });
}

constexpr std::size_t kHeader = 24;
u8 codec(const Bytes& encoded) { return static_cast<u8>(encoded[4]); }

}  // namespace

TEST_CASE("a raw pack has the bytes that its grammar says") {
  const Given pack{{{.want = 1, .offset = 2, .length = 2}, {.want = 3, .offset = 0, .length = 1}}, {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}};
  CHECK(to_hex(encode(pack, kRawLevel)) ==
        "4550310a" "00000000" "23000000" "02000000" "7f47b618e38b09b9"
        "01000000" "0200000000000000" "02000000" "03000000" "0000000000000000" "01000000" "616263");
}

TEST_CASE("a pack gives back its pieces and bytes at every level") {
  for (const int level : {kRawLevel, -3, 1, 3, 6, 1000, -999}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3000}, std::size_t{1} << 20}) {
      const Given pack = given(text(size));
      const auto back = decode(encode(pack, level));
      REQUIRE(back);
      CHECK(same(*back, pack));
    }
  }
}

TEST_CASE("what compresses is sent compressed, what does not is sent raw") {
  const Bytes encoded = encode(given(text(1u << 20)), 3);
  CHECK(codec(encoded) == 1);
  CHECK(encoded.size() < (1u << 20) / 4);
  CHECK(codec(encode(given(noise(1u << 20)), 3)) == 0);
  CHECK(codec(encode(given(noise(4000)), 3)) == 0);
  CHECK(codec(encode(given(text(1u << 20)), kRawLevel)) == 0);
}

TEST_CASE("a pack of noise with text between is judged by its mixture") {
  Bytes mixed = noise(2u << 20);
  const Bytes middle = text(2u << 20);
  mixed.insert(mixed.end(), middle.begin(), middle.end());
  CHECK(codec(encode(given(mixed), 1)) == 1);
}

TEST_CASE("a pack of the largest size allowed travels") {
  Given pack{{{.want = 0, .offset = 0, .length = static_cast<u32>(kPackRawMax - 16)}}, Bytes(kPackRawMax - 16)};
  const auto back = decode(encode(pack, 1));
  REQUIRE(back);
  CHECK(same(*back, pack));
}

TEST_CASE("a pack with any byte changed, cut or added is refused") {
  for (const int level : {kRawLevel, 3}) {
    const Given pack = given(text(2000));
    const Bytes whole = encode(pack, level);
    CHECK(codec(whole) == (level == kRawLevel ? 0 : 1));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const u8 flip : {u8{1}, u8{0x80}, u8{0xff}}) {
        Bytes bad = whole;
        bad[i] ^= std::byte{flip};
        const auto back = decode(bad);
        // A byte of the frame's own header may say the same thing twice; content that is believed must be the content.
        CHECK((!back || same(*back, pack)));
      }
      CHECK_FALSE(decode(ByteView(whole).first(i)));
    }
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode(longer));
  }
}

TEST_CASE("a header cannot ask for more memory than a pack may have") {
  Bytes head = encode({}, kRawLevel);
  const auto with = [&](std::size_t at, u32 value) {
    Bytes bytes = head;
    Bytes le;
    put_le(le, value);
    std::ranges::copy(le, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return bytes;
  };
  CHECK(decode(head));
  CHECK_FALSE(decode(with(8, kPackRawMax + 1)));
  CHECK_FALSE(decode(with(12, kPackPiecesMax + 1)));
  CHECK_FALSE(decode(with(12, 1)));
}

TEST_CASE("a piece that ends beyond what a file can be is refused") {
  const Given pack{{{.want = 0, .offset = ~u64{0}, .length = 1}}, Bytes(1)};
  CHECK_FALSE(decode(encode(pack, kRawLevel)));
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
  for (int i = 0; i < 100; ++i) fixed.sent(-3, 8u << 20, Seconds{1}, Seconds{0});
  CHECK(fixed.level() == -3);
}

/// What two cores that only compress, and a link, make of the levels. Speeds and ratios as zstd has them on shared libraries.
int level_for(double wire_bytes_per_second, int packs, LevelGovernor& governor) {
  struct Step { int level; double ratio, speed; };
  constexpr std::array<Step, 7> steps{{{kRawLevel, 1, 2e10}, {-7, 2.5, 1.1e9}, {-3, 3.1, 9e8}, {1, 4.0, 6.4e8}, {3, 4.8, 4.7e8}, {6, 5.2, 1.35e8}, {9, 5.4, 7e7}}};
  constexpr u64 content = 8u << 20;
  for (int i = 0; i < packs; ++i) {
    const Step& step = *std::ranges::find(steps, governor.level(), &Step::level);
    const double make = content / (2 * step.speed), send = content / step.ratio / wire_bytes_per_second;
    governor.sent(step.level, content, Seconds{std::max(0.0, make - send)}, Seconds{send});
  }
  return governor.level();
}

/// Where it is most of the time: at any moment it may be on trial next door.
int usual_level(double wire_bytes_per_second) {
  LevelGovernor governor;
  (void)level_for(wire_bytes_per_second, 400, governor);
  std::map<int, int> seen;
  for (int i = 0; i < 400; ++i) ++seen[level_for(wire_bytes_per_second, 1, governor)];
  return std::ranges::max_element(seen, {}, [](const auto& entry) { return entry.second; })->first;
}

TEST_CASE("on a link that is faster than the cores compress, packs go raw") { CHECK(usual_level(4e9) == kRawLevel); }

TEST_CASE("a slower link is worth a harder level, and the level is the one that brings most content") {
  CHECK(usual_level(150e6) == 3);
  CHECK(usual_level(12e6) == 6);
}

TEST_CASE("a trial that brings nothing makes the next one later") {
  LevelGovernor governor;
  std::vector<int> trials;
  for (int i = 0; i < 2000; ++i)
    if (level_for(4e9, 1, governor) != kRawLevel) trials.push_back(i);
  REQUIRE(trials.size() > 20);
  CHECK(trials.size() < 200);
  CHECK(trials.back() > 1000);
}

TEST_CASE("a link that becomes slow is followed") {
  LevelGovernor governor;
  (void)level_for(4e9, 400, governor);
  (void)level_for(12e6, 4000, governor);
  CHECK(governor.level() >= 3);
}

TEST_CASE("a pack of another level than the present one is not counted") {
  LevelGovernor governor;
  const int first = governor.level();
  for (int i = 0; i < 100; ++i) governor.sent(first + 1, 8u << 20, Seconds{1}, Seconds{0});
  CHECK(governor.level() == first);
}

TEST_CASE("a level to begin with is gone below only where the cores are too weak for it") {
  LevelGovernor busy({}, 3), starved({}, 3);
  for (int i = 0; i < 400; ++i) busy.sent(busy.level(), 8u << 20, Seconds{2}, Seconds{1});
  CHECK(busy.level() >= 3);
  for (int i = 0; i < 100; ++i) starved.sent(starved.level(), 8u << 20, Seconds{starved.level() >= 3 ? 20 : 1}, Seconds{1});
  CHECK(starved.level() < 3);
  CHECK(LevelGovernor({}, 4).level() == LevelGovernor().level());  // no step of the ladder
}
