// SPDX-License-Identifier: MIT
#include "format/messages.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::format;

TEST_CASE("a sealed file has the bytes that the grammar gives") {
  const Bytes file = seal_file("EREC", 3, as_bytes("abc"));
  // magic, version, size, XXH3-64("abc") little-endian, payload
  CHECK(to_hex(file) == "45524543" "03000000" "0300000000000000" "50392f89945faf78" "616263");
  CHECK(as_text(open_file("EREC", 3, file).value()) == "abc");
}

TEST_CASE("an empty payload is sealed like any other") {
  CHECK(open_file("EREC", 1, seal_file("EREC", 1, {})).value().empty());
}

TEST_CASE("a sealed file that is damaged anywhere does not open") {
  const Bytes file = seal_file("EREC", 1, as_bytes("the payload of a record"));
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = file;
      flipped[at] ^= static_cast<std::byte>(1 << bit);
      const auto opened = open_file("EREC", 1, flipped);
      REQUIRE_FALSE(opened);
      CHECK(opened.error().code == ErrorCode::corrupt);
    }
    CHECK_FALSE(open_file("EREC", 1, ByteView(file).first(at)));
  }
  Bytes longer = file;
  longer.push_back(std::byte{0});
  CHECK_FALSE(open_file("EREC", 1, longer));
}

TEST_CASE("a sealed file of another kind or version says so") {
  const Bytes file = seal_file("EREC", 2, as_bytes("x"));
  CHECK(open_file("ECCH", 2, file).error().causes.at(0) == "it does not begin with 'ECCH'");
  CHECK(open_file("EREC", 1, file).error().causes.at(0) == "it has format version 2, this envsync reads version 1");
}
