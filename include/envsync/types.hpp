// SPDX-License-Identifier: MIT
// Integers by their width. Sizes of content are always u64, never int.
#pragma once

#include <cstddef>
#include <cstdint>

namespace envsync {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

}  // namespace envsync
