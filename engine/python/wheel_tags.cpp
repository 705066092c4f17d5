// SPDX-License-Identifier: MIT
#include "python/wheel_tags.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.hpp"
#include "python/environment.hpp"
#include "python/text.hpp"

namespace envsync::python {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) out.emplace_back(take_until(text, separator));
  return out;
}

struct PythonVersion { u32 major = 0, minor = 0; };

std::optional<u32> number(std::string_view text) {
  u32 value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "3.12" and "3.12.4".
std::optional<PythonVersion> version_of(std::string_view text) {
  const auto major = number(take_until(text, '.'));
  const auto minor = number(take_until(text, '.'));
  if (!major || !minor) return std::nullopt;
  return PythonVersion{*major, *minor};
}

/// "cp312", "py3", "py39": its letters and its version; a version without a minor has minor 0 and says so.
struct Tag { std::string_view implementation; u32 major = 0; std::optional<u32> minor; };
std::optional<Tag> tag_of(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  const auto major = number(text.substr(digit, 1));
  if (!major) return std::nullopt;
  const std::string_view rest = text.substr(digit + 1);
  const auto minor = number(rest);
  if (!rest.empty() && !minor) return std::nullopt;
  return Tag{text.substr(0, digit), *major, minor};
}

/// Whether a Python of this version takes the pair. A stable ABI, and code without one, may be older than the Python.
bool fits(std::string_view python, std::string_view abi, const PythonVersion& version) {
  const auto tag = tag_of(python);
  if (!tag || tag->major != version.major) return false;
  const u32 minor = tag->minor.value_or(0);
  if (tag->implementation == "py") return abi == "none" && minor <= version.minor;
  if (tag->implementation != "cp") return false;
  if (abi == "abi3" || abi == "none") return !tag->minor || minor <= version.minor;
  return minor == version.minor && abi == fmt::format("cp{}{}", version.major, version.minor);
}

bool fits_platform(std::string_view platform, std::string_view machine) {
  if (platform == "any") return true;
  if (!platform.ends_with(fmt::format("_{}", machine))) return false;
  return platform.starts_with("linux_") || platform.starts_with("manylinux");
}

}  // namespace

std::optional<WheelName> parse_wheel_name(std::string_view file) {
  constexpr std::string_view kSuffix = ".whl";
  if (!file.ends_with(kSuffix)) return std::nullopt;
  const std::vector<std::string> parts = split(file.substr(0, file.size() - kSuffix.size()), '-');
  constexpr std::size_t kParts = 5, kWithBuild = 6;
  if ((parts.size() != kParts && parts.size() != kWithBuild) || std::ranges::any_of(parts, &std::string::empty)) return std::nullopt;
  const std::size_t tags = parts.size() - 3;
  return WheelName{normalize_name(parts[0]), parts[1], split(parts[tags], '.'), split(parts[tags + 1], '.'), split(parts[tags + 2], '.')};
}

std::string wrong_with_tags(const WheelName& wheel, std::string_view python, std::string_view machine) {
  const auto version = version_of(python);
  if (!version) return {};
  const bool is_fit = std::ranges::any_of(wheel.pythons, [&](const std::string& one) {
    return std::ranges::any_of(wheel.abis, [&](const std::string& abi) { return fits(one, abi, *version); });
  });
  if (!is_fit) return fmt::format("it is for {} ({}), not for Python {}.{}", fmt::join(wheel.pythons, ", "), fmt::join(wheel.abis, ", "), version->major, version->minor);
  if (std::ranges::any_of(wheel.platforms, [&](const std::string& one) { return fits_platform(one, machine); })) return {};
  return fmt::format("it is for {}, not for Linux on {}", fmt::join(wheel.platforms, ", "), machine);
}

std::vector<Finding> check_wheel_tags(const std::vector<std::string>& files, std::string_view python, std::string_view machine) {
  std::vector<Finding> out;
  for (const std::string& file : files) {
    const auto wheel = parse_wheel_name(file);
    const std::string why = wheel ? wrong_with_tags(*wheel, python, machine) : "its file name is none of a wheel (name-version-python-abi-platform.whl)";
    if (!why.empty()) out.push_back({"wheel_tag", Severity::error, {}, fmt::format("the wheel '{}' does not run there: {}", printable(file), printable(why))});
  }
  return out;
}

}  // namespace envsync::python
