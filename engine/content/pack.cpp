// SPDX-License-Identifier: MIT
#include "content/pack.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "content/zstd.hpp"

namespace envsync::content {

namespace {

constexpr std::string_view kMagic = "EP1\n";
constexpr std::size_t kHeaderBytes = 24, kPieceBytes = 16;
enum class Codec : u8 { raw = 0, zstd = 1 };

// The sample: enough places that a pack of mixed files is judged by its mixture, few enough bytes that what does not
// compress costs about 3 % of compressing it.
constexpr std::size_t kSamplePlaces = 16, kSampleBytes = 8u << 10;
constexpr int kSampleLevel = 1;

/// Less than about 3 % saved does not pay for decompressing.
bool pays(std::size_t compressed, std::size_t raw) { return compressed + raw / 32 < raw; }

template <std::unsigned_integral T>
std::byte* write_le(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *at++ = static_cast<std::byte>(static_cast<u64>(value) >> (8 * i));
  return at;
}

bool sample_pays(ByteView body) {
  if (body.size() < 4 * kSamplePlaces * kSampleBytes) return true;  // trying the whole is as cheap
  Bytes sample;
  sample.reserve(kSamplePlaces * kSampleBytes);
  const std::size_t stride = (body.size() - kSampleBytes) / (kSamplePlaces - 1);
  for (std::size_t i = 0; i < kSamplePlaces; ++i) {
    const ByteView place = body.subspan(i * stride, kSampleBytes);
    sample.insert(sample.end(), place.begin(), place.end());
  }
  return pays(compress(sample, kSampleLevel).size(), sample.size());
}

Error bad_pack(std::string_view why) { return Error(ErrorCode::protocol, fmt::format("a pack that is not valid: {}", why)); }

struct Header {
  Codec codec = Codec::raw;
  u32 raw_size = 0, piece_count = 0;
  u64 checksum = 0;
};

Result<Header> take_header(ByteView& in) {
  if (in.size() < kHeaderBytes) return bad_pack("shorter than its header");
  if (as_text(in.first(kMagic.size())) != kMagic) return bad_pack("no magic");
  const u8 codec = static_cast<u8>(in[4]);
  if (codec > static_cast<u8>(Codec::zstd)) return bad_pack(fmt::format("codec {}", codec));
  if (in[5] != std::byte{0} || in[6] != std::byte{0} || in[7] != std::byte{0}) return bad_pack("reserved bytes are set");
  in = in.subspan(8);
  Header header{static_cast<Codec>(codec), *take_le<u32>(in), *take_le<u32>(in), *take_le<u64>(in)};
  if (header.raw_size > kPackRawMax) return bad_pack(fmt::format("{} bytes, at most {} are allowed", header.raw_size, kPackRawMax));
  if (header.piece_count > kPackPiecesMax) return bad_pack(fmt::format("{} pieces, at most {} are allowed", header.piece_count, kPackPiecesMax));
  if (header.piece_count * kPieceBytes > header.raw_size) return bad_pack("more pieces than bytes");
  return header;
}

/// The pieces at the front of the body; their lengths add up to what follows.
Result<std::vector<Piece>> take_pieces(ByteView& in, u32 count) {
  std::vector<Piece> pieces;
  pieces.reserve(count);
  u64 total = 0;
  for (u32 i = 0; i < count; ++i) {
    const Piece piece{*take_le<u32>(in), *take_le<u64>(in), *take_le<u32>(in)};
    if (!checked_add<u64>(piece.offset, piece.length)) return bad_pack("a piece beyond the end of any file");
    total += piece.length;
    pieces.push_back(piece);
  }
  if (total != in.size()) return bad_pack(fmt::format("pieces of {} bytes, {} follow", total, in.size()));
  return pieces;
}

}  // namespace

PackBuilder::PackBuilder(std::size_t piece_count, std::size_t content_bytes)
    : bytes_(kHeaderBytes + piece_count * kPieceBytes + content_bytes),
      piece_count_(piece_count),
      at_(kHeaderBytes + piece_count * kPieceBytes) {
  ENVSYNC_CHECK(piece_count <= kPackPiecesMax && bytes_.size() - kHeaderBytes <= kPackRawMax);
}

std::span<std::byte> PackBuilder::add(const Piece& piece) {
  ENVSYNC_CHECK(pieces_ < piece_count_ && bytes_.size() - at_ >= piece.length);
  std::byte* row = bytes_.data() + kHeaderBytes + pieces_++ * kPieceBytes;
  row = write_le<u32>(row, piece.want);
  row = write_le<u64>(row, piece.offset);
  write_le<u32>(row, piece.length);
  const std::span<std::byte> place(bytes_.data() + at_, piece.length);
  at_ += piece.length;
  return place;
}

Buffer PackBuilder::finish(int level) && {
  ENVSYNC_CHECK(pieces_ == piece_count_ && at_ == bytes_.size());
  const ByteView body = ByteView(bytes_).subspan(kHeaderBytes);
  const auto write_header = [&](Buffer& out, Codec codec) {
    std::byte* at = std::copy_n(as_bytes(kMagic).data(), kMagic.size(), out.data());
    at = write_le<u32>(at, static_cast<u32>(codec));  // then three reserved bytes
    at = write_le<u32>(at, narrow<u32>(body.size()));
    at = write_le<u32>(at, narrow<u32>(piece_count_));
    write_le<u64>(at, checksum_of(body));
  };
  if (level != kRawLevel && sample_pays(body)) {
    Buffer packed = compress_behind(kHeaderBytes, body, level);
    if (pays(packed.size() - kHeaderBytes, body.size())) {
      write_header(packed, Codec::zstd);
      // Packs wait for the link: what compressed well waits in a block of its own size.
      return packed.size() < body.size() / 2 ? Buffer::copy_of(packed) : std::move(packed);
    }
  }
  write_header(bytes_, Codec::raw);
  return std::move(bytes_);
}

u64 raw_bytes_of(ByteView pack) {
  constexpr std::size_t kBefore = 8, kField = 4;
  if (pack.size() < kBefore + kField) return 0;
  ByteView in = pack.subspan(kBefore);
  return *take_le<u32>(in);
}

Result<OpenPack> decode_pack(Buffer encoded) {
  ByteView in = encoded;
  TRY(const Header header, take_header(in));
  OpenPack pack;
  if (header.codec == Codec::zstd) {
    TRY(pack.bytes, unpack(in, header.raw_size));
  } else {
    pack.front = kHeaderBytes;
    pack.bytes = std::move(encoded);
  }
  in = pack.content();
  if (in.size() != header.raw_size) return bad_pack(fmt::format("{} bytes, its header says {}", in.size(), header.raw_size));
  if (checksum_of(in) != header.checksum) return bad_pack("wrong checksum");
  TRY(pack.pieces, take_pieces(in, header.piece_count));
  pack.front = pack.bytes.size() - in.size();
  return pack;
}

}  // namespace envsync::content
