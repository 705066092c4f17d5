// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "store/recovery.hpp"

using namespace envsync;
using store::Action;
using store::Holds;
using store::Last;

namespace {

constexpr std::array kHolds{Holds::base, Holds::desired, Holds::absent, Holds::other};

char letter(Action action) {
  switch (action) {
    case Action::leftover: return 'l';
    case Action::abandon: return 'a';
    case Action::finish_commit: return 'C';
    case Action::finish_revert: return 'r';
    case Action::revert: return 'R';
    case Action::redo_accept: return 'A';
    case Action::refuse: return '!';
    case Action::keep_all: return 'k';
  }
  return '?';
}

/// Rows: what `new` holds; columns: what the path holds; both in the order base, desired, absent, other.
std::string table(Last last, bool base_absent) {
  std::string text;
  for (const Holds in_new : kHolds) {
    if (!text.empty()) text += ' ';
    for (const Holds at_path : kHolds) text += letter(store::decide(last, base_absent, in_new, at_path));
  }
  return text;
}

}  // namespace

TEST_CASE("recovery: what never got to prepared, or has ended, is leftover content whatever the path holds") {
  for (const Last last : {Last::none, Last::begin, Last::terminal})
    for (const bool base_absent : {false, true}) CHECK(table(last, base_absent) == "llll llll llll llll");
}

TEST_CASE("recovery: prepared is abandoned while the staged tree is in staging, finished when it is at the path, else refused") {
  CHECK(table(Last::prepared, false) == "!C!! aaaa !!!! !!!!");
  CHECK(table(Last::prepared, true) == "!!!! aaaa !C!! !!!!");
}

TEST_CASE("recovery: committed is finished; an exchange that the disk lost is abandoned only over the tree from before") {
  CHECK(table(Last::committed, false) == "!C!! a!!! !!!! !!!!");
  CHECK(table(Last::committed, true) == "!!!! !!a! !C!! !!!!");
}

TEST_CASE("recovery: reverting swaps back, or is already back, else refused") {
  CHECK(table(Last::reverting, false) == "!R!! r!!! !!!! !!!!");
  CHECK(table(Last::reverting, true) == "!!!! !!r! !R!! !!!!");
}

TEST_CASE("recovery: accepting is done again over the new tree, and over anything else nothing is deleted") {
  CHECK(table(Last::accepting, false) == "kAkk kAkk kAkk kAkk");
  CHECK(table(Last::accepting, true) == "kAkk kAkk kAkk kAkk");
}
