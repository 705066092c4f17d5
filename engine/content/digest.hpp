// SPDX-License-Identifier: MIT
// Identity of content: XXH3-128. The channel is authenticated and the tree is no adversary, so speed wins; RECORD's
// sha256 stays available for wheels.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.hpp"

namespace envsync::content {

/// 16 bytes, XXH3-128 in canonical (big-endian) order.
struct Digest {
  std::array<std::byte, 16> bytes{};
  auto operator<=>(const Digest&) const = default;
  bool is_zero() const { return *this == Digest{}; }
  std::string hex() const { return to_hex(bytes); }
  static std::optional<Digest> parse(std::string_view hex);
};
struct DigestHash {
  std::size_t operator()(const Digest& d) const noexcept {
    u64 v = 0;
    for (std::size_t i = 0; i < 8; ++i) v = (v << 8) | static_cast<u64>(d.bytes[i]);
    return static_cast<std::size_t>(v);
  }
};

/// Contents are equal when size and digest are.
struct ContentId {
  Digest digest;
  u64 size = 0;
  auto operator<=>(const ContentId&) const = default;
  /// "<32 hex digits>.<size in hex>": the name of a content in the pool.
  std::string name() const;
  static std::optional<ContentId> parse(std::string_view name);
};
struct ContentIdHash {
  std::size_t operator()(const ContentId& c) const noexcept { return DigestHash{}(c.digest) ^ static_cast<std::size_t>(c.size); }
};

/// Files larger than this are hashed, sent and checked in segments of this size.
inline constexpr u64 kSegmentBytes = 8u << 20;

/// XXH3-128 of bytes, with a seed.
Digest digest_of(ByteView bytes, u64 seed = 0);
/// XXH3-64: integrity of one record or frame, not identity.
u64 checksum_of(ByteView bytes);

/// Streaming XXH3-128.
class Hasher {
 public:
  explicit Hasher(u64 seed = 0);
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();
  void update(ByteView bytes);
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of a file: up to one segment its XXH3-128; larger: XXH3-128, seed 1, over the digests of its
/// segments, then its size as u64le.
Digest digest_of_segments(std::span<const Digest> segments, u64 size);
/// Feeds bytes in order and gives the file's digest.
class FileHasher {
 public:
  FileHasher();
  void update(ByteView bytes);
  u64 size() const { return size_; }
  Digest finish();

 private:
  Hasher segment_;
  std::vector<Digest> segments_;
  u64 in_segment_ = 0, size_ = 0;
};

}  // namespace envsync::content
