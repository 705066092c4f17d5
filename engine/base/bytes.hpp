// SPDX-License-Identifier: MIT
// Byte spans, integers that are checked where they narrow or add, and the text forms of bytes.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <envsync/types.hpp>

#include "base/try.hpp"

namespace envsync {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(ByteView bytes) {
  // SAFETY: char may alias any object representation.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A narrowing cast that is a bug when it loses value.
template <std::integral To, std::integral From>
constexpr To narrow(From value) {
  ENVSYNC_CHECK(std::in_range<To>(value));
  return static_cast<To>(value);
}

/// a + b, or nullopt where it does not fit.
template <std::unsigned_integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  if (a > std::numeric_limits<T>::max() - b) return std::nullopt;
  return static_cast<T>(a + b);
}

std::string to_hex(ByteView bytes);
std::optional<Bytes> from_hex(std::string_view hex);
std::string to_base64(ByteView bytes);
std::optional<Bytes> from_base64(std::string_view text);

/// Little-endian integers, appended to and taken from byte strings.
template <std::unsigned_integral T>
void put_le(Bytes& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}
/// The integer at the front of `in`, which is advanced past it; nullopt where too few bytes are left.
template <std::unsigned_integral T>
std::optional<T> take_le(ByteView& in) {
  if (in.size() < sizeof(T)) return std::nullopt;
  u64 value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<u64>(in[i]) << (8 * i);
  in = in.subspan(sizeof(T));
  return static_cast<T>(value);
}
/// LEB128, at most 10 bytes.
void put_varint(Bytes& out, u64 value);
std::optional<u64> take_varint(ByteView& in);
/// A varint length, then the bytes.
void put_string(Bytes& out, std::string_view text);
std::optional<std::string_view> take_string(ByteView& in);

/// Bytes as a terminal may show them: control characters and bytes that are not UTF-8 as \xNN, backslash as \\.
std::string printable(std::string_view bytes);
bool is_utf8(std::string_view bytes);
/// "4.1 MB", decimal units, as link rates and disk sizes are given.
std::string human_bytes(u64 bytes);

}  // namespace envsync
