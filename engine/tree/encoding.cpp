// SPDX-License-Identifier: MIT
// Trees and differences as bytes.
//
//   tree  := "ET1\n" zstd( columns )
//   delta := "ED1\n" zstd( base:16 result:16 columns(put) paths(gone) )     -- put and gone ascending by path
//
// columns and paths: tree/columns.cpp. zstd: one frame with its content size. Nothing follows either.
#include <algorithm>

#include <fmt/format.h>

#include "content/pack.hpp"
#include "tree/columns.hpp"
#include "tree/tree.hpp"

namespace envsync::tree {

namespace {

constexpr std::string_view kTreeMagic = "ET1\n", kDeltaMagic = "ED1\n";
constexpr std::size_t kDecodedMax = 1u << 30;
// Digests do not compress and are half of a tree: higher levels cost time and save next to nothing.
constexpr int kLevel = 3;

Error bad(std::string_view why) { return Error(ErrorCode::corrupt, fmt::format("an encoded tree that is not valid: {}", why)); }

Bytes wrap(std::string_view magic, ByteView payload) {
  const ByteView head = as_bytes(magic);
  const Bytes packed = content::compress(payload, kLevel);
  Bytes out;
  out.reserve(head.size() + packed.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), packed.begin(), packed.end());
  return out;
}

Result<Bytes> unwrap(std::string_view magic, ByteView bytes) {
  if (!as_text(bytes).starts_with(magic)) return bad("no magic");
  return content::decompress(bytes.subspan(magic.size()), kDecodedMax);
}

Result<Digest> take_digest(ByteView& in) {
  Digest digest;
  if (in.size() < digest.bytes.size()) return bad("a digest cut short");
  std::ranges::copy(in.first(digest.bytes.size()), digest.bytes.begin());
  in = in.subspan(digest.bytes.size());
  return digest;
}

}  // namespace

Bytes encode_tree(const Tree& tree) {
  Bytes columns;
  columns.reserve(tree.entries().size() * 80);
  put_columns(columns, tree.entries());
  return wrap(kTreeMagic, columns);
}

Result<Tree> decode_tree(ByteView bytes) {
  TRY(const Bytes columns, unwrap(kTreeMagic, bytes));
  ByteView in = columns;
  TRY(auto entries, take_columns(in));
  if (!in.empty()) return bad("bytes after its end");
  return Tree::from_sorted(std::move(entries));
}

Bytes encode_delta(const TreeDelta& delta) {
  Bytes payload;
  payload.reserve(64 + delta.put.size() * 80);
  for (const Digest& digest : {delta.base, delta.result}) payload.insert(payload.end(), digest.bytes.begin(), digest.bytes.end());
  put_columns(payload, delta.put);
  put_paths(payload, delta.gone);
  return wrap(kDeltaMagic, payload);
}

Result<TreeDelta> decode_delta(ByteView bytes) {
  TRY(const Bytes payload, unwrap(kDeltaMagic, bytes));
  ByteView in = payload;
  TreeDelta delta;
  TRY(delta.base, take_digest(in));
  TRY(delta.result, take_digest(in));
  TRY(delta.put, take_columns(in));
  TRY(delta.gone, take_paths(in));
  if (!in.empty()) return bad("bytes after its end");
  const auto repeats_put = [](const Entry& a, const Entry& b) { return !(a.path < b.path); };
  const auto repeats_gone = [](const RelPath& a, const RelPath& b) { return !(a < b); };
  if (std::ranges::adjacent_find(delta.put, repeats_put) != delta.put.end()) return bad("entries that are not in order");
  if (std::ranges::adjacent_find(delta.gone, repeats_gone) != delta.gone.end()) return bad("paths that are not in order");
  return delta;
}

}  // namespace envsync::tree
