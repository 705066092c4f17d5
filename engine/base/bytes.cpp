// SPDX-License-Identifier: MIT
#include "base/bytes.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace envsync {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Length of the UTF-8 sequence at the front of `text`, 0 where it is not one.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<u8>(text[i]); };
  const u8 first = at(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  u32 value = 0;
  if ((first & 0xe0) == 0xc0) { length = 2; value = first & 0x1f; }
  else if ((first & 0xf0) == 0xe0) { length = 3; value = first & 0x0f; }
  else if ((first & 0xf8) == 0xf0) { length = 4; value = first & 0x07; }
  else return 0;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    value = (value << 6) | (at(i) & 0x3fu);
  }
  constexpr std::array<u32, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  return length;
}

}  // namespace

std::string to_hex(ByteView bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    out += kHex[static_cast<u8>(b) >> 4];
    out += kHex[static_cast<u8>(b) & 15];
  }
  return out;
}

std::optional<Bytes> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  Bytes out;
  out.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return out;
}

std::string to_base64(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    u32 value = 0;
    for (std::size_t k = 0; k < 3; ++k) value = (value << 8) | (k < n ? static_cast<u32>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kBase64[(value >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

std::optional<Bytes> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  Bytes out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    u32 value = 0;
    std::size_t pads = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = text[i + k];
      if (c == '=' && i + 4 == text.size() && k >= 2) { ++pads; value <<= 6; continue; }
      const std::size_t at = kBase64.find(c);
      if (at == std::string_view::npos || pads > 0) return std::nullopt;
      value = (value << 6) | static_cast<u32>(at);
    }
    for (std::size_t k = 0; k + pads < 3; ++k) out.push_back(static_cast<std::byte>((value >> (16 - 8 * k)) & 0xff));
  }
  return out;
}

void put_varint(Bytes& out, u64 value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::byte>(value));
}

std::optional<u64> take_varint(ByteView& in) {
  u64 value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in.empty()) return std::nullopt;
    const u64 b = static_cast<u64>(in[0]);
    in = in.subspan(1);
    if (shift == 63 && b > 1) return std::nullopt;
    value |= (b & 0x7f) << shift;
    if ((b & 0x80) == 0) return value;
  }
  return std::nullopt;
}

void put_string(Bytes& out, std::string_view text) {
  put_varint(out, text.size());
  const ByteView bytes = as_bytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::optional<std::string_view> take_string(ByteView& in) {
  const auto length = take_varint(in);
  if (!length || *length > in.size()) return std::nullopt;
  const std::string_view text = as_text(in.first(static_cast<std::size_t>(*length)));
  in = in.subspan(static_cast<std::size_t>(*length));
  return text;
}

std::string printable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const u8 first = static_cast<u8>(bytes[0]);
    const bool is_c1 = length == 2 && first == 0xc2 && static_cast<u8>(bytes[1]) < 0xa0;
    if (first == '\\') { out += "\\\\"; bytes.remove_prefix(1); continue; }
    if (length == 0 || first < 0x20 || first == 0x7f || is_c1) {
      const std::size_t count = is_c1 ? 2 : 1;
      for (std::size_t i = 0; i < count; ++i) out += fmt::format("\\x{:02x}", static_cast<u8>(bytes[i]));
      bytes.remove_prefix(count);
      continue;
    }
    out += bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  return out;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string human_bytes(u64 bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  constexpr std::array<std::string_view, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  while (value >= 999.5 && unit + 1 < kUnits.size()) { value /= 1000; ++unit; }
  return value < 10 ? fmt::format("{:.1f} {}", value, kUnits[unit]) : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

}  // namespace envsync
