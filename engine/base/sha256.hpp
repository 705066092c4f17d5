// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4): what the rows of a RECORD name content by. By the processor's own instructions where it has them.
#pragma once

#include <array>

#include "base/bytes.hpp"

namespace envsync {

using Sha256 = std::array<std::byte, 32>;

class Sha256Hasher {
 public:
  void update(ByteView bytes);
  /// Once, after the last update.
  Sha256 finish();

 private:
  std::array<u32, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  u64 size_ = 0;
};

Sha256 sha256(ByteView bytes);

}  // namespace envsync
