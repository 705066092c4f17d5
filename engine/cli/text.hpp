// SPDX-License-Identifier: MIT
// Numbers, times and names as a terminal shows them, and colours. Output is UTF-8 and readable without colour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <envsync/types.hpp>

namespace envsync::cli {

/// Text from outside on one line: control characters and bytes that are not UTF-8 become \xNN. Backslashes stay, so text that
/// is safe already comes out as it went in. A path goes through printable() instead.
std::string safe(std::string_view text);
/// 78214 as "78,214".
std::string thousands(u64 number);
/// "1 file", "78,214 files"; a noun in -y gets -ies.
std::string count(u64 number, std::string_view noun);
/// "1.1 s", "58 s", "1 min 35 s", "2 h 5 min".
std::string duration(double seconds);
/// duration() from one second on, else nothing; with `before` in front.
std::string long_duration(double seconds, std::string_view before = {});
/// An estimate, in whole seconds: "7 s", never "0 s".
std::string rough_duration(double seconds);
/// "3.1 of 5.0 GB", "850 MB of 12 GB".
std::string bytes_of_bytes(u64 done, u64 total);
std::string rate(double bytes_per_second);
/// "2026-11-30 18:04 UTC"
std::string utc_minute(i64 seconds);
/// "2026-11-30T18:04:05.123Z"
std::string rfc3339(i64 nanoseconds);
/// The verb column of progress: right-aligned, then a space.
std::string verb_column(std::string_view verb);
std::string join(const std::vector<std::string>& parts, std::string_view between);
/// A word as a shell takes it, quoted where it must be.
std::string shell_word(std::string_view word);
/// Columns that UTF-8 text fills, every code point counted as one.
std::size_t columns(std::string_view text);
/// At most `width` columns, the last of them '…' where something was cut.
std::string clip(std::string_view text, std::size_t width);
/// Lines of at most `width` columns, broken at spaces; every line begins with `indent` spaces, the first with `first` instead.
std::string wrap(std::string_view text, std::size_t width, std::string_view first, std::size_t indent);

class Palette {
 public:
  Palette() = default;
  explicit Palette(bool has_color) : has_color_(has_color) {}
  std::string red(std::string_view text) const { return paint("1;31", text); }
  std::string yellow(std::string_view text) const { return paint("1;33", text); }
  std::string green(std::string_view text) const { return paint("1;32", text); }
  std::string cyan(std::string_view text) const { return paint("36", text); }
  std::string blue(std::string_view text) const { return paint("1;34", text); }
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }

 private:
  std::string paint(std::string_view code, std::string_view text) const;
  bool has_color_ = false;
};

}  // namespace envsync::cli
