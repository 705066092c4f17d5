// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "delta/rsync.hpp"

using namespace envsync;
using namespace envsync::delta;

namespace {

Bytes random_bytes(std::size_t size, u32 seed) {
  std::mt19937 random(seed);
  Bytes out(size);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

}  // namespace

TEST_CASE("a difference to a basis gives the content again, and is small where little changed") {
  for (u32 seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const Bytes basis = random_bytes(random() % 60'000, seed);
    Bytes content = basis;
    const Bytes piece = random_bytes(random() % 900, seed + 1000);
    const auto at = content.begin() + static_cast<std::ptrdiff_t>(random() % (content.size() + 1));
    content.insert(at, piece.begin(), piece.end());
    const auto made = difference(signature_of(basis), content);
    REQUIRE(made);
    CHECK(made->size() <= piece.size() + 2200);
    const auto whole = patched(basis, *made, content.size());
    REQUIRE(whole);
    CHECK(*whole == content);
  }
}

TEST_CASE("empty files, as basis and as content") {
  const Bytes some = random_bytes(1000, 1);
  CHECK(patched({}, difference(signature_of({}), some).value(), some.size()).value() == some);
  CHECK(patched(some, difference(signature_of(some), {}).value(), 0).value().empty());
}

TEST_CASE("another basis than the one that was summed up gives an error or other bytes, never more than announced") {
  const Bytes basis = random_bytes(20'000, 1), other = random_bytes(20'000, 2), shorter = random_bytes(3'000, 3);
  Bytes content = basis;
  content[10'000] ^= std::byte{1};
  const Bytes made = difference(signature_of(basis), content).value();
  CHECK(patched(other, made, content.size()).value() != content);
  CHECK_FALSE(patched(shorter, made, content.size()));
}

TEST_CASE("a difference gives exactly what was announced") {
  const Bytes basis = random_bytes(20'000, 1);
  const Bytes made = difference(signature_of(basis), basis).value();
  CHECK_FALSE(patched(basis, made, basis.size() - 1));
  CHECK_FALSE(patched(basis, made, basis.size() + 1));
  CHECK_FALSE(patched(basis, made, 0));
}

TEST_CASE("a difference that copies the basis for ever is stopped at what was announced") {
  const Bytes basis = random_bytes(10'000, 1);
  Bytes bomb = *from_hex("72730236");  // magic
  for (int i = 0; i < 100'000; ++i) {
    const Bytes copy = *from_hex("4a0000" "2710");  // RS_OP_COPY with an offset and a length of two bytes each
    bomb.insert(bomb.end(), copy.begin(), copy.end());
  }
  bomb.push_back(std::byte{0});
  CHECK_FALSE(patched(basis, bomb, basis.size()));
}

TEST_CASE("no damage to a signature or a difference does more than an error") {
  const Bytes basis = random_bytes(20'000, 1);
  Bytes content = basis;
  content.erase(content.begin() + 500, content.begin() + 1500);
  const Bytes signature = signature_of(basis), made = difference(signature, content).value();
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    Bytes bad = signature, bad_difference = made;
    bad[random() % bad.size()] = static_cast<std::byte>(random());
    bad_difference[random() % bad_difference.size()] = static_cast<std::byte>(random());
    if (i % 5 == 0) bad.resize(random() % bad.size());
    if (i % 7 == 0) bad_difference.resize(random() % bad_difference.size());
    (void)difference(bad, content);
    const auto whole = patched(basis, bad_difference, content.size());
    if (whole) CHECK(whole->size() == content.size());
  }
}

TEST_CASE("signatures of other kinds are refused before the library allocates for them") {
  Bytes signature = signature_of(random_bytes(5000, 1));
  for (const std::size_t at : {std::size_t{3}, std::size_t{4}, std::size_t{11}}) {
    Bytes bad = signature;
    bad[at] ^= std::byte{0x40};
    CHECK_FALSE(difference(bad, signature));
  }
  CHECK_FALSE(difference({}, signature));
}
