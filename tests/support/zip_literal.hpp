// SPDX-License-Identifier: MIT
// Zip archives byte by byte, the hostile ones too: what minizip would not write.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "base/bytes.hpp"
#include "python/record.hpp"
#include "python/sha256.hpp"

namespace envsync::test {

struct Zipped {
  std::string name, content;
  u32 mode = 0100644;
  bool is_deflated = false;
  u16 flags = 0, method = 0;          // besides
  std::optional<u64> size = {}, packed = {};  // that the archive lies about
  std::optional<u32> crc = {};
};

inline std::string deflated(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0'), in(text);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct ZipOptions { std::optional<u16> count; bool shares_bytes = false; };  // every entry's bytes are those of the first

inline std::string zip(const std::vector<Zipped>& files, ZipOptions options = {}) {
  Bytes out, directory;
  for (const Zipped& file : files) {
    const std::string body = file.is_deflated ? deflated(file.content) : file.content;
    const u32 at = options.shares_bytes ? 0 : static_cast<u32>(out.size());
    Bytes head;  // what the local header and the directory share
    put_le<u16>(head, 20), put_le<u16>(head, file.flags);
    put_le<u16>(head, file.method != 0 ? file.method : file.is_deflated ? 8 : 0);
    put_le<u16>(head, 0x6c20), put_le<u16>(head, 0x5821);  // 2024-01-01 13:33:00
    put_le<u32>(head, file.crc.value_or(static_cast<u32>(::crc32(0, reinterpret_cast<const Bytef*>(file.content.data()), static_cast<uInt>(file.content.size())))));
    put_le<u32>(head, static_cast<u32>(file.packed.value_or(body.size())));
    put_le<u32>(head, static_cast<u32>(file.size.value_or(file.content.size())));
    put_le<u16>(head, static_cast<u16>(file.name.size()));
    const auto add = [](Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); };
    if (!options.shares_bytes || out.empty()) {
      put_le<u32>(out, 0x04034b50);
      add(out, head), put_le<u16>(out, 0), add(out, as_bytes(file.name)), add(out, as_bytes(body));
    }
    put_le<u32>(directory, 0x02014b50), put_le<u16>(directory, 0x0314);  // made on Unix
    add(directory, head), put_le<u16>(directory, 0), put_le<u16>(directory, 0), put_le<u16>(directory, 0), put_le<u16>(directory, 0);
    put_le<u32>(directory, file.mode << 16), put_le<u32>(directory, at), add(directory, as_bytes(file.name));
  }
  const u32 begin = static_cast<u32>(out.size());
  const u16 count = options.count.value_or(static_cast<u16>(files.size()));
  out.insert(out.end(), directory.begin(), directory.end());
  put_le<u32>(out, 0x06054b50), put_le<u32>(out, 0), put_le<u16>(out, count), put_le<u16>(out, count);
  put_le<u32>(out, static_cast<u32>(directory.size())), put_le<u32>(out, begin), put_le<u16>(out, 0);
  return std::string(as_text(out));
}

/// The files of the wheel demo 1.0, its dist-info completed: WHEEL, METADATA, and RECORD with true sums, where `files` has none of them.
inline std::vector<Zipped> demo_wheel(std::vector<Zipped> files, std::string_view extra_rows = {}) {
  const std::string info = "demo-1.0.dist-info/";
  const auto has = [&](const std::string& name) { return std::ranges::any_of(files, [&](const Zipped& one) { return one.name == name; }); };
  if (!has(info + "WHEEL")) files.push_back({info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"});
  if (!has(info + "METADATA")) files.push_back({info + "METADATA", "Metadata-Version: 2.1\nName: Demo\nVersion: 1.0\n"});
  if (has(info + "RECORD")) return files;
  std::string record(extra_rows);
  for (const Zipped& one : files) {
    if (one.name.ends_with('/')) continue;
    record += python::csv_field(one.name) + "," + python::render_record_hash(python::sha256(as_bytes(one.content))) + "," + std::to_string(one.content.size()) + "\n";
  }
  files.push_back({info + "RECORD", record + info + "RECORD,,\n"});
  return files;
}

}  // namespace envsync::test
