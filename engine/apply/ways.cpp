// SPDX-License-Identifier: MIT
#include "apply/ways.hpp"

#include "format/messages.hpp"
#include "os/paths.hpp"

namespace envsync::apply {

namespace {

constexpr std::string_view kMagic = "EWAY";
constexpr u32 kVersion = 1;
constexpr std::size_t kFileMax = 256;

std::string file_name(const std::string& label) { return "way-" + content::digest_of(as_bytes(label)).hex(); }

}  // namespace

delta::Way load_way(const std::string& label) {
  const std::string folder = os::cache_folder();
  auto dir = folder.empty() ? Result<os::Fd>(Error{ErrorCode::io, "no cache"}) : os::open_dir_absolute(folder);
  if (!dir) return {};
  const auto file = os::read_small(dir->get(), file_name(label), kFileMax);
  const auto payload = file ? format::open_file(kMagic, kVersion, as_bytes(*file)) : Result<Bytes>(file.error());
  if (!payload) return {};
  ByteView in = *payload;
  const auto rate = take_le<u64>(in), round_trip = take_le<u64>(in);
  if (!rate || !round_trip) return {};
  return {static_cast<double>(*rate), static_cast<double>(*round_trip) * 1e-9};
}

void keep_way(os::Files& files, const std::string& label, const delta::Way& measured) {
  const std::string folder = os::cache_folder();
  auto dir = folder.empty() ? Result<os::Fd>(Error{ErrorCode::io, "no cache"}) : os::open_dir_absolute(folder);
  if (!dir || measured.rate <= 0) return;
  const delta::Way before = load_way(label);
  const double rate = before.rate > 0 ? (before.rate + measured.rate) / 2 : measured.rate;
  Bytes out;
  put_le(out, static_cast<u64>(rate));
  put_le(out, static_cast<u64>(measured.round_trip * 1e9));
  (void)os::replace_file(files, dir->get(), file_name(label), format::seal_file(kMagic, kVersion, out), 0600);
}

}  // namespace envsync::apply
