// SPDX-License-Identifier: MIT
#include "store/record.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "format/messages.hpp"
#include "store/layout.hpp"

namespace envsync::store {
namespace {

constexpr std::string_view kMagic = "EVRC";
constexpr u32 kVersion = 1;
constexpr std::size_t kExcludesMax = 10'000;  // LIMIT: as Exclude::parse takes

enum Flag : u8 { kAdopted = 1, kRestores = 2, kGround = 4 };

void put_digest(Bytes& out, const content::Digest& digest) { out.insert(out.end(), digest.bytes.begin(), digest.bytes.end()); }

Bytes encode_head(const RecordHead& h) {
  Bytes out;
  put_digest(out, h.root);
  put_digest(out, h.full);
  put_le(out, h.policy.bits());
  put_le(out, static_cast<u8>(h.bytecode));
  put_le(out, static_cast<u8>((h.adopted ? kAdopted : 0) | (h.restores ? kRestores : 0) | (h.ground.is_zero() ? 0 : kGround)));
  put_le(out, h.restores.value_or(0));
  put_le(out, static_cast<u64>(h.committed_at));
  put_le(out, h.files);
  put_le(out, h.bytes);
  for (const std::string* text : {&h.run, &h.plan_digest, &h.operator_name, &h.manifest, &h.name, &h.source, &h.undoes})
    put_string(out, *text);
  put_varint(out, h.exclude.size());
  for (const std::string& pattern : h.exclude) put_string(out, pattern);
  if (!h.ground.is_zero()) put_digest(out, h.ground);
  return out;
}

/// Takes fields until one is missing; then `failed`.
struct HeadReader {
  ByteView in;
  bool failed = false;

  template <class T>
  T integer() {
    const auto value = take_le<T>(in);
    failed = failed || !value;
    return value.value_or(0);
  }
  std::string text() {
    const auto value = take_string(in);
    failed = failed || !value;
    return std::string(value.value_or(std::string_view()));
  }
  content::Digest digest() {
    content::Digest digest;
    failed = failed || in.size() < digest.bytes.size();
    if (failed) return digest;
    std::copy_n(in.begin(), digest.bytes.size(), digest.bytes.begin());
    in = in.subspan(digest.bytes.size());
    return digest;
  }
};

std::optional<RecordHead> decode_head(u32 number, ByteView bytes) {
  HeadReader reader{bytes};
  RecordHead h;
  h.number = number;
  h.root = reader.digest();
  h.full = reader.digest();
  const auto policy = tree::ComparePolicy::from_bits(reader.integer<u8>());
  const u8 bytecode = reader.integer<u8>(), flags = reader.integer<u8>();
  const u32 restores = reader.integer<u32>();
  h.committed_at = static_cast<i64>(reader.integer<u64>());
  h.files = reader.integer<u64>();
  h.bytes = reader.integer<u64>();
  for (std::string* text : {&h.run, &h.plan_digest, &h.operator_name, &h.manifest, &h.name, &h.source, &h.undoes}) *text = reader.text();
  const u64 excludes = take_varint(reader.in).value_or(kExcludesMax + 1);
  if (reader.failed || !policy || bytecode > static_cast<u8>(tree::Bytecode::ship) || excludes > kExcludesMax) return std::nullopt;
  for (u64 i = 0; i < excludes; ++i) h.exclude.push_back(reader.text());
  if (flags & kGround) h.ground = reader.digest();
  const bool has_ground = !h.ground.is_zero();
  if (reader.failed || !reader.in.empty() || flags > (kAdopted | kRestores | kGround) || has_ground != ((flags & kGround) != 0)) return std::nullopt;
  h.policy = *policy;
  h.bytecode = static_cast<tree::Bytecode>(bytecode);
  h.adopted = flags & kAdopted;
  if (flags & kRestores) h.restores = restores;
  return h;
}

Error bad_record(u32 number, std::string why) {
  return Error(ErrorCode::corrupt, fmt::format("the record of generation {} does not decode", number)).cause(std::move(why));
}

struct Parts { RecordHead head; Bytes payload; std::size_t tree_at; };

Result<Parts> open_record(u32 number, ByteView file) {
  auto payload = format::open_file(kMagic, kVersion, file);
  if (!payload) return bad_record(number, payload.error().causes.empty() ? payload.error().what : payload.error().causes.front());
  ByteView in = *payload;
  const auto size = take_le<u32>(in);
  if (!size || *size > in.size()) return bad_record(number, "its head is cut");
  auto head = decode_head(number, in.first(*size));
  if (!head) return bad_record(number, "its head is not of this version");
  return Parts{std::move(*head), std::move(*payload), sizeof(u32) + *size};
}

}  // namespace

Bytes encode_record_file(const RecordHead& head, const tree::Tree& tree, const tree::Tree* ground) {
  const Bytes head_bytes = encode_head(head);
  const Bytes tree_bytes = tree::encode_tree(tree);
  Bytes payload;
  payload.reserve(sizeof(u32) + head_bytes.size() + tree_bytes.size());
  put_le(payload, narrow<u32>(head_bytes.size()));
  payload.insert(payload.end(), head_bytes.begin(), head_bytes.end());
  if (ground != nullptr) {
    const Bytes delta = tree::encode_delta(tree::make_delta(tree, *ground));
    put_le(payload, static_cast<u64>(delta.size()));
    payload.insert(payload.end(), delta.begin(), delta.end());
  }
  payload.insert(payload.end(), tree_bytes.begin(), tree_bytes.end());
  return format::seal_file(kMagic, kVersion, payload);
}

Result<RecordHead> decode_record_head(u32 number, ByteView file) {
  TRY(Parts parts, open_record(number, file));
  return std::move(parts.head);
}

Result<Record> decode_record_file(u32 number, ByteView file) {
  TRY(Parts parts, open_record(number, file));
  ByteView in = ByteView(parts.payload).subspan(parts.tree_at);
  ByteView delta;
  if (!parts.head.ground.is_zero()) {
    const auto size = take_le<u64>(in);
    if (!size || *size > in.size()) return bad_record(number, "its ground is cut");
    delta = in.first(static_cast<std::size_t>(*size));
    in = in.subspan(delta.size());
  }
  auto tree = tree::decode_tree(in);
  if (!tree) return bad_record(number, tree.error().what);
  if (tree->full() != parts.head.full) return bad_record(number, "its tree is not the one that its head names");
  Record record{std::move(parts.head), std::move(*tree), std::nullopt};
  if (record.head.ground.is_zero()) return record;
  const auto difference = tree::decode_delta(delta);
  auto ground = difference ? tree::apply_delta(record.tree, *difference) : Result<tree::Tree>(difference.error());
  if (!ground) return bad_record(number, ground.error().what);
  if (ground->full() != record.head.ground) return bad_record(number, "its ground is not the one that its head names");
  record.ground = std::move(*ground);
  return record;
}

Result<void> write_record(os::Files& files, int at, const std::string& rel, const RecordHead& head, const tree::Tree& tree, const tree::Tree* ground) {
  const Bytes bytes = encode_record_file(head, tree, ground);
  TRY(const os::Fd file, files.create(at, rel, 0600));
  TRY_STATUS(files.write_at(file.get(), 0, bytes, rel));
  return files.fsync(file.get(), rel);
}

Result<Record> read_record(int at, const std::string& rel, u32 number) {
  TRY(const std::string text, os::read_small(at, rel, kRecordBytesMax));
  return decode_record_file(number, as_bytes(text));
}

Result<std::vector<u32>> record_numbers(int state) {
  std::vector<u32> numbers;
  TRY(const auto stat, os::stat_if_exists(state, kRecordsDir));
  if (!stat) return numbers;  // the making of the state folder was cut short
  TRY(const os::Fd dir, os::open_dir(state, kRecordsDir));
  TRY(const auto entries, os::list(dir.get(), kRecordsDir));
  for (const auto& entry : entries) {
    u32 number = 0;
    const char* end = entry.name.data() + entry.name.size();
    const auto parsed = std::from_chars(entry.name.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || fmt::format("{}", number) != entry.name)
      continue;  // no record: left alone, as a damaged one that somebody moved aside
    numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace envsync::store
