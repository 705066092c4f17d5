// SPDX-License-Identifier: MIT
#include "transport/known_hosts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "os/files.hpp"

namespace envsync::transport {
namespace {

constexpr std::size_t kFileBytesMax = 64u << 20;  // LIMIT: a site's whole list of hosts
constexpr std::size_t kHashBytes = 20;            // SHA-1, as the format has it: it hides names, it protects nothing

/// The next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
  const auto word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

Bytes hash_of(ByteView salt, std::string_view name) {
  Bytes out(kHashBytes);
  unsigned size = 0;
  const auto bytes = as_bytes(name);
  // SAFETY: OpenSSL's name for a byte is unsigned char.
  if (!HMAC(EVP_sha1(), salt.data(), static_cast<int>(salt.size()), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
            reinterpret_cast<unsigned char*>(out.data()), &size) || size != kHashBytes) out.clear();
  return out;
}

/// "|1|salt|hash"
bool is_hash_of(std::string_view field, std::string_view name) {
  const std::size_t bar = field.find('|', 3);
  if (!field.starts_with("|1|") || bar == std::string_view::npos) return false;
  const auto salt = from_base64(field.substr(3, bar - 3)), hash = from_base64(field.substr(bar + 1));
  return salt && hash && salt->size() == kHashBytes && hash->size() == kHashBytes && *hash == hash_of(*salt, name);
}

/// '*' and '?', without recursion: the last star takes one more byte each time the rest does not fit.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// ~/.ssh of a new account; where it cannot be made, opening the file says so.
void make_folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string folder = file.substr(0, slash == std::string::npos ? 0 : slash);
  const std::size_t above = folder.rfind('/');
  if (above == std::string::npos) return;
  const auto parent = os::open_dir_absolute(folder.substr(0, above + 1));
  os::PosixFiles files;
  if (parent) static_cast<void>(files.mkdir(parent->get(), folder.substr(above + 1), 0700).has_value());
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

bool names_host(std::string_view field, std::string_view name) {
  if (field.starts_with('|')) return is_hash_of(field, name);
  bool found = false;
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(','), field.size());
    const std::string pattern = lower(field.substr(0, end));
    field.remove_prefix(std::min(end + 1, field.size()));
    const bool is_negated = pattern.starts_with('!');
    if (!matches(std::string_view(pattern).substr(is_negated ? 1 : 0), name)) continue;
    if (is_negated) return false;
    found = true;
  }
  return found;
}

void KnownHosts::add(const std::string& file, std::string_view text) {
  for (u32 number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    auto rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    auto word = take_word(rest);
    if (word.empty() || word.starts_with('#')) continue;
    Line line;
    line.where.file = file;
    line.where.line = number;
    if (word.starts_with('@')) {
      if (word != "@revoked" && word != "@cert-authority") continue;
      line.marker = word == "@revoked" ? Marker::revoked : Marker::authority;
      word = take_word(rest);
    }
    line.hosts = word;
    line.type = take_word(rest);
    line.key = take_word(rest);
    if (!line.key.empty()) lines_.push_back(std::move(line));
  }
}

KnownHosts::Found KnownHosts::look_exactly(std::string_view name, std::string_view type, std::string_view key) const {
  Found found;
  const auto better = [&](Verdict verdict, const Line& line) {
    // A host may have several keys: one that fits counts more than one that does not.
    const auto rank = [](Verdict v) { return v == Verdict::known ? 3 : v == Verdict::changed ? 2 : v == Verdict::other_type ? 1 : 0; };
    if (rank(verdict) > rank(found.verdict)) found = {verdict, line.where};
  };
  for (const Line& line : lines_) {
    if (line.marker == Marker::authority || !names_host(line.hosts, name)) continue;
    const bool is_equal = line.type == type && line.key == key;
    if (line.marker == Marker::revoked) {
      if (is_equal) return {Verdict::revoked, line.where};
      continue;
    }
    better(is_equal ? Verdict::known : line.type == type ? Verdict::changed : Verdict::other_type, line);
  }
  return found;
}

KnownHosts::Found KnownHosts::look(std::string_view name, std::string_view type, std::string_view key) const {
  Found found = look_exactly(name, type, key);
  const std::size_t bracket = name.starts_with('[') ? name.find("]:") : std::string_view::npos;
  if (bracket == std::string_view::npos || found.verdict == Verdict::revoked) return found;
  const Found plain = look_exactly(name.substr(1, bracket - 1), type, key);
  if (plain.verdict == Verdict::revoked || (plain.verdict == Verdict::known && found.verdict == Verdict::unknown)) return plain;
  return found;
}

std::vector<std::string> KnownHosts::types_of(std::string_view name) const {
  std::vector<std::string> types;
  for (const Line& line : lines_)
    if (line.marker == Marker::none && std::ranges::find(types, line.type) == types.end() && names_host(line.hosts, name)) types.push_back(line.type);
  return types;
}

bool KnownHosts::has_authority(std::string_view name) const {
  return std::ranges::any_of(lines_, [&](const Line& line) { return line.marker == Marker::authority && names_host(line.hosts, name); });
}

Result<KnownHosts> read_known_hosts(const std::vector<std::string>& files) {
  KnownHosts known;
  for (const auto& path : files) {
    // By name: the file may be a link, and /dev/null is a usual way to say that there is none.
    const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && (errno == ENOENT || errno == ENOTDIR)) continue;
    if (!file) return os::os_error(errno, "read", path);
    TRY(const os::Stat stat, os::stat_fd(file.get()));
    if (stat.kind != os::Kind::file) continue;
    if (stat.size > kFileBytesMax) return Error(ErrorCode::connect_failed, fmt::format("'{}' is larger than {} MiB", printable(path), kFileBytesMax >> 20));
    Bytes text(stat.size);
    TRY(const std::size_t got, os::read_at(file.get(), 0, text, path));
    known.add(path, as_text(std::span(text).first(got)));
  }
  return known;
}

Result<void> append_known_host(const std::string& file, std::string_view name, std::string_view type, std::string_view key, bool hashed) {
  std::string hosts(name);
  if (hashed) {
    Bytes salt(kHashBytes);
    // SAFETY: as above.
    if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), static_cast<int>(salt.size())) != 1)
      return Error(ErrorCode::io, "no random bytes for a hashed host name");
    hosts = fmt::format("|1|{}|{}", to_base64(salt), to_base64(hash_of(salt, name)));
  }
  make_folder_of(file);
  const os::Fd out(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (!out) return os::os_error(errno, "open", file);
  std::string line = fmt::format("{} {} {}\n", hosts, type, key);
  TRY(const os::Stat stat, os::stat_fd(out.get()));
  std::array<std::byte, 1> last;
  if (stat.kind == os::Kind::file && stat.size > 0 && os::read_at(out.get(), stat.size - 1, last, file).value_or(0) == 1 && last[0] != std::byte{'\n'}) line.insert(0, "\n");
  // One write, so that lines of several processes do not mix.
  const ssize_t written = ::write(out.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) return os::os_error(written < 0 ? errno : ENOSPC, "write to", file);
  return ok();
}

}  // namespace envsync::transport
