// SPDX-License-Identifier: MIT
// What every channel keeps. A peer has a constructor that takes a Manner, channel() and die().
#pragma once

#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "channel/channel.hpp"

namespace envsync::testing {

using channel::Channel;

inline constexpr Seconds kLong{30};

/// The other side: it gives back what it is given and ends when that ends; `mute`: it neither reads nor writes; `last_words`:
/// it says them and ends.
enum class Manner { echo, mute, last_words };
inline constexpr std::string_view kLastWords = "out of order\n";

inline Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  u32 state = 1;
  for (auto& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

/// Until the end of the stream or an error.
inline Bytes read_all(Channel& channel) {
  Bytes all, buffer(100'000);
  for (;;) {
    const auto got = channel.read(buffer, deadline_in(kLong));
    if (!got || *got == 0) return all;
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*got));
  }
}

template <class T>
bool is_lost(const Result<T>& result) { return !result && result.error().code == ErrorCode::connection_lost; }

}  // namespace envsync::testing
