// SPDX-License-Identifier: MIT
// Versions and specifiers as PEP 440 has them.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <envsync/types.hpp>

namespace envsync::python {

enum class PreRelease : u8 { a, b, rc };

/// Compared as PEP 440 orders: 1.0.dev1 < 1.0a1 < 1.0rc1 < 1.0 == 1.0.0 < 1.0+cu130 < 1.0.post1 < 1!0.1.
class Version {
 public:
  /// In any spelling that PEP 440 reads (v1.0-Alpha.1); nullopt for another text, and for a number over 19 digits.
  static std::optional<Version> parse(std::string_view text);
  std::strong_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const { return (*this <=> other) == 0; }
  /// The normalized spelling, trailing zeros kept.
  std::string text() const;

  const std::vector<u64>& release() const { return release_; }
  u64 epoch() const { return epoch_; }
  bool is_prerelease() const { return pre_.has_value() || dev_.has_value(); }
  bool is_postrelease() const { return post_.has_value(); }
  /// 1.0.post1 is one of 1.0, and 1.0a1.post1 of 1.0a1; post- and dev-releases have none.
  bool is_postrelease_of(const Version& other) const;
  bool has_local() const { return !local_.empty(); }
  Version without_local() const;
  /// Epoch and release alone.
  Version base() const;

 private:
  friend class VersionParser;
  struct LocalPart { bool is_number = false; u64 number = 0; std::string text; };

  u64 epoch_ = 0;
  std::vector<u64> release_;
  std::optional<std::pair<PreRelease, u64>> pre_;
  std::optional<u64> post_, dev_;
  std::vector<LocalPart> local_;
};

enum class SpecifierOperator : u8 { compatible, equal, not_equal, less_equal, greater_equal, less, greater, arbitrary };

struct Specifier {
  SpecifierOperator op = SpecifierOperator::equal;
  std::optional<Version> version;  // none: arbitrary
  bool is_prefix = false;          // ".*" follows the version
  std::string text;                // as written: of the version alone
  /// Pre-releases count: what is installed was chosen by somebody. A version that PEP 440 does not read fits "===" alone.
  bool contains(std::string_view candidate) const;
};

class SpecifierSet {
 public:
  SpecifierSet() = default;  // any version
  /// ">=1.0, !=1.3.*"; empty text is any version; nullopt where one of them is none.
  static std::optional<SpecifierSet> parse(std::string_view text);
  bool contains(std::string_view candidate) const;
  bool is_any() const { return specifiers_.empty(); }
  /// True where it names one version, or one and what follows it: == and ===.
  bool is_pin() const;
  const std::vector<Specifier>& specifiers() const { return specifiers_; }

 private:
  std::vector<Specifier> specifiers_;
};

/// One specifier without blanks around it; nullopt where the text is none.
std::optional<Specifier> parse_specifier(std::string_view text);

}  // namespace envsync::python
