// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "delta/match.hpp"

using namespace envsync;
using namespace envsync::delta;

namespace {

Bytes random_bytes(std::size_t size, u32 seed) {
  std::mt19937 random(seed);
  Bytes out(size);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

ReadAt reader(const Bytes& bytes) {
  return [&bytes](u64 offset, std::span<std::byte> into) -> Result<std::size_t> {
    if (offset >= bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), bytes.size() - static_cast<std::size_t>(offset));
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
    return count;
  };
}

ChunkList chunks_of(const Bytes& bytes, Grain grain) {
  ChunkList list;
  const auto take = [&](u64, ByteView chunk) {
    list.push_back({name_of(chunk), narrow<u32>(chunk.size())});
    return true;
  };
  REQUIRE(for_each_chunk(reader(bytes), {{0, bytes.size()}}, grain, take));
  return list;
}

/// One of the things that a new version does to a file, somewhere.
void edit(Bytes& bytes, std::mt19937& random) {
  const std::size_t at = random() % (bytes.size() + 1);
  Bytes piece = random_bytes(1 + random() % 3000, static_cast<u32>(random()));
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 5) {
    case 4:  // the same new bytes twice
      piece = random_bytes(30'000, static_cast<u32>(random()));
      piece.insert(piece.end(), piece.begin(), piece.end());
      bytes.insert(here, piece.begin(), piece.end());
      break;
    case 0: bytes.insert(here, piece.begin(), piece.end()); break;
    case 1: bytes.erase(here, here + static_cast<std::ptrdiff_t>(std::min(piece.size(), bytes.size() - at))); break;
    case 2: std::copy_n(piece.begin(), std::min(piece.size(), bytes.size() - at), here); break;
    default: std::rotate(bytes.begin(), here, bytes.end()); break;
  }
}

/// Builds the file as a target would: what is not copied is taken from the wanted content itself, and counted.
Bytes rebuilt(const std::vector<Copy>& copies, const Bytes& base, const std::vector<u64>& boundaries, const Bytes& wanted, u64& literal) {
  Bytes out(wanted.size());
  for (const Copy& copy : copies) {
    if (copy.base == Copy::kOwn) continue;
    const u64 from = copy.by_chunk ? boundaries[static_cast<std::size_t>(copy.from)] : copy.from;
    std::copy_n(base.begin() + static_cast<std::ptrdiff_t>(from), copy.length, out.begin() + static_cast<std::ptrdiff_t>(copy.to));
  }
  for (const Range& range : left_over(copies, wanted.size())) {
    literal += range.length;
    std::copy_n(wanted.begin() + static_cast<std::ptrdiff_t>(range.offset), range.length, out.begin() + static_cast<std::ptrdiff_t>(range.offset));
  }
  for (const Copy& copy : copies)
    if (copy.base == Copy::kOwn)
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(copy.from), copy.length, out.begin() + static_cast<std::ptrdiff_t>(copy.to));
  return out;
}

}  // namespace

TEST_CASE("chunks are as long as their grain says, and together they are the file") {
  for (const Grain grain : {Grain::coarse, Grain::fine, Grain::finest}) {
    const Bytes bytes = random_bytes(3'000'000, 1);
    const ChunkList list = chunks_of(bytes, grain);
    const CutSizes sizes = sizes_of(grain);
    u64 sum = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      sum += list[i].length;
      CHECK(list[i].length <= sizes.max);
      if (i + 1 < list.size()) CHECK(list[i].length >= sizes.min);
    }
    CHECK(sum == bytes.size());
    const double mean = static_cast<double>(bytes.size()) / static_cast<double>(list.size());
    CHECK(mean > sizes.average * 0.7);
    CHECK(mean < sizes.average * 1.6);
  }
}

TEST_CASE("where chunks end is a promise between two builds of one version") {
  Bytes bytes(200'000);
  u32 state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  const ChunkList fine = chunks_of(bytes, Grain::fine), coarse = chunks_of(bytes, Grain::coarse);
  CHECK(coarse.size() == 3);
  CHECK(fine.size() == 175);
  CHECK(fine[0].length == 1336);
  CHECK(fine[1].length == 1037);
  CHECK(coarse[0].length == 83716);
}

TEST_CASE("zeros are cut at the greatest length") {
  const Bytes zeros(1'000'000);
  for (const Chunk& chunk : chunks_of(zeros, Grain::fine)) CHECK((chunk.length == 8192 || chunk.length == 1'000'000 % 8192));
}

TEST_CASE("an insertion changes the chunks near it only") {
  Bytes bytes = random_bytes(8'000'000, 2);
  const ChunkList before = chunks_of(bytes, Grain::coarse);
  bytes.insert(bytes.begin() + 4'000'000, std::byte{7});
  BaseIndex index({before});
  const auto copies = index.find(chunks_of(bytes, Grain::coarse), 0);
  CHECK(total(left_over(copies, bytes.size())) <= 2 * sizes_of(Grain::coarse).max);
  CHECK(copies.size() == 2);
}

TEST_CASE("a file that is shorter than its ranges gives what there is") {
  const Bytes bytes = random_bytes(1000, 3);
  u64 seen = 0;
  const auto take = [&](u64, ByteView chunk) {
    seen += chunk.size();
    return true;
  };
  REQUIRE(for_each_chunk(reader(bytes), {{0, 400}, {600, 5000}, {9000, 10}}, Grain::fine, take));
  CHECK(seen == 800);
}

TEST_CASE("after any edits two levels give the wanted file, and never more literals than it has bytes") {
  for (u32 seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const Bytes base = random_bytes(300'000 + random() % 700'000, seed + 1000);
    Bytes wanted = base;
    for (auto edits = random() % 20; edits > 0; --edits) edit(wanted, random);
    BaseIndex index({chunks_of(base, Grain::coarse)});
    const auto coarse = index.find(chunks_of(wanted, Grain::coarse), 0);
    std::vector<u64> names, boundaries;
    REQUIRE(for_each_chunk(reader(base), index.unused(0), Grain::finest, [&](u64 offset, ByteView chunk) {
      names.push_back(name_of(chunk));
      boundaries.push_back(offset);
      return true;
    }));
    const auto rest = left_over(coarse, wanted.size());
    const auto found = answer(reader(wanted), {{}, rest, names}, Grain::finest);
    REQUIRE(found);
    // Runs in `found` may cross from one unused range of the base into the next: a target copies chunk by chunk.
    std::vector<Found> single;
    for (const Found& run : *found) {
      u64 done = 0;
      REQUIRE(for_each_chunk(reader(wanted), {{run.to, run.length}}, Grain::finest, [&, number = run.from](u64, ByteView chunk) mutable {
        single.push_back({run.to + done, chunk.size(), run.is_own ? run.from + done : number++, run.is_own});
        done += chunk.size();
        return true;
      }));
    }
    u64 coarse_literal = 0, literal = 0;
    CHECK(rebuilt(coarse, base, boundaries, wanted, coarse_literal) == wanted);
    CHECK(rebuilt(merged(coarse, single, 0), base, boundaries, wanted, literal) == wanted);
    CHECK(literal <= coarse_literal);
    CHECK(coarse_literal <= wanted.size());
  }
}

TEST_CASE("any base may serve any file, its own first") {
  const Bytes a = random_bytes(2'000'000, 5), b = random_bytes(2'000'000, 6);
  const ChunkList of_a = chunks_of(a, Grain::coarse), of_b = chunks_of(b, Grain::coarse);
  BaseIndex index({of_a, of_b, of_a});
  CHECK(index.find(of_a, 2) == std::vector<Copy>{{0, a.size(), 2, false, 0}});
  CHECK(index.find(of_b, 0) == std::vector<Copy>{{0, b.size(), 1, false, 0}});
  CHECK(index.unused(0).empty());  // equal to what was taken of the third
  CHECK(index.unused(1).empty());
}

TEST_CASE("what an earlier run left out of a copy is cut from it") {
  const std::vector<Copy> copies{{0, 100, 0, false, 50}, {200, 50, 1, true, 7}, {300, 100, 0, false, 500}};
  CHECK(intersect(copies, {{10, 20}, {90, 130}, {350, 1000}}) ==
        std::vector<Copy>{{10, 20, 0, false, 60}, {90, 10, 0, false, 140}, {350, 50, 0, false, 550}});
  CHECK(intersect(copies, {{0, 1000}}) == copies);
}

TEST_CASE("what a file repeats of itself is found once") {
  const Bytes piece = random_bytes(100'000, 8);
  Bytes wanted = random_bytes(50'000, 9);
  for (int i = 0; i < 3; ++i) wanted.insert(wanted.end(), piece.begin(), piece.end());
  const auto found = answer(reader(wanted), {{}, {{0, wanted.size()}}, {}}, Grain::fine);
  REQUIRE(found);
  u64 repeated = 0;
  for (const Found& step : *found) {
    CHECK(step.is_own);
    CHECK(step.from + step.length <= step.to);
    CHECK(std::equal(wanted.begin() + static_cast<std::ptrdiff_t>(step.from), wanted.begin() + static_cast<std::ptrdiff_t>(step.from + step.length),
                     wanted.begin() + static_cast<std::ptrdiff_t>(step.to)));
    repeated += step.length;
  }
  CHECK(repeated > 180'000);
}

TEST_CASE("steps of a recipe that lie on others are left out") {
  const std::vector<Copy> copies{{100, 100, 0, false, 0}};
  CHECK(merged(copies, {{0, 50, 1}, {40, 10, 2}, {150, 10, 3}, {200, 10, 4}, {220, 10, 60, true}}, 9) ==
        std::vector<Copy>{{0, 50, 9, true, 1}, {100, 100, 0, false, 0}, {200, 10, 9, true, 4}, {220, 10, Copy::kOwn, false, 60}});
}
