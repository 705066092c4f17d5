// SPDX-License-Identifier: MIT
#include "base/bytes.hpp"

#include <doctest/doctest.h>

using namespace envsync;

TEST_CASE("base64 gives back every length of bytes and refuses what is not base64") {
  Bytes bytes;
  for (int i = 0; i < 70; ++i) {
    CHECK(from_base64(to_base64(bytes)) == bytes);
    bytes.push_back(static_cast<std::byte>(i * 37));
  }
  for (const char* bad : {"a", "ab=c", "====", "a===", "ab!=", "abc"}) CHECK_FALSE(from_base64(bad));
}

TEST_CASE("hex refuses odd lengths and letters beyond f") {
  CHECK(to_hex(as_bytes("\x01\xff")) == "01ff");
  CHECK_FALSE(from_hex("0"));
  CHECK_FALSE(from_hex("0g"));
}

TEST_CASE("a varint of more than 64 bits is refused") {
  for (const u64 value : {u64{0}, u64{127}, u64{128}, ~u64{0}}) {
    Bytes out;
    put_varint(out, value);
    ByteView in = out;
    CHECK(take_varint(in) == value);
    CHECK(in.empty());
  }
  Bytes over(9, std::byte{0xff});
  over.push_back(std::byte{2});
  ByteView in = over;
  CHECK_FALSE(take_varint(in));
}

TEST_CASE("a string longer than its bytes is refused") {
  Bytes out;
  put_varint(out, 5);
  out.push_back(std::byte{'a'});
  ByteView in = out;
  CHECK_FALSE(take_string(in));
}

TEST_CASE("names reach a terminal without control characters") {
  CHECK(printable("a\x1b[31m\n") == "a\\x1b[31m\\x0a");
  CHECK(printable("z\xc3\xbcrich") == "z\xc3\xbcrich");
  CHECK(printable("bad\xff\\") == "bad\\xff\\\\");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
}

TEST_CASE("sizes carry decimal units and three digits at most") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(4123456) == "4.1 MB");
  CHECK(human_bytes(10'900'000'000) == "11 GB");
  CHECK(human_bytes(999'900'000) == "1.0 GB");
}
