// SPDX-License-Identifier: MIT
// FIPS 180-4, sections 5 and 6.2, letter by letter; and the same by the SHA extensions of x86-64.
#include "base/sha256.hpp"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace envsync {
namespace {

constexpr std::size_t kBlockBytes = 64;

alignas(16) constexpr std::array<u32, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
    0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<u32, 8>;
using AddBlocks = void (*)(State&, const std::byte*, std::size_t);

u32 load(const std::byte* bytes) {
  u32 value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<u32>(bytes[i]);
  return value;
}

void add_blocks(State& state, const std::byte* at, std::size_t count) {
  for (; count > 0; --count, at += kBlockBytes) {
    std::array<u32, 64> w{};
    for (std::size_t t = 0; t < 16; ++t) w[t] = load(at + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) {
      const u32 s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const u32 s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < 64; ++t) {
      const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
      const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const State add{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += add[i];
  }
}

#if defined(__x86_64__)

// SAFETY (all casts below): unaligned loads and stores are told as such, of bytes that the arrays hold.
__attribute__((target("sha,sse4.1,ssse3"))) void add_blocks_native(State& state, const std::byte* at, std::size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data())), 0xb1);
  __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(abcd, efgh, 8), cdgh = _mm_blend_epi16(efgh, abcd, 0xf0);
  for (; count > 0; --count, at += kBlockBytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (std::size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i)), swap);
    for (std::size_t i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i >= 4) {
        const __m128i middle = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), middle), w[(i + 3) % 4]);
      }
      const __m128i rounds = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds.data() + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, rounds);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(rounds, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_native() {
  u32 a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  constexpr u32 kSsse3 = 1u << 9, kSse41 = 1u << 19, kSha = 1u << 29;
  if ((c & kSsse3) == 0 || (c & kSse41) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}

AddBlocks choose() { return has_native() ? add_blocks_native : add_blocks; }

#else

AddBlocks choose() { return add_blocks; }

#endif

const AddBlocks kAddBlocks = choose();

}  // namespace

void Sha256Hasher::update(ByteView bytes) {
  size_ += bytes.size();
  if (filled_ > 0) {
    const std::size_t taken = std::min(kBlockBytes - filled_, bytes.size());
    std::ranges::copy(bytes.first(taken), block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += taken;
    bytes = bytes.subspan(taken);
    if (filled_ < kBlockBytes) return;
    kAddBlocks(state_, block_.data(), 1);
    filled_ = 0;
  }
  const std::size_t blocks = bytes.size() / kBlockBytes;
  if (blocks > 0) kAddBlocks(state_, bytes.data(), blocks);
  bytes = bytes.subspan(blocks * kBlockBytes);
  std::ranges::copy(bytes, block_.begin());
  filled_ = bytes.size();
}

Sha256 Sha256Hasher::finish() {
  // A one bit, zeros, and the length in bits fill the last block or two.
  Bytes tail(block_.begin(), block_.begin() + static_cast<std::ptrdiff_t>(filled_));
  tail.push_back(std::byte{0x80});
  while (tail.size() % kBlockBytes != kBlockBytes - 8) tail.push_back(std::byte{0});
  const u64 bits = size_ * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<std::byte>((bits >> shift) & 0xff));
  kAddBlocks(state_, tail.data(), tail.size() / kBlockBytes);
  Sha256 out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((state_[i / 4] >> (24 - 8 * (i % 4))) & 0xff);
  return out;
}

Sha256 sha256(ByteView bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

}  // namespace envsync
