// SPDX-License-Identifier: MIT
//   range := "[" span ("," span)* "]"      span := digits | digits "-" digits, as many digits on both sides where one begins with 0
#include <charconv>

#include "base/bytes.hpp"
#include "manifest/place.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace envsync::manifest {
namespace {

constexpr std::size_t kHostsMax = 10'000;  // LIMIT: of one range
constexpr std::size_t kDigitsMax = 9;

Error refused(std::string_view range, std::string_view why) {
  return Error(ErrorCode::usage, fmt::format("the range '{}' {}", printable(range), why)).hint("write a range as in 'gpu-[01-08]' or 'gpu-[1-3,7]'");
}

/// Where the first range begins; npos where there is none. "[::1]" and "ada@[::1]" begin with an address.
std::size_t range_begin(std::string_view text) {
  const std::size_t path = std::min({text.find(":/"), text.find(":~"), text.size()});
  const std::size_t bracket = text.find('[');
  return bracket != std::string_view::npos && bracket > 0 && bracket < path && text[bracket - 1] != '@' ? bracket : std::string_view::npos;
}

Result<std::vector<std::string>> numbers(std::string_view span, std::string_view range) {
  const std::size_t dash = std::min(span.find('-'), span.size());
  const auto first = span.substr(0, dash), last = dash < span.size() ? span.substr(dash + 1) : first;
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.size() <= kDigitsMax && digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(first) || !is_number(last)) return refused(range, "holds something that is no number");
  const bool is_padded = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
  if (is_padded && first.size() != last.size()) return refused(range, "has bounds of different width");
  u32 from = 0, to = 0;
  std::from_chars(first.data(), first.data() + first.size(), from);
  std::from_chars(last.data(), last.data() + last.size(), to);
  if (from > to) return refused(range, "ends before it begins");
  if (to - from >= kHostsMax) return refused(range, fmt::format("names more than {} hosts", kHostsMax));
  std::vector<std::string> all;
  for (u32 number = from; number <= to; ++number) all.push_back(fmt::format("{:0{}}", number, is_padded ? first.size() : 1));
  return all;
}

}  // namespace

bool is_range(std::string_view text) { return range_begin(text) != std::string_view::npos; }

Result<std::vector<std::string>> expand_ranges(const std::string& text) {
  const std::size_t begin = range_begin(text);
  if (begin == std::string::npos) return std::vector<std::string>{text};
  const std::size_t end = text.find(']', begin);
  if (end == std::string::npos) return refused(std::string_view(text).substr(begin), "has no end");
  const std::string_view range = std::string_view(text).substr(begin, end + 1 - begin);
  TRY(const auto tails, expand_ranges("x" + text.substr(end + 1)));  // a range never stands first
  std::vector<std::string> all;
  for (std::string_view rest = range.substr(1, range.size() - 2);;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    TRY(const auto some, numbers(rest.substr(0, comma), range));
    if ((all.size() + some.size()) * tails.size() > kHostsMax) return refused(range, fmt::format("names more than {} hosts", kHostsMax));
    for (const auto& number : some)
      for (const auto& tail : tails) all.push_back(text.substr(0, begin) + number + tail.substr(1));
    if (comma == rest.size()) return all;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace envsync::manifest
