// SPDX-License-Identifier: MIT
#include "python/version.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::string normal(std::string_view text) {
  const auto version = Version::parse(text);
  return version ? version->text() : "none";
}

bool fits(std::string_view specifiers, std::string_view version) {
  const auto set = SpecifierSet::parse(specifiers);
  REQUIRE_MESSAGE(set.has_value(), specifiers);
  return set->contains(version);
}

}  // namespace

TEST_CASE("every spelling of PEP 440 is read") {
  CHECK(normal("2.11.0+cu130") == "2.11.0+cu130");
  CHECK(normal(" v1.0-Alpha.1 ") == "1.0a1");
  CHECK(normal("1!2.0.PREVIEW-3.rev4_dev") == "1!2.0rc3.post4.dev0");
  CHECK(normal("1.0c") == "1.0rc0");
  CHECK(normal("1.0-5") == "1.0.post5");
  CHECK(normal("1.0a-1") == "1.0a1");
  CHECK(normal("1.0b.") == "1.0b0");
  CHECK(normal("3.9.10.post20261028") == "3.9.10.post20261028");
  CHECK(normal("010.001") == "10.1");
  CHECK(normal("1.0+Ubuntu-2_a.03") == "1.0+ubuntu.2.a.3");
  for (const std::string_view none : {"", "dev", "1.0.", "1.0+", "1.0+a+b", "1!", "1.0x", "1.0 1", "1..0", "1.0a1b1", "99999999999999999999", "1.*"})
    CHECK_MESSAGE(normal(none) == "none", none);
}

TEST_CASE("versions are ordered as PEP 440 orders them") {
  constexpr std::string_view kAscending[] = {
      "0.9",     "1.0.dev1",  "1.0.dev2",   "1.0a1.dev1", "1.0a1",   "1.0a1.post1.dev1", "1.0a1.post1", "1.0a2",       "1.0b1",
      "1.0rc1",  "1.0",       "1.0+abc",    "1.0+abc.1",  "1.0+b",   "1.0+1",            "1.0+1.0",     "1.0+2",       "1.0.post1.dev1",
      "1.0.post1", "1.0.post2", "1.0.1.dev1", "1.0.1",    "1.10",    "2026.6",           "1!0.1"};
  for (std::size_t i = 0; i < std::size(kAscending); ++i)
    for (std::size_t k = 0; k < std::size(kAscending); ++k)
      CHECK_MESSAGE((*Version::parse(kAscending[i]) <=> *Version::parse(kAscending[k])) == (i <=> k), kAscending[i], " and ", kAscending[k]);
  CHECK(*Version::parse("1.0") == *Version::parse("1.0.0"));
  CHECK(*Version::parse("1.0.0a1") == *Version::parse("1-alpha-1"));
  CHECK(*Version::parse("1.0+ABC") == *Version::parse("1.0+abc"));
}

TEST_CASE("a local build fits what names its public version, and its own name alone fits one that names a build") {
  CHECK(fits("==2.11.0", "2.11.0+cu130"));
  CHECK(fits("==2.11", "2.11.0+cu130"));
  CHECK(fits("==2.11.0+cu130", "2.11.0+cu130"));
  CHECK_FALSE(fits("==2.11.0+cu128", "2.11.0+cu130"));
  CHECK_FALSE(fits("==2.11.0+cu130", "2.11.0"));
  CHECK(fits("<=2.11.0", "2.11.0+cu130"));
  CHECK(fits(">=2.11.0", "2.11.0+cu130"));
  CHECK_FALSE(fits(">2.11.0", "2.11.0+cu130"));
  CHECK(fits(">2.11.0.dev1", "2.11.0+cu130"));
}

TEST_CASE("a star fits what begins with the release") {
  CHECK(fits("==13.1.0.3.*", "13.1.0.3"));
  CHECK(fits("==13.1.*", "13.1.0.3"));
  CHECK(fits("==1.1.*", "1.1a1"));
  CHECK(fits("==1.1.0.*", "1.1.post2"));
  CHECK_FALSE(fits("==1.1.*", "1.10"));
  CHECK_FALSE(fits("==1.1.*", "1!1.1"));
  CHECK_FALSE(fits("!=1.1.*", "1.1.5"));
  CHECK(fits("!=1.1.*", "1.2"));
}

TEST_CASE("bounds leave out what belongs to the bound itself") {
  CHECK_FALSE(fits("<1.0", "1.0rc1"));
  CHECK(fits("<1.0rc2", "1.0rc1"));
  CHECK(fits("<1.0", "0.9rc1"));
  CHECK_FALSE(fits(">1.0", "1.0.post1"));
  CHECK(fits(">1.0.post1", "1.0.post2"));
  CHECK(fits(">1.0rc1", "1.0.post1"));
  CHECK_FALSE(fits(">1.0rc1", "1.0rc1.post1"));
  CHECK(fits(">=1.0", "1.1rc1"));
}

TEST_CASE("compatible releases raise the last number alone") {
  CHECK(fits("~=2.2", "2.3.post1"));
  CHECK_FALSE(fits("~=2.2", "3.0"));
  CHECK(fits("~=2.2.0", "2.2.9"));
  CHECK_FALSE(fits("~=2.2.0", "2.3"));
  CHECK_FALSE(fits("~=2.2.post3", "2.2"));
  CHECK(fits("~=2.2.post3", "2.4"));
}

TEST_CASE("a set needs all of its members, and an empty one none") {
  CHECK(fits("<14,>=13.0.3", "13.4.4"));
  CHECK_FALSE(fits("<14,>=13.0.3", "14.0"));
  CHECK(fits(" >= 1.0 , != 1.3.*, ", "1.4"));
  CHECK(fits("", "anything at all"));
  CHECK_FALSE(fits(">=0", "anything"));
  CHECK(fits("===AnyThing", "anything"));
  CHECK_FALSE(fits("===1.0", "1.0.0"));
}

TEST_CASE("what is no specifier is refused") {
  for (const std::string_view none : {"1.0", "=1.0", "==", "==1.0.dev1.*", "==1.0a1.*", "==1.0+cu1.*", ">=1.0.*", ">=1.0+cu130", "~=1", "~=1.0+x", "== 1.0 1", "===", "=>1"})
    CHECK_MESSAGE(!SpecifierSet::parse(none), none);
}

TEST_CASE("equality pins, bounds do not") {
  CHECK(SpecifierSet::parse("==13.0.2")->is_pin());
  CHECK(SpecifierSet::parse("==13.0.*,!=13.0.1")->is_pin());
  CHECK(SpecifierSet::parse("===13")->is_pin());
  CHECK_FALSE(SpecifierSet::parse(">=1,<2")->is_pin());
  CHECK_FALSE(SpecifierSet::parse("~=1.0")->is_pin());
  CHECK_FALSE(SpecifierSet::parse("")->is_pin());
}
