// SPDX-License-Identifier: MIT
#include "cli/text.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace envsync::cli {

namespace {

std::tm utc(i64 seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return parts;
}

bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

std::string safe(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t slash = text.find('\\');
    out += printable(text.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    out += '\\';
    text.remove_prefix(slash + 1);
  }
}

std::string thousands(u64 number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string count(u64 number, std::string_view noun) {
  if (number == 1) return fmt::format("1 {}", noun);
  if (noun.ends_with('y')) return fmt::format("{} {}ies", thousands(number), noun.substr(0, noun.size() - 1));
  return fmt::format("{} {}s", thousands(number), noun);
}

std::string duration(double seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  // LIMIT: a stalled estimate can be infinite; above 99 hours the figure says nothing.
  if (!(seconds < 99 * 3600.0)) return "over 99 h";
  const u64 whole = static_cast<u64>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return whole % 60 == 0 ? fmt::format("{} min", whole / 60) : fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string long_duration(double seconds, std::string_view before) {
  return seconds < 1 ? std::string() : std::string(before) + duration(seconds);
}

std::string rough_duration(double seconds) {
  if (!(seconds > 1)) return "1 s";
  return seconds < 9.95 ? fmt::format("{:.0f} s", seconds) : duration(seconds);
}

std::string bytes_of_bytes(u64 done, u64 total) {
  const std::string all = human_bytes(total);
  std::string some = human_bytes(done);
  const std::size_t unit = all.find(' ');
  if (some.substr(some.find(' ')) == all.substr(unit)) some.resize(some.find(' '));
  return fmt::format("{} of {}", some, all);
}

std::string rate(double bytes_per_second) {
  if (!(bytes_per_second > 0)) return "0 B/s";
  return human_bytes(static_cast<u64>(std::min(bytes_per_second, 1e15))) + "/s";
}

std::string utc_minute(i64 seconds) {
  const std::tm t = utc(seconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min);
}

std::string rfc3339(i64 nanoseconds) {
  const i64 seconds = nanoseconds / 1'000'000'000;
  const std::tm t = utc(seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
                     nanoseconds % 1'000'000'000 / 1'000'000);
}

std::string verb_column(std::string_view verb) {
  constexpr std::size_t kWidth = 10;
  return std::string(verb.size() < kWidth ? kWidth - verb.size() : 1, ' ') + std::string(verb) + " ";
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += between;
    out += part;
  }
  return out;
}

std::string shell_word(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("@%_+=:,./-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return safe(out + "'");
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_code_point));
}

std::string clip(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t at = 0;
  for (std::size_t filled = 0; at < text.size(); ++at)
    if (begins_code_point(text[at]) && ++filled == width) break;
  return std::string(text.substr(0, at)) + "…";
}

std::string wrap(std::string_view text, std::size_t width, std::string_view first, std::size_t indent) {
  std::string out(first);
  std::size_t filled = columns(first);
  bool is_line_empty = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_line_empty && filled + 1 + columns(word) > width) {
      out += "\n" + std::string(indent, ' ');
      filled = indent;
      is_line_empty = true;
    }
    if (!is_line_empty) { out += ' '; ++filled; }
    out += word;
    filled += columns(word);
    is_line_empty = false;
  }
  return out + "\n";
}

std::string Palette::paint(std::string_view code, std::string_view text) const {
  return has_color_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace envsync::cli
