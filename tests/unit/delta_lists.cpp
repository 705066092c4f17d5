// SPDX-License-Identifier: MIT
// Lists as a peer sends them: whole ones come back as they were, and no damage makes more than an error.
#include <doctest/doctest.h>

#include <random>

#include "content/pack.hpp"
#include "delta/lists.hpp"

using namespace envsync;
using namespace envsync::delta;

namespace {

tree::RelPath path(const char* text) { return tree::RelPath::parse(text).value(); }
Bytes bytes_of(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }
Bytes packed(std::string_view hex) { return content::compress(from_hex(hex).value(), 1); }

const std::vector<FileRanges> kFiles{{path("lib/a.so"), {{0, 10}, {20, 1u << 20}}}, {path("b"), {}}};
const std::vector<ChunkList> kChunks{{{1, 16384}, {0xffffffffffff, 262144}}, {}, {{7, 1}}};
const std::vector<Question> kQuestions{{path("lib/a.so"), {{5, 5}}, {1, 0xffffffffffff}}, {path("b"), {}, {}}};
const std::vector<std::vector<Found>> kRecipes{{{0, 10, 5, false}, {10, 600, 1'000'000'000'000, true}, {5000, 1, 0, false}}, {}};
const CopyPlan kCopies{{path("old/a.so"), path("old/b.so")},
                       {{7, {{0, 100, 1, false, 1u << 30}, {100, 50, 0, true, 12}, {400, 8, Copy::kOwn, false, 3}}}, {3, {}}}};
const std::vector<Named> kNamed{{4'000'000'000, path("a.py"), bytes_of("xyz")}, {0, path("b/c"), {}}};

}  // namespace

TEST_CASE("lists come back as they were") {
  CHECK(decode_files(encode_files(kFiles)).value() == kFiles);
  CHECK(decode_chunks(encode_chunks(kChunks, true), true).value() == kChunks);
  CHECK(decode_questions(encode_questions(kQuestions)).value() == kQuestions);
  CHECK(decode_recipes(encode_recipes(kRecipes)).value() == kRecipes);
  CHECK(decode_copies(encode_copies(kCopies)).value() == kCopies);
  CHECK(decode_named(encode_named(kNamed, 1)).value() == kNamed);
  CHECK(decode_strings(encode_strings({bytes_of("a"), {}}, 1)).value() == std::vector<Bytes>{bytes_of("a"), {}});
  const auto fine = decode_chunks(encode_chunks(kChunks, false), false).value();
  CHECK((fine[0][1].name == 0xffffffffffff && fine[0][1].length == 0));
}

TEST_CASE("lists that do not hold together are refused") {
  CHECK(decode_files(packed("01" "0161" "01" "0001")));
  CHECK_FALSE(decode_files(as_bytes("not zstd")));
  CHECK_FALSE(decode_files(packed("01" "022e2e" "00")));                          // ".."
  CHECK_FALSE(decode_files(packed("01" "022f61" "00")));                          // absolute
  CHECK_FALSE(decode_files(packed("01" "00" "0000")));                            // the root
  CHECK_FALSE(decode_files(packed("01" "0161" "01" "0000")));                     // an empty range
  CHECK_FALSE(decode_files(packed("01" "0161" "02" "0001")));                     // a range is missing
  CHECK_FALSE(decode_files(packed("01" "0161" "02" "ffffffffffffffff3f01" "ffffffffffffffff3f01")));  // beyond every file
  CHECK_FALSE(decode_files(packed("01" "0161" "ffffff7f" "0001")));               // more ranges than bytes
  CHECK_FALSE(decode_files(packed("ffffffffffffffffff01" "0161" "00")));
  CHECK_FALSE(decode_files(packed("01" "0161" "00" "00")));                       // a byte too many
  CHECK_FALSE(decode_chunks(packed("01" "01" "00" "000000000000"), true));        // no length
  CHECK_FALSE(decode_chunks(packed("01" "01" "818010" "000000000000"), true));    // longer than any chunk
  CHECK_FALSE(decode_chunks(packed("01" "01" "01" "0000000000"), true));          // a name is cut
  CHECK_FALSE(decode_recipes(packed("01" "01" "00010200")));                      // a kind that there is not
  CHECK_FALSE(decode_recipes(packed("01" "01" "00010001")));                      // from before the first chunk
  CHECK_FALSE(decode_copies(packed("01" "0161" "01" "0001" "00010300")));         // a base that was not named
  CHECK(decode_copies(packed("01" "0161" "01" "0001" "00010200")));               // the file itself
  CHECK_FALSE(decode_copies(packed("01" "0161" "01" "0001" "00010001")));         // from before the begin
}

TEST_CASE("more names than are allowed are refused before they are taken") {
  Bytes plain;
  put_varint(plain, 1);
  put_varint(plain, kNamesMax + 1);
  plain.resize(plain.size() + 6 * (kNamesMax + 1));
  CHECK_FALSE(decode_chunks(content::compress(plain, 1), false));
}

TEST_CASE("no damage to a list does more than an error") {
  std::mt19937 random(1);
  const std::vector<Bytes> lists{encode_files(kFiles), encode_chunks(kChunks, true), encode_questions(kQuestions), encode_recipes(kRecipes), encode_copies(kCopies), encode_named(kNamed, 1)};
  std::size_t refused = 0;
  for (const Bytes& list : lists) {
    const Bytes plain = content::decompress(list, kListBytesMax).value();
    for (int i = 0; i < 2000; ++i) {
      Bytes bad = plain;
      bad[random() % bad.size()] = static_cast<std::byte>(random());
      if (i % 3 == 0) bad.resize(random() % bad.size());
      const Bytes sent = content::compress(bad, 1);
      refused += !decode_files(sent) + !decode_chunks(sent, true) + !decode_chunks(sent, false) + !decode_questions(sent) + !decode_recipes(sent) +
                 !decode_copies(sent) + !decode_named(sent) + !decode_strings(sent);
    }
  }
  CHECK(refused > 50'000);
}
