// SPDX-License-Identifier: MIT
#include "python/version.hpp"

#include "python/text.hpp"

#include <array>

namespace envsync::python {
namespace {

struct Spelling { std::string_view text; SpecifierOperator op; };
// The longer spelling of two comes first.
constexpr std::array kOperators{
    Spelling{"===", SpecifierOperator::arbitrary},     Spelling{"~=", SpecifierOperator::compatible},
    Spelling{"==", SpecifierOperator::equal},          Spelling{"!=", SpecifierOperator::not_equal},
    Spelling{"<=", SpecifierOperator::less_equal},     Spelling{">=", SpecifierOperator::greater_equal},
    Spelling{"<", SpecifierOperator::less},            Spelling{">", SpecifierOperator::greater}};

/// Whether the release of `candidate`, filled up with zeros, begins with the first `count` numbers of `spec`.
bool begins_with(const Version& candidate, const Version& spec, std::size_t count) {
  if (candidate.epoch() != spec.epoch()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if ((i < candidate.release().size() ? candidate.release()[i] : 0) != spec.release()[i]) return false;
  }
  return true;
}

bool is_equal(const Specifier& spec, const Version& candidate) {
  const Version& wanted = *spec.version;
  if (spec.is_prefix) return begins_with(candidate, wanted, wanted.release().size());
  return wanted.has_local() ? candidate == wanted : candidate.without_local() == wanted;
}

/// Pre-releases of the very version that the bound names lie outside "<", post-releases and local builds outside ">".
bool is_less(const Version& wanted, const Version& candidate) {
  return candidate < wanted && (wanted.is_prerelease() || !candidate.is_prerelease() || candidate.base() != wanted.base());
}
bool is_greater(const Version& wanted, const Version& candidate) {
  return candidate.without_local() > wanted && !candidate.is_postrelease_of(wanted);
}

}  // namespace

bool Specifier::contains(std::string_view candidate_text) const {
  const auto candidate = Version::parse(candidate_text);
  if (op == SpecifierOperator::arbitrary) return lowered(trimmed(candidate_text)) == lowered(text);
  if (!candidate) return false;
  switch (op) {
    case SpecifierOperator::compatible:
      return candidate->without_local() >= *version && begins_with(*candidate, *version, version->release().size() - 1);
    case SpecifierOperator::equal: return is_equal(*this, *candidate);
    case SpecifierOperator::not_equal: return !is_equal(*this, *candidate);
    case SpecifierOperator::less_equal: return candidate->without_local() <= *version;
    case SpecifierOperator::greater_equal: return candidate->without_local() >= *version;
    case SpecifierOperator::less: return is_less(*version, *candidate);
    case SpecifierOperator::greater: return is_greater(*version, *candidate);
    case SpecifierOperator::arbitrary: break;
  }
  return false;
}

std::optional<Specifier> parse_specifier(std::string_view text) {
  const auto found = std::ranges::find_if(kOperators, [&](const Spelling& s) { return text.starts_with(s.text); });
  if (found == kOperators.end()) return std::nullopt;
  std::string_view rest = trimmed(text.substr(found->text.size()));
  Specifier out{.op = found->op, .version = {}, .is_prefix = false, .text = std::string(rest)};
  if (out.op == SpecifierOperator::arbitrary) {
    if (rest.empty() || rest.find_first_of(" \t;)") != std::string_view::npos) return std::nullopt;
    return out;
  }
  const bool is_equality = out.op == SpecifierOperator::equal || out.op == SpecifierOperator::not_equal;
  out.is_prefix = is_equality && rest.ends_with(".*");
  if (out.is_prefix) rest.remove_suffix(2);
  out.version = Version::parse(rest);
  if (!out.version || (!is_equality && out.version->has_local())) return std::nullopt;
  // ".*" follows a plain release, "~=" needs a component that it may raise.
  if (out.is_prefix && (out.version->is_prerelease() || out.version->is_postrelease() || out.version->has_local())) return std::nullopt;
  if (out.op == SpecifierOperator::compatible && out.version->release().size() < 2) return std::nullopt;
  return out;
}

std::optional<SpecifierSet> SpecifierSet::parse(std::string_view text) {
  // LIMIT: a real set has ten at most.
  constexpr std::size_t kSpecifiersMax = 1000;
  SpecifierSet out;
  while (!text.empty()) {
    const std::string_view item = trimmed(take_until(text, ','));
    if (item.empty()) continue;
    auto specifier = parse_specifier(item);
    if (!specifier || out.specifiers_.size() == kSpecifiersMax) return std::nullopt;
    out.specifiers_.push_back(*std::move(specifier));
  }
  return out;
}

bool SpecifierSet::contains(std::string_view candidate) const {
  return std::ranges::all_of(specifiers_, [&](const Specifier& s) { return s.contains(candidate); });
}

bool SpecifierSet::is_pin() const {
  return std::ranges::any_of(specifiers_, [](const Specifier& s) { return s.op == SpecifierOperator::equal || s.op == SpecifierOperator::arbitrary; });
}

}  // namespace envsync::python
