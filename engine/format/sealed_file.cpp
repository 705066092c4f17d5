// SPDX-License-Identifier: MIT
// A file that tells what it is, in which version, and whether it is whole.
//
//   file := magic[4] version:u32le size:u64le checksum:u64le payload[size]      checksum: XXH3-64 of the payload
#include "format/messages.hpp"

#include <fmt/format.h>

namespace envsync::format {
namespace {

constexpr std::size_t kMagicBytes = 4;

Error corrupt(std::string why) { return Error(ErrorCode::corrupt, "the file does not decode").cause(std::move(why)); }

}  // namespace

Bytes seal_file(std::string_view magic, u32 version, ByteView payload) {
  ENVSYNC_CHECK(magic.size() == kMagicBytes);
  Bytes out;
  out.reserve(kMagicBytes + 4 + 8 + 8 + payload.size());
  const ByteView magic_bytes = as_bytes(magic);
  out.insert(out.end(), magic_bytes.begin(), magic_bytes.end());
  put_le(out, version);
  put_le(out, u64{payload.size()});
  put_le(out, content::checksum_of(payload));
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Result<Bytes> open_file(std::string_view magic, u32 version, ByteView file) {
  ENVSYNC_CHECK(magic.size() == kMagicBytes);
  if (file.size() < kMagicBytes || as_text(file.first(kMagicBytes)) != magic) {
    return corrupt(fmt::format("it does not begin with '{}'", printable(magic)));
  }
  ByteView in = file.subspan(kMagicBytes);
  const auto found = take_le<u32>(in);
  const auto size = take_le<u64>(in);
  const auto checksum = take_le<u64>(in);
  if (!found || !size || !checksum) return corrupt("its header is cut");
  if (*found != version) return corrupt(fmt::format("it has format version {}, this envsync reads version {}", *found, version));
  if (*size != in.size()) return corrupt(fmt::format("it has {} bytes of content, its header says {}", in.size(), *size));
  if (*checksum != content::checksum_of(in)) return corrupt("its content does not match its checksum");
  return Bytes(in.begin(), in.end());
}

}  // namespace envsync::format
