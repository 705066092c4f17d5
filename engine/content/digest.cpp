// SPDX-License-Identifier: MIT
#include "content/digest.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <xxhash.h>

namespace envsync::content {

namespace {

constexpr u64 kSeedOfSegments = 1;

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t wire;
  XXH128_canonicalFromHash(&wire, hash);
  Digest digest;
  std::ranges::transform(wire.digest, digest.bytes.begin(), [](unsigned char c) { return static_cast<std::byte>(c); });
  return digest;
}

}  // namespace

std::optional<Digest> Digest::parse(std::string_view hex) {
  Digest digest;
  if (hex.size() != digest.bytes.size() * 2) return std::nullopt;
  const auto bytes = from_hex(hex);
  if (!bytes) return std::nullopt;
  std::ranges::copy(*bytes, digest.bytes.begin());
  return digest;
}

std::string ContentId::name() const { return fmt::format("{}.{:x}", digest.hex(), size); }

std::optional<ContentId> ContentId::parse(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  if (name.size() < kDigits + 2 || name[kDigits] != '.') return std::nullopt;
  const auto digest = Digest::parse(name.substr(0, kDigits));
  if (!digest) return std::nullopt;
  ContentId id{*digest, 0};
  const std::string_view size = name.substr(kDigits + 1);
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), id.size, 16);
  if (error != std::errc{} || end != size.data() + size.size()) return std::nullopt;
  // One content, one name: no leading zeros, no capitals.
  if (id.name() != name) return std::nullopt;
  return id;
}

Digest digest_of(ByteView bytes, u64 seed) { return canonical(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed)); }

u64 checksum_of(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct Hasher::State {
  // SAFETY: xxHash wants 64-byte alignment, which its own constructor gives.
  XXH3_state_t* xxh = XXH3_createState();
  State() { ENVSYNC_CHECK(xxh != nullptr); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher(u64 seed) : state_(std::make_unique<State>()) {
  ENVSYNC_CHECK(XXH3_128bits_reset_withSeed(state_->xxh, seed) == XXH_OK);
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(ByteView bytes) {
  if (bytes.empty()) return;
  ENVSYNC_CHECK(XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

Digest Hasher::digest() const { return canonical(XXH3_128bits_digest(state_->xxh)); }

Digest digest_of_segments(std::span<const Digest> segments, u64 size) {
  ENVSYNC_CHECK(segments.size() == (size + kSegmentBytes - 1) / kSegmentBytes || (size == 0 && segments.size() == 1));
  if (size == 0) return digest_of({});
  if (size <= kSegmentBytes) return segments.front();
  Hasher hasher(kSeedOfSegments);
  for (const Digest& segment : segments) hasher.update(segment.bytes);
  Bytes tail;
  put_le<u64>(tail, size);
  hasher.update(tail);
  return hasher.digest();
}

FileHasher::FileHasher() = default;

void FileHasher::update(ByteView bytes) {
  while (!bytes.empty()) {
    // A full segment is closed only when more follows, so that a file of exactly one segment is not a large one.
    if (in_segment_ == kSegmentBytes) {
      segments_.push_back(segment_.digest());
      segment_ = Hasher();
      in_segment_ = 0;
    }
    const std::size_t taken = static_cast<std::size_t>(std::min<u64>(kSegmentBytes - in_segment_, bytes.size()));
    segment_.update(bytes.first(taken));
    in_segment_ += taken;
    size_ += taken;
    bytes = bytes.subspan(taken);
  }
}

Digest FileHasher::finish() {
  segments_.push_back(segment_.digest());
  return digest_of_segments(segments_, size_);
}

}  // namespace envsync::content
