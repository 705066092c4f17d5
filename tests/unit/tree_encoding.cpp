// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "content/pack.hpp"
#include "support/tree_literal.hpp"
#include "tree/columns.hpp"
#include "tree/tree.hpp"

using namespace envsync;
using namespace envsync::tree;

namespace {

Tree sample() {
  const Tree plain = test::tree({"bin/python -> python3", "0755 bin/tool=x", "lib/a.py=A", "lib/b.py == lib/a.py", "lib/d/", "odd\n\xff=1"});
  std::vector<Entry> entries(plain.entries().begin(), plain.entries().end());
  entries[2].owner = {5, 6};
  entries[3].xattrs = {{"user.a", "1"}, {"user.b", std::string("\0\xff", 2)}};
  entries[3].mtime_ns = -5;
  return *Tree::from_sorted(std::move(entries));
}

bool same(const Tree& a, const Tree& b) { return std::ranges::equal(a.entries(), b.entries()); }

/// A tree of up to `size` entries, everything an entry can have among them.
Tree random_tree(std::mt19937& random, std::size_t size) {
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::map<std::string, Entry> entries{{"", test::entry("")}};
  std::vector<std::string> dirs{""};
  for (std::size_t i = 0; i < size; ++i) {
    const std::string& dir = dirs[pick(dirs.size())];
    const std::string name = std::string(1, "abc-./x"[pick(5)]) + std::to_string(pick(12));
    const std::string path = dir.empty() ? name : dir + "/" + name;
    if (entries.contains(path) || name[0] == '/') continue;
    Entry made;
    const std::string text(pick(3), 'x');
    switch (pick(5)) {
      case 0: made = test::entry(path + "/"); dirs.push_back(path); break;
      case 1: made = test::entry(path + " -> t" + text); break;
      default: made = test::entry(path + "=" + text);
    }
    if (pick(5) == 0) made.owner = {static_cast<u32>(pick(3)), static_cast<u32>(pick(3))};
    if (pick(5) == 0) made.xattrs = {{"user.k", text}};
    if (made.file() && pick(3) == 0) made.mtime_ns += static_cast<i64>(pick(1000)) - 500;
    if (File* file = std::get_if<File>(&made.body); file && pick(4) == 0) {
      // The first of each number gives all of them its metadata, as an inode does.
      const u32 group = static_cast<u32>(1 + pick(3));
      for (const auto& [_, other] : entries)
        if (other.file() && other.file()->link_group == group) { const RelPath own = made.path; made = other; made.path = own; break; }
      std::get<File>(made.body).link_group = group;
    }
    entries[path] = made;
  }
  std::vector<Entry> list;
  for (auto& [_, made] : entries) list.push_back(std::move(made));
  auto tree = Tree::from_unsorted(std::move(list));
  REQUIRE(tree);
  return std::move(*tree);
}

/// A changed copy: entries lost, added and changed.
Tree mutated(std::mt19937& random, const Tree& tree) {
  std::vector<Entry> entries;
  for (const Entry& entry : tree.entries()) {
    const auto roll = random() % 12;
    const bool is_kept = entry.path.is_root() || entry.is_dir() || roll != 0;
    if (!is_kept) continue;
    entries.push_back(entry);
    if (roll == 1 && entry.symlink()) entries.back().body = Symlink{"elsewhere"};
    if (roll == 2 && entry.file() && entry.file()->link_group == 0) entries.back().mode ^= 0111;
    if (roll == 3 && entry.file()) std::get<File>(entries.back().body).link_group = 0;
    if (roll == 4 && entry.is_dir() && !entry.path.is_root()) entries.back().owner.uid += 1;
  }
  entries.push_back(test::entry("added" + std::to_string(random() % 3) + "=new"));
  auto changed = Tree::from_unsorted(std::move(entries));
  REQUIRE(changed);
  return std::move(*changed);
}

}  // namespace

TEST_CASE("the columns of a tree are what their grammar says") {
  Bytes columns;
  const Tree tree = test::tree({"a/b=x", "a/c -> d"});
  put_columns(columns, tree.entries());
  CHECK(to_hex(columns) ==
        "04" "0000" "000161" "01022f62" "020163"         // paths: "", "a", "a" + "/b", "a/" + "c"
        "00000102" "ed03ed03a40300" "01"                // types, modes, size
        "5c7401c0ec22eeeeeaf06c6480b2cd11" "00"          // digest of "x", group
        "aab4aed8c7bfce972f" "0164" "00000000" "00000000");
}

TEST_CASE("a difference is what its grammar says") {
  const Bytes encoded = encode_delta(make_delta(test::tree({"a=1", "b=2"}), test::tree({"a=1", "c=2"})));
  CHECK(as_text(encoded).substr(0, 4) == "ED1\n");
  CHECK(to_hex(*content::decompress(ByteView(encoded).subspan(4), 1000)) ==
        "ef81728cd98c0bba38430180d96f9574" "ee22219e0b442ba908d78d90ff23780b"  // full digests of base and result
        "01" "000163" "01" "a403" "01" "cb358fcee0dfde56fb95a7322f5da314" "00" "aab4aed8c7bfce972f" "00" "00"
        "01" "000162");
}

TEST_CASE("a tree encoded by the first version decodes for ever") {
  const Bytes frozen = *from_hex("4554310a28b52ffd203de9010004000000016101022f6202016300000102ed03ed03a40300015c7401c0ec22eeeeeaf06c6480b2cd1100aab4aed8c7bfce972f01640000000000000000");
  CHECK(same(*decode_tree(frozen), test::tree({"a/b=x", "a/c -> d"})));
}

TEST_CASE("a tree comes back from its bytes, entry for entry") {
  const Tree tree = sample();
  const auto back = decode_tree(encode_tree(tree));
  REQUIRE(back);
  CHECK(same(*back, tree));
  CHECK(decode_tree(encode_tree(Tree{}))->is_absent());
}

TEST_CASE("a difference comes back from its bytes") {
  const TreeDelta delta = make_delta(test::tree({"a=1", "b=2", "c/d=4"}), sample());
  const auto back = decode_delta(encode_delta(delta));
  REQUIRE(back);
  CHECK(back->base == delta.base);
  CHECK(back->result == delta.result);
  CHECK(back->put == delta.put);
  CHECK(back->gone == delta.gone);
}

TEST_CASE("for random trees: the difference leads from one to the other, and is empty if and only if the roots are equal") {
  std::mt19937 random(20'240'101);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Tree from = random_tree(random, 1 + random() % 60);
    const Tree to = random() % 2 ? mutated(random, from) : random() % 2 ? from : random_tree(random, 1 + random() % 60);
    const auto back = decode_tree(encode_tree(to));
    REQUIRE(back);
    CHECK(same(*back, to));
    const auto delta = decode_delta(encode_delta(make_delta(from, to)));
    REQUIRE(delta);
    const auto applied = apply_delta(from, *delta);
    REQUIRE(applied);
    CHECK(same(*applied, to));
    for (u8 bits = 0; bits < 32; ++bits) {
      const ComparePolicy policy = *ComparePolicy::from_bits(bits);
      CHECK(diff(from, to, policy).empty() == (from.root(policy) == to.root(policy)));
    }
    CHECK((from.full() == to.full()) == same(from, to));
  }
}

TEST_CASE("entries in any order give the same tree") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const Tree tree = random_tree(random, 40);
    std::vector<Entry> entries(tree.entries().begin(), tree.entries().end());
    std::shuffle(entries.begin(), entries.end(), random);
    CHECK(same(*Tree::from_unsorted(std::move(entries)), tree));
  }
}

TEST_CASE("an encoded tree or difference with any byte changed, cut or added never becomes a broken tree") {
  const auto columns_of = [](ByteView bytes) { return *content::decompress(bytes.subspan(4), 1u << 20); };
  const auto wrapped = [](std::string_view magic, ByteView columns) {
    Bytes out(as_bytes(magic).begin(), as_bytes(magic).end());
    const Bytes packed = content::compress(columns, 1);
    out.insert(out.end(), packed.begin(), packed.end());
    return out;
  };
  const Bytes tree = encode_tree(sample());
  const Bytes delta = encode_delta(make_delta(test::tree({"a=1", "c/d=4"}), sample()));
  const auto try_all = [&](std::string_view magic, const Bytes& good, auto decode) {
    std::size_t refused = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (const u8 flip : {u8{1}, u8{0x80}, u8{0xff}}) {
        Bytes bad = good;
        bad[i] ^= std::byte{flip};
        if (!decode(magic.empty() ? bad : wrapped(magic, bad))) ++refused;
      }
      const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_FALSE(decode(magic.empty() ? cut : wrapped(magic, cut)));
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode(magic.empty() ? longer : wrapped(magic, longer)));
    CHECK(refused > 0);
  };
  const auto is_tree = [](const Bytes& bytes) {
    const auto decoded = decode_tree(bytes);
    // Whatever is taken for a tree keeps the promises of one.
    if (decoded) CHECK(Tree::from_sorted({decoded->entries().begin(), decoded->entries().end()}));
    return decoded.has_value();
  };
  const auto is_delta = [](const Bytes& bytes) { return decode_delta(bytes).has_value(); };
  try_all("", tree, is_tree);
  try_all("", delta, is_delta);
  try_all("ET1\n", columns_of(tree), is_tree);
  try_all("ED1\n", columns_of(delta), is_delta);
}

TEST_CASE("paths that grow from few bytes into more than a tree may have are refused") {
  // Each path repeats the one before and adds a byte: two bytes each, but 16,384 in memory.
  Bytes columns;
  constexpr u64 kCount = 40'000;
  put_varint(columns, kCount);
  std::string path;
  while (path.size() < kPathBytesMax - 2) path += path.size() % 2 ? '/' : 'x';
  put_varint(columns, 0);
  put_string(columns, path.substr(0, path.size() - 1));
  for (u64 i = 1; i < kCount; ++i) {
    put_varint(columns, path.size() - 1);
    put_string(columns, "");
  }
  columns.resize(columns.size() + kCount * 4);
  ByteView in = columns;
  const auto entries = take_columns(in);
  REQUIRE_FALSE(entries);
  CHECK(entries.error().what.find("more bytes of paths") != std::string::npos);
}
