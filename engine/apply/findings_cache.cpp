// SPDX-License-Identifier: MIT
//   findings file := format::seal_file("EFND", 1, key[16] ( code:string severity:u8 file:string what:string )* )     in the cache folder
#include "apply/findings_cache.hpp"

#include <algorithm>

#include <envsync/engine.hpp>

#include "format/messages.hpp"
#include "os/paths.hpp"
#include "python/site_packages.hpp"

namespace envsync::apply {

namespace {

constexpr std::string_view kMagic = "EFND";
constexpr u32 kVersion = 1;
constexpr std::size_t kFileMax = 16u << 20;  // LIMIT

std::string file_name(const std::string& label) { return "findings-" + content::digest_of(as_bytes(label)).hex(); }

void put_content(Bytes& out, const tree::File& file) {
  out.insert(out.end(), file.digest.bytes.begin(), file.digest.bytes.end());
  put_le<u64>(out, file.size);
}

/// pip renames what it is about to remove; of that the size is told.
bool is_leftover(const tree::RelPath& path) {
  if (path.bytes().find('~') == std::string::npos) return false;
  const auto item = python::site_item(path.bytes());
  return item && item->top().starts_with('~');
}

}  // namespace

content::Digest findings_key(const tree::Tree& tree, const std::vector<tree::RelPath>& texts, std::string_view also) {
  content::Hasher hasher;
  Bytes bytes;
  put_string(bytes, version());
  put_string(bytes, also);
  for (const tree::Entry& entry : tree.entries()) {
    put_string(bytes, entry.path.bytes());
    bytes.push_back(static_cast<std::byte>(entry.body.index()));
    if (const tree::Symlink* link = entry.symlink()) put_string(bytes, link->target);
    if (entry.file() != nullptr && is_leftover(entry.path)) put_content(bytes, *entry.file());
    hasher.update(bytes);
    bytes.clear();
  }
  for (const tree::RelPath& path : texts)
    if (const tree::Entry* entry = tree.find(path); entry != nullptr && entry->file() != nullptr) put_content(bytes, *entry->file());
  hasher.update(bytes);
  return hasher.digest();
}

std::optional<std::vector<Finding>> kept_findings(const std::string& label, const content::Digest& key) {
  const std::string folder = os::cache_folder();
  auto dir = folder.empty() ? Result<os::Fd>(Error{ErrorCode::io, "no cache"}) : os::open_dir_absolute(folder);
  const auto file = dir ? os::read_small(dir->get(), file_name(label), kFileMax) : Result<std::string>(dir.error());
  const auto payload = file ? format::open_file(kMagic, kVersion, as_bytes(*file)) : Result<Bytes>(file.error());
  if (!payload || payload->size() < key.bytes.size()) return std::nullopt;
  ByteView in = *payload;
  if (!std::ranges::equal(in.first(key.bytes.size()), key.bytes)) return std::nullopt;
  in = in.subspan(key.bytes.size());
  std::vector<Finding> findings;
  while (!in.empty()) {
    const auto code = take_string(in);
    const auto severity = take_le<u8>(in);
    const auto place = take_string(in), what = take_string(in);
    if (!code || !severity || !place || !what || *severity > static_cast<u8>(Severity::error)) return std::nullopt;
    findings.push_back({std::string(*code), static_cast<Severity>(*severity), std::string(*place), std::string(*what)});
  }
  return findings;
}

void keep_findings(Run& run, const std::string& label, const content::Digest& key, const std::vector<Finding>& findings) {
  const std::string folder = os::cache_folder();
  if (folder.empty()) return;
  auto dir = os::open_dir_absolute(folder);
  if (!dir) return;
  Bytes all(key.bytes.begin(), key.bytes.end());
  for (const Finding& finding : findings) {
    put_string(all, finding.code);
    all.push_back(static_cast<std::byte>(finding.severity));
    put_string(all, finding.file);
    put_string(all, finding.what);
  }
  (void)os::replace_cache_file(*run.files, dir->get(), file_name(label), format::seal_file(kMagic, kVersion, all));
}

}  // namespace envsync::apply
