// SPDX-License-Identifier: MIT
#include "base/rate.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace envsync {

std::optional<u64> parse_rate(std::string_view text) {
  struct Unit { std::string_view name; u64 bits; };
  constexpr std::array<Unit, 8> kUnits{{{"kB/s", 8'000}, {"MB/s", 8'000'000}, {"GB/s", 8'000'000'000}, {"B/s", 8},
                                        {"kbit/s", 1'000}, {"Mbit/s", 1'000'000}, {"Gbit/s", 1'000'000'000}, {"bit/s", 1}}};
  u64 number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  const auto unit = std::ranges::find(kUnits, rest, &Unit::name);
  constexpr u64 kBitsMax = 8'000'000'000'000;  // LIMIT: a terabyte a second
  if (parsed.ec != std::errc{} || unit == kUnits.end() || number > kBitsMax / unit->bits) return std::nullopt;
  const u64 bytes = number * unit->bits / 8;
  if (bytes == 0) return std::nullopt;
  return bytes;
}

}  // namespace envsync
