// SPDX-License-Identifier: MIT
#include "base/sha256.hpp"

#include <doctest/doctest.h>

using namespace envsync;

TEST_CASE("sha256 gives the sums of FIPS 180-4, of short texts and of a million letters") {
  CHECK(to_hex(sha256(as_bytes(""))) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(to_hex(sha256(as_bytes("abc"))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(to_hex(sha256(as_bytes(std::string(1'000'000, 'a')))) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 of a text in parts is that of the whole, wherever it is cut") {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i));
  for (std::size_t cut = 0; cut <= text.size(); cut += 7) {
    Sha256Hasher hasher;
    hasher.update(as_bytes(text.substr(0, cut)));
    hasher.update({});
    hasher.update(as_bytes(text.substr(cut)));
    CHECK(hasher.finish() == sha256(as_bytes(text)));
  }
}
