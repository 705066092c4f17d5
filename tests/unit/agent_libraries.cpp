// SPDX-License-Identifier: MIT
#include "agent/libraries.hpp"

#include <doctest/doctest.h>

#include "base/bytes.hpp"
#include "support/os_folder.hpp"

using namespace envsync;

namespace {

/// A library of one segment: header, two program headers, names, dynamic entries.
std::string library(const std::vector<std::pair<u64, std::string>>& entries, u64 address = 0x10000) {
  std::string names(1, '\0');
  Bytes dynamic;
  for (const auto& [tag, name] : entries) {
    put_le<u64>(dynamic, tag), put_le<u64>(dynamic, names.size());
    names += name + '\0';
  }
  constexpr u64 kNamesAt = 64 + 2 * 56;
  put_le<u64>(dynamic, 5), put_le<u64>(dynamic, address + kNamesAt);
  put_le<u64>(dynamic, 10), put_le<u64>(dynamic, names.size());
  put_le<u64>(dynamic, 0), put_le<u64>(dynamic, 0);
  const u64 dynamic_at = kNamesAt + names.size(), size = dynamic_at + dynamic.size();
  Bytes out;
  for (const int c : {0x7f, int{'E'}, int{'L'}, int{'F'}, 2, 1, 1, 0}) out.push_back(static_cast<std::byte>(c));
  put_le<u64>(out, 0), put_le<u16>(out, 3), put_le<u16>(out, 62), put_le<u32>(out, 1), put_le<u64>(out, 0), put_le<u64>(out, 64), put_le<u64>(out, 0);
  put_le<u32>(out, 0), put_le<u16>(out, 64), put_le<u16>(out, 56), put_le<u16>(out, 2), put_le<u16>(out, 0), put_le<u16>(out, 0), put_le<u16>(out, 0);
  const auto segment = [&](u32 type, u64 offset, u64 length) {
    put_le<u32>(out, type), put_le<u32>(out, 4), put_le<u64>(out, offset), put_le<u64>(out, address + offset), put_le<u64>(out, 0), put_le<u64>(out, length), put_le<u64>(out, length), put_le<u64>(out, 8);
  };
  segment(1, 0, size);
  segment(2, dynamic_at, dynamic.size());
  return std::string(as_text(out)) + names + std::string(as_text(dynamic));
}

std::optional<agent::LibraryFacts> facts(const std::string& bytes) {
  const testing::Folder folder;
  folder.write("x.so", bytes);
  return agent::read_library(os::open_file(folder.fd(), "x.so")->get());
}

}  // namespace

TEST_CASE("a library says its name, what it needs and where it looks; RUNPATH goes before RPATH") {
  const auto found = facts(library({{14, "libx.so.1"}, {1, "libc.so.6"}, {29, "/opt/x/lib:$ORIGIN"}, {1, "libm.so.6"}, {15, "/old"}}));
  REQUIRE(found);
  CHECK(found->soname == "libx.so.1");
  CHECK(found->needed == std::vector<std::string>{"libc.so.6", "libm.so.6"});
  CHECK(found->search == "/opt/x/lib:$ORIGIN");
  CHECK(facts(library({{15, "/old"}}))->search == "/old");
}

TEST_CASE("what is no library, or is damaged, says nothing and never reads beyond itself") {
  CHECK_FALSE(facts(""));
  CHECK_FALSE(facts("#!/bin/sh\n"));
  const std::string whole = library({{14, "libx.so.1"}, {1, "libc.so.6"}});
  for (std::size_t size = 0; size < whole.size(); ++size) (void)facts(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ '\xff');
    const auto found = facts(damaged);
    if (found) CHECK(found->needed.size() <= 3);
  }
}

TEST_CASE("the loader's own names are told from those that this host lacks") {
  CHECK(agent::absent_sonames({"libc.so.6", "libnobody-has-this.so.9", "libm.so.6"}) == std::vector<std::string>{"libnobody-has-this.so.9"});
}
