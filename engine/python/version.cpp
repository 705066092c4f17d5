// SPDX-License-Identifier: MIT
#include "python/version.hpp"

#include "python/text.hpp"

#include <array>
#include <tuple>

#include <fmt/format.h>

namespace envsync::python {
namespace {

// LIMIT: real versions have six components at most.
constexpr std::size_t kVersionBytesMax = 1024;
constexpr std::size_t kDigitsMax = 19;  // of a u64

bool is_separator(char c) { return c == '.' || c == '-' || c == '_'; }

std::strong_ordering compare_releases(const std::vector<u64>& a, const std::vector<u64>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const u64 left = i < a.size() ? a[i] : 0, right = i < b.size() ? b[i] : 0;
    if (left != right) return left <=> right;
  }
  return std::strong_ordering::equal;
}

}  // namespace

/// Reads one lower-case version from the front to the end.
class VersionParser {
 public:
  explicit VersionParser(std::string_view text) : rest_(text) {}

  std::optional<Version> parse() {
    Version out;
    if (rest_.starts_with('v')) rest_.remove_prefix(1);
    auto first = number();
    if (!first) return std::nullopt;
    if (rest_.starts_with('!')) {
      rest_.remove_prefix(1);
      out.epoch_ = *first;
      first = number();
      if (!first) return std::nullopt;
    }
    out.release_.push_back(*first);
    while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      const auto next = number();
      if (!next) return std::nullopt;
      out.release_.push_back(*next);
    }
    if (!take_pre(out) || !take_post(out) || !take_dev(out) || !take_local(out) || !rest_.empty()) return std::nullopt;
    return out;
  }

 private:
  std::optional<u64> number() {
    std::size_t digits = 0;
    u64 value = 0;
    while (digits < rest_.size() && is_digit(rest_[digits])) {
      if (digits >= kDigitsMax) return std::nullopt;
      value = value * 10 + static_cast<u64>(rest_[digits++] - '0');
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    return value;
  }

  /// [-_.]? WORD, where WORD is one of `words`; its index.
  template <std::size_t N>
  std::optional<std::size_t> word(const std::array<std::string_view, N>& words) {
    std::string_view after = rest_;
    if (!after.empty() && is_separator(after[0])) after.remove_prefix(1);
    for (std::size_t i = 0; i < N; ++i) {
      if (!after.starts_with(words[i])) continue;
      rest_ = after.substr(words[i].size());
      return i;
    }
    return std::nullopt;
  }

  /// [-_.]? NUMBER? after a word, zero where no number is; nullopt where it is too long.
  std::optional<u64> word_number() {
    if (!rest_.empty() && is_separator(rest_[0])) rest_.remove_prefix(1);
    if (rest_.empty() || !is_digit(rest_[0])) return 0;
    return number();
  }

  bool take_pre(Version& out) {
    // The longer spelling of two comes first.
    constexpr std::array<std::string_view, 8> kWords{"alpha", "a", "beta", "b", "preview", "pre", "rc", "c"};
    const auto found = word(kWords);
    if (!found) return true;
    const auto value = word_number();
    if (!value) return false;
    out.pre_ = {*found < 2 ? PreRelease::a : *found < 4 ? PreRelease::b : PreRelease::rc, *value};
    return true;
  }

  bool take_post(Version& out) {
    if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      out.post_ = number();
      return out.post_.has_value();
    }
    constexpr std::array<std::string_view, 3> kWords{"post", "rev", "r"};
    if (!word(kWords)) return true;
    out.post_ = word_number();
    return out.post_.has_value();
  }

  bool take_dev(Version& out) {
    constexpr std::array<std::string_view, 1> kWords{"dev"};
    if (!word(kWords)) return true;
    out.dev_ = word_number();
    return out.dev_.has_value();
  }

  bool take_local(Version& out) {
    if (!rest_.starts_with('+')) return true;
    do {
      rest_.remove_prefix(1);
      std::size_t end = 0;
      while (end < rest_.size() && (is_digit(rest_[end]) || is_letter(rest_[end]))) ++end;
      if (end == 0) return false;
      Version::LocalPart part{.is_number = false, .number = 0, .text = std::string(rest_.substr(0, end))};
      part.is_number = std::ranges::all_of(part.text, is_digit);
      if (part.is_number) {
        const auto value = number();
        if (!value) return false;
        part.number = *value;
      } else {
        rest_.remove_prefix(end);
      }
      out.local_.push_back(std::move(part));
    } while (!rest_.empty() && is_separator(rest_[0]));
    return true;
  }

  std::string_view rest_;
};

std::optional<Version> Version::parse(std::string_view text) {
  text = trimmed(text);
  if (text.size() > kVersionBytesMax) return std::nullopt;
  return VersionParser(lowered(text)).parse();
}

std::strong_ordering Version::operator<=>(const Version& other) const {
  if (epoch_ != other.epoch_) return epoch_ <=> other.epoch_;
  if (const auto order = compare_releases(release_, other.release_); order != 0) return order;
  // Of one release: 1.0.dev1 lies before every pre-release, 1.0 after each of them.
  const auto pre = [](const Version& v) {
    if (v.pre_) return std::tuple(1, static_cast<int>(v.pre_->first), v.pre_->second);
    return std::tuple(!v.post_ && v.dev_ ? 0 : 2, 0, u64{0});
  };
  if (const auto order = pre(*this) <=> pre(other); order != 0) return order;
  if (const auto order = post_ <=> other.post_; order != 0) return order;
  const auto dev = [](const Version& v) { return std::pair(!v.dev_.has_value(), v.dev_.value_or(0)); };
  if (const auto order = dev(*this) <=> dev(other); order != 0) return order;
  for (std::size_t i = 0; i < std::min(local_.size(), other.local_.size()); ++i) {
    const LocalPart &a = local_[i], &b = other.local_[i];
    if (a.is_number != b.is_number) return a.is_number <=> b.is_number;
    if (const auto order = a.is_number ? a.number <=> b.number : a.text <=> b.text; order != 0) return order;
  }
  return local_.size() <=> other.local_.size();
}

std::string Version::text() const {
  constexpr std::string_view kPre[] = {"a", "b", "rc"};
  std::string out = epoch_ != 0 ? fmt::format("{}!", epoch_) : std::string();
  out += fmt::format("{}", fmt::join(release_, "."));
  if (pre_) out += fmt::format("{}{}", kPre[static_cast<std::size_t>(pre_->first)], pre_->second);
  if (post_) out += fmt::format(".post{}", *post_);
  if (dev_) out += fmt::format(".dev{}", *dev_);
  for (std::size_t i = 0; i < local_.size(); ++i) {
    out += i == 0 ? '+' : '.';
    out += local_[i].is_number ? fmt::format("{}", local_[i].number) : local_[i].text;
  }
  return out;
}

bool Version::is_postrelease_of(const Version& other) const {
  return post_ && !other.post_ && !other.dev_ && pre_ == other.pre_ && base() == other.base();
}

Version Version::without_local() const {
  Version out = *this;
  out.local_.clear();
  return out;
}

Version Version::base() const {
  Version out;
  out.epoch_ = epoch_;
  out.release_ = release_;
  return out;
}

}  // namespace envsync::python
