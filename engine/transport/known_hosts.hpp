// SPDX-License-Identifier: MIT
// Private to transport: known_hosts as OpenSSH reads it, markers, hashed names, patterns and negations included. Pure but for
// the two functions at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

namespace envsync::transport {

/// other_type: the host is known, but by keys of other types only.
enum class Verdict : u8 { unknown, known, other_type, changed, revoked };

class KnownHosts {
 public:
  struct Found { Verdict verdict = Verdict::unknown; Location where; };

  void add(const std::string& file, std::string_view text);
  /// `name` in lower case, "[name]:port" where the port is not 22; `key` in base64. A revoked line counts before all others. A name
  /// with a port that no line names is looked for without it, and only a known key counts then.
  Found look(std::string_view name, std::string_view type, std::string_view key) const;
  /// Types of the host's keys, in the order of the lines.
  std::vector<std::string> types_of(std::string_view name) const;
  /// Whether a certificate authority vouches for the host.
  bool has_authority(std::string_view name) const;

 private:
  enum class Marker : u8 { none, revoked, authority };
  struct Line { Marker marker = Marker::none; std::string hosts, type, key; Location where; };
  Found look_exactly(std::string_view name, std::string_view type, std::string_view key) const;
  std::vector<Line> lines_;
};

/// Whether a line's first field names the host.
bool names_host(std::string_view field, std::string_view name);

/// Files that are absent are empty; one that cannot be read is an error, for it may say that a key is revoked.
Result<KnownHosts> read_known_hosts(const std::vector<std::string>& files);
/// Appends a line, and makes the file and its folder where they are absent.
Result<void> append_known_host(const std::string& file, std::string_view name, std::string_view type, std::string_view key, bool hashed);

}  // namespace envsync::transport
