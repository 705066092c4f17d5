// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "store/record.hpp"
#include "support/store_env.hpp"

using namespace envsync;
using namespace envsync::testing;
using store::RecordHead;

namespace {

RecordHead head(const tree::Tree& tree) {
  RecordHead h;
  h.policy.mtime = true;
  h.root = tree.root(h.policy);
  h.full = tree.full();
  h.exclude = {"*.log", "/data/"};
  h.bytecode = tree::Bytecode::ship;
  h.run = "20240102T030405.000000Z-0badcafe";
  h.plan_digest = "00ff";
  h.committed_at = 1'700'000'000;
  h.operator_name = "me@here";
  h.manifest = "envsync.yaml";
  h.name = "venv";
  h.source = "ct200";
  h.restores = 3;
  h.undoes = "20240101T030405.000000Z-0badcafe";
  h.files = 2;
  h.bytes = 6;
  return h;
}

}  // namespace

TEST_CASE("record: head and tree survive their bytes") {
  const tree::Tree tree = test::tree({"a=one", "b/c=two", "d -> a"});
  const Bytes file = encode_record_file(head(tree), tree);
  const auto record = store::decode_record_file(8, file);
  REQUIRE(record);
  CHECK(record->head.number == 8);
  CHECK(record->head.exclude == std::vector<std::string>{"*.log", "/data/"});
  CHECK(record->head.bytecode == tree::Bytecode::ship);
  CHECK(record->head.policy == head(tree).policy);
  CHECK(record->head.restores == 3u);
  CHECK(record->head.undoes == head(tree).undoes);
  CHECK(record->head.source == "ct200");
  CHECK(record->head.committed_at == 1'700'000'000);
  CHECK_FALSE(record->head.adopted);
  CHECK(record->tree.full() == tree.full());
  CHECK(store::decode_record_head(8, file)->root == head(tree).root);
}

TEST_CASE("record: what overlays were laid onto is kept beside the tree, and only where the head names it") {
  const tree::Tree tree = test::tree({"a=one", "b/new=two"}), ground = test::tree({"a=one", "b/old=three"});
  RecordHead with = head(tree);
  with.ground = ground.full();
  const auto record = store::decode_record_file(8, encode_record_file(with, tree, &ground));
  REQUIRE(record);
  REQUIRE(record->ground);
  CHECK(record->ground->full() == ground.full());
  CHECK(record->tree.full() == tree.full());
  CHECK_FALSE(store::decode_record_file(8, encode_record_file(head(tree), tree))->ground);
  with.ground = tree.full();
  CHECK(told(store::decode_record_file(8, encode_record_file(with, tree, &ground))).find("its ground is not the one that its head names") != std::string::npos);
}

TEST_CASE("record: no cut and no flipped byte of it decodes") {
  const tree::Tree tree = test::tree({"a=one", "b/c=two"}), ground = test::tree({"a=one"});
  RecordHead whole = head(tree);
  whole.ground = ground.full();
  const Bytes file = encode_record_file(whole, tree, &ground);
  for (std::size_t size = 0; size < file.size(); ++size) CHECK_FALSE(store::decode_record_file(1, ByteView(file).first(size)));
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes bytes = file;
    bytes[at] ^= std::byte{0x20};
    const auto record = store::decode_record_file(1, bytes);
    REQUIRE_FALSE(record);
    CHECK(record.error().code == ErrorCode::corrupt);
  }
}

TEST_CASE("record: a head whose checksum is right and whose fields are not is refused") {
  const tree::Tree tree = test::tree({"a=one"});
  RecordHead other = head(tree);
  other.full = test::tree({"a=two"}).full();
  CHECK(told(store::decode_record_file(4, encode_record_file(other, tree))) ==
        "corrupt: the record of generation 4 does not decode: its tree is not the one that its head names");
}
