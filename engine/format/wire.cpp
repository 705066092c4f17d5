// SPDX-License-Identifier: MIT
#include "format/wire.hpp"

#include <cmath>

#include "content/pack.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace envsync::format {
namespace {

constexpr int kListLevel = 1;
constexpr u64 kZigzagMax = u64{1} << 33;  // of any difference of two u32

u64 zigzag(i64 value) { return (static_cast<u64>(value) << 1) ^ static_cast<u64>(value >> 63); }
i64 unzigzag(u64 value) { return static_cast<i64>(value >> 1) ^ -static_cast<i64>(value & 1); }

bool has_nul(std::string_view bytes) { return bytes.find('\0') != std::string_view::npos; }

}  // namespace

std::string encode_strings(const std::vector<std::string>& strings) {
  Bytes out;
  put_varint(out, strings.size());
  for (const std::string& s : strings) put_string(out, s);
  return std::string(as_text(out));
}

std::string encode_numbers(const std::vector<u32>& numbers) {
  Bytes out;
  put_varint(out, numbers.size());
  i64 before = 0;
  for (const u32 n : numbers) put_number(out, before, n);
  return std::string(as_text(out));
}

void put_number(Bytes& out, i64& before, u32 number) {
  put_varint(out, zigzag(i64{number} - before));
  before = number;
}

std::optional<u32> take_number(ByteView& in, i64& before) {
  const auto coded = take_varint(in);
  // Bounded first, so that the sum cannot overflow.
  if (!coded || *coded > kZigzagMax) return std::nullopt;
  before += unzigzag(*coded);
  if (!std::in_range<u32>(before)) return std::nullopt;
  return static_cast<u32>(before);
}

std::string encode_paths(const std::vector<std::string>& paths) {
  Bytes out;
  put_varint(out, paths.size());
  std::string_view before;
  for (const std::string& path : paths) {
    put_path(out, before, path);
    before = path;
  }
  return std::string(as_text(content::compress(out, kListLevel)));
}

void put_path(Bytes& out, std::string_view before, std::string_view path) {
  const auto differs = std::mismatch(before.begin(), before.end(), path.begin(), path.end());
  const auto shared = static_cast<std::size_t>(differs.first - before.begin());
  put_varint(out, shared);
  put_string(out, path.substr(shared));
}

std::optional<std::string> take_path(ByteView& in, std::string_view before, std::size_t& budget) {
  const auto shared = take_varint(in);
  if (!shared || *shared > before.size()) return std::nullopt;
  const auto rest = take_string(in);
  if (!rest) return std::nullopt;
  const std::size_t size = static_cast<std::size_t>(*shared) + rest->size();
  if (size > tree::kPathBytesMax || size > budget) return std::nullopt;
  budget -= size;
  std::string path;
  path.reserve(size);
  path.append(before.substr(0, static_cast<std::size_t>(*shared))).append(*rest);
  return path;
}

void Door::refuse(std::string_view field, std::string_view why) {
  if (refusal_.empty()) refusal_ = fmt::format("its field '{}' {}", field, why);
}

Result<void> Door::verdict(std::string_view message) const {
  if (refusal_.empty()) return ok();
  return no_message(message, refusal_);
}

Error no_message(std::string_view message, std::string_view why) {
  return Error(ErrorCode::protocol, fmt::format("the other side sent {} that cannot be read", message)).cause(std::string(why));
}

std::string Door::text(std::string_view bytes, std::string_view field, std::size_t max) {
  if (bytes.size() <= max) return std::string(bytes);
  refuse(field, fmt::format("has {} bytes, at most {} are allowed", bytes.size(), max));
  return {};
}

std::string Door::absolute(std::string_view bytes, std::string_view field) {
  if (bytes.size() > tree::kPathBytesMax || has_nul(bytes) || !(bytes.starts_with('/') || bytes.starts_with("~/"))) {
    refuse(field, "is no absolute path");
    return {};
  }
  return std::string(bytes);
}

std::string Door::absolute_or_empty(std::string_view bytes, std::string_view field) {
  return bytes.empty() ? std::string() : absolute(bytes, field);
}

tree::RelPath Door::relative(std::string_view bytes, std::string_view field) {
  if (bytes.size() <= tree::kPathBytesMax) {
    if (auto path = tree::RelPath::parse(std::string(bytes))) return *std::move(path);
  }
  refuse(field, "is no path beneath a root");
  return {};
}

tree::ComparePolicy Door::policy(u32 bits) {
  const auto policy = bits <= 0xff ? tree::ComparePolicy::from_bits(static_cast<u8>(bits)) : std::nullopt;
  if (!policy) refuse("policy", "is no value of its kind");
  return policy.value_or(tree::ComparePolicy{});
}

Digest Door::digest(std::string_view bytes, std::string_view field) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) return refuse(field, "is no digest"), digest;
  std::ranges::copy(as_bytes(bytes), digest.bytes.begin());
  return digest;
}

std::vector<Digest> Door::digests(std::string_view bytes, std::size_t max, std::string_view field) {
  constexpr std::size_t kSize = sizeof(Digest::bytes);
  if (bytes.size() % kSize != 0 || bytes.size() / kSize > max) return refuse(field, "is no list of digests"), std::vector<Digest>{};
  std::vector<Digest> out;
  for (; !bytes.empty(); bytes.remove_prefix(kSize)) out.push_back(digest(bytes.substr(0, kSize), field));
  return out;
}

double Door::seconds(double value, std::string_view field) {
  if (std::isfinite(value) && value >= 0) return value;
  refuse(field, "is no duration");
  return 0;
}

std::vector<std::string> Door::strings(std::string_view bytes, std::string_view field, std::size_t max, std::size_t text_max) {
  ByteView in = as_bytes(bytes);
  std::vector<std::string> out;
  if (in.empty()) return out;
  const auto count = take_varint(in);
  // Each string has at least the byte of its length.
  if (!count || *count > max || *count > in.size()) return refuse(field, "has too long a list"), out;
  for (u64 i = 0; i < *count; ++i) {
    const auto s = take_string(in);
    if (!s || s->size() > text_max) return refuse(field, "holds a text that is cut or too long"), std::vector<std::string>{};
    out.emplace_back(*s);
  }
  if (!in.empty()) refuse(field, "has bytes after its list");
  return out;
}

std::vector<u32> Door::numbers(std::string_view bytes, std::size_t max, std::string_view field) {
  ByteView in = as_bytes(bytes);
  std::vector<u32> out;
  if (in.empty()) return out;
  const auto count = take_varint(in);
  if (!count || *count > max || *count > in.size()) return refuse(field, "has too long a list"), out;
  out.reserve(static_cast<std::size_t>(*count));
  i64 before = 0;
  for (u64 i = 0; i < *count; ++i) {
    const auto number = take_number(in, before);
    if (!number) return refuse(field, "holds a number that is cut or out of range"), std::vector<u32>{};
    out.push_back(*number);
  }
  if (!in.empty()) refuse(field, "has bytes after its list");
  return out;
}

std::vector<std::string> Door::prefixes(std::string_view compressed, std::string_view field) {
  std::vector<std::string> out;
  if (compressed.empty()) return out;
  const auto column = content::decompress(as_bytes(compressed), kPathColumnMax);
  if (!column) return refuse(field, "does not decompress"), out;
  ByteView in = *column;
  const auto count = take_varint(in);
  if (!count || *count > kPrefixesMax || *count > in.size() / 2) return refuse(field, "has too long a list"), out;
  std::size_t budget = kPathColumnMax;
  for (u64 i = 0; i < *count; ++i) {
    auto path = take_path(in, out.empty() ? std::string_view() : std::string_view(out.back()), budget);
    if (!path || path->empty() || has_nul(*path)) return refuse(field, "holds no path"), std::vector<std::string>{};
    out.push_back(*std::move(path));
  }
  if (!in.empty()) refuse(field, "has bytes after its list");
  return out;
}

}  // namespace envsync::format
