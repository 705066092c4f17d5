// SPDX-License-Identifier: MIT
#include "content/pack.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

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

/// In the pack's own buffer: a second one would be as large again.
Bytes body_of(OpenPack pack) {
  Bytes pieces;
  pieces.reserve(pack.pieces.size() * kPieceBytes);
  for (const Piece& piece : pack.pieces) {
    put_le<u32>(pieces, piece.want);
    put_le<u64>(pieces, piece.offset);
    put_le<u32>(pieces, piece.length);
  }
  pack.bytes.insert(pack.bytes.begin(), pieces.begin(), pieces.end());
  return std::move(pack.bytes);
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

Bytes encode_pack(OpenPack pack, int level) {
  ENVSYNC_CHECK(pack.pieces.size() <= kPackPiecesMax);
  const std::size_t piece_count = pack.pieces.size();
  const Bytes body = body_of(std::move(pack));
  ENVSYNC_CHECK(body.size() <= kPackRawMax);
  Bytes packed;
  if (level != kRawLevel && sample_pays(body)) packed = compress(body, level);
  const bool is_packed = !packed.empty() && pays(packed.size(), body.size());
  const Bytes& sent = is_packed ? packed : body;
  Bytes out;
  out.reserve(kHeaderBytes + sent.size());
  const ByteView magic = as_bytes(kMagic);
  out.insert(out.end(), magic.begin(), magic.end());
  put_le<u32>(out, static_cast<u32>(is_packed ? Codec::zstd : Codec::raw));  // codec, then three reserved bytes
  put_le<u32>(out, narrow<u32>(body.size()));
  put_le<u32>(out, narrow<u32>(piece_count));
  put_le<u64>(out, checksum_of(body));
  out.insert(out.end(), sent.begin(), sent.end());
  return out;
}

Result<OpenPack> decode_pack(ByteView encoded) {
  ByteView in = encoded;
  TRY(const Header header, take_header(in));
  Bytes unpacked;
  if (header.codec == Codec::zstd) {
    TRY(unpacked, decompress(in, header.raw_size));
    in = unpacked;
  }
  if (in.size() != header.raw_size) return bad_pack(fmt::format("{} bytes, its header says {}", in.size(), header.raw_size));
  if (checksum_of(in) != header.checksum) return bad_pack("wrong checksum");
  OpenPack pack;
  TRY(pack.pieces, take_pieces(in, header.piece_count));
  if (header.codec == Codec::zstd) {
    // The unpacked body becomes the content in place: one move of the bytes instead of a second buffer.
    const std::size_t front = unpacked.size() - in.size();
    std::memmove(unpacked.data(), unpacked.data() + front, in.size());
    unpacked.resize(unpacked.size() - front);
    pack.bytes = std::move(unpacked);
  } else {
    pack.bytes.assign(in.begin(), in.end());
  }
  return pack;
}

}  // namespace envsync::content
