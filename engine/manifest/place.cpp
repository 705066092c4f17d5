// SPDX-License-Identifier: MIT
#include "manifest/place.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace envsync::manifest {
namespace {

constexpr std::string_view kLocal = "local";
constexpr std::size_t kEnvironmentPathMax = 4000;  // LIMIT: below the kernel's 4,096 with room for envsync's own names
constexpr std::size_t kHostNameMax = 255;

Error refused(std::string what) { return Error(ErrorCode::usage, std::move(what)); }

bool begins_path(std::string_view text) { return text.starts_with('/') || text.starts_with('~'); }

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) out.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

/// "~", "/root", "/home", "/home/ada": folders that hold a person's files, whatever else they hold.
bool is_home(const std::vector<std::string_view>& parts) {
  if (parts.size() == 1) return parts[0] == "~" || parts[0] == "root" || parts[0] == "home";
  return parts.size() == 2 && (parts[0] == "home" || parts[0] == "Users");
}

bool is_name_character(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') || u >= 0x80 || c == '.' || c == '_' || c == '-' || c == '+';
}

/// An address, perhaps with a zone: "fe80::1%eth0".
bool is_ipv6(std::string_view text) {
  const std::size_t zone = text.find('%');
  if (zone != std::string_view::npos) {
    return std::ranges::all_of(text.substr(zone + 1), is_name_character) && zone + 1 < text.size() && is_ipv6(text.substr(0, zone));
  }
  return std::ranges::count(text, ':') >= 2 && text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

/// What follows the name: "", ":22", ":/srv", ":22:/srv".
Result<void> take_rest(std::string_view rest, std::string_view whole, Host& host) {
  if (rest.empty()) return ok();
  rest.remove_prefix(1);
  if (!begins_path(rest)) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool is_port = end > 0 && (end == rest.size() || (rest[end] == ':' && begins_path(rest.substr(end + 1))));
    if (!is_port) {
      if (is_ipv6(whole)) return refused(fmt::format("an IPv6 address without brackets: '{}'", whole)).hint(fmt::format("write '[{}]'", whole));
      return refused(fmt::format("'{}': what follows the colon is neither a port nor a path that begins with / or ~/", printable(whole)))
          .hint(fmt::format("write '{}:~/{}' for a folder of the remote home", printable(whole.substr(0, whole.find(':'))), printable(rest)));
    }
    const auto port = port_of(rest.substr(0, end));
    if (!port) return refused(fmt::format("'{}' is no port: ports go from 1 to 65535", rest.substr(0, end)));
    host.port = *port;
    if (end == rest.size()) return ok();
    rest.remove_prefix(end + 1);
  }
  TRY(host.path, environment_path(rest));
  return ok();
}

Result<Host> parse_local(std::string_view text) {
  Host host;
  host.is_local = true;
  host.name = kLocal;
  TRY_STATUS(take_rest(text.substr(kLocal.size()), text, host));
  if (host.port != 0) return refused("'local' is this machine and takes no port").hint("write 'localhost' to reach it over ssh");
  return host;
}

}  // namespace

Result<std::string> environment_path(std::string_view path) {
  if (path.empty()) return refused("an empty path");
  if (path.size() > kEnvironmentPathMax) return refused(fmt::format("a path of {} bytes, at most {} are allowed", path.size(), kEnvironmentPathMax));
  if (!begins_path(path)) return refused(fmt::format("'{}' is no absolute path", printable(path))).hint("begin the path with / or ~/");
  const auto parts = components(path);
  if (parts.empty()) return refused("'/' is the whole machine, not an environment");
  if (is_home(parts)) {
    return refused(fmt::format("'{}' is a home folder, not an environment", printable(path)))
        .hint(fmt::format("name a folder in it, such as '{}/venv'", printable(path.substr(0, path.find_last_not_of('/') + 1))));
  }
  if (parts[0].starts_with('~') && parts[0] != "~") {
    return refused(fmt::format("'{}' means the home of another user, which is not looked up", printable(parts[0]))).hint("write the path from / on");
  }
  std::string out(path.starts_with('/') ? "" : "~");
  for (const std::string_view part : std::span(parts).subspan(path.starts_with('/') ? 0 : 1)) {
    if (part == "." || part == "..") return refused(fmt::format("'{}' goes through '{}'", printable(path), part)).hint("write the path without it");
    if (part.starts_with(".envsync")) return refused(fmt::format("'{}' lies in envsync's own state", printable(path)));
    out.append("/").append(part);
  }
  return out;
}

std::optional<u16> port_of(std::string_view digits) {
  u16 port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0) return std::nullopt;
  return port;
}

std::string host_name(const Host& host) {
  if (host.is_local) return std::string(kLocal);
  const bool is_address = host.host.find(':') != std::string::npos;
  std::string out = host.user.empty() ? "" : host.user + "@";
  out += is_address ? "[" + host.host + "]" : host.host;
  if (host.port != 0) out += fmt::format(":{}", host.port);
  return out;
}

Result<void> check_host_name(std::string_view name) {
  if (name.empty()) return refused("a host without a name");
  if (name.size() > kHostNameMax) return refused(fmt::format("a host name of {} bytes, at most {} are allowed", name.size(), kHostNameMax));
  // ssh would read it as an option.
  if (name.starts_with('-')) return refused(fmt::format("the host name '{}' begins with '-'", printable(name)));
  if (is_ipv6(name)) return ok();
  const auto bad = std::ranges::find_if_not(name, is_name_character);
  if (bad != name.end()) {
    return refused(fmt::format("'{}' cannot stand in the host name '{}'", printable(std::string_view(bad, bad + 1)), printable(name)));
  }
  return ok();
}

Result<void> check_user_name(std::string_view user) {
  if (user.empty()) return refused("a user without a name");
  if (user.starts_with('-')) return refused(fmt::format("the user name '{}' begins with '-'", printable(user)));
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f || std::string_view("'`\"$;&<>|(){}*?/").find(c) != std::string_view::npos;
  };
  if (std::ranges::any_of(user, is_bad)) return refused(fmt::format("the user name '{}' holds a character that no user name has", printable(user)));
  return ok();
}

Result<Host> parse_host(const std::string& text) {
  if (text == kLocal || text.starts_with("local:")) return parse_local(text);
  if (is_range(text)) {
    return refused(fmt::format("'{}' names several hosts where one is wanted", printable(text))).hint("a range goes into 'targets'");
  }
  const std::size_t head_end = std::min(text.find_first_of(":/["), text.size());
  if (begins_path(text) || text == "." || text == ".." || (head_end < text.size() && text[head_end] == '/')) {
    return refused(fmt::format("'{}' is a path where a host is wanted", printable(text)))
        .hint(fmt::format("write 'local:{}' for a folder of this machine", begins_path(text) ? printable(text) : "/" + printable(text)));
  }
  Host host;
  std::string_view rest = text;
  if (const std::size_t at = text.substr(0, head_end).rfind('@'); at != std::string::npos) {
    host.user = text.substr(0, at);
    TRY_STATUS(check_user_name(host.user));
    rest.remove_prefix(at + 1);
  }
  std::size_t name_end = std::min(rest.find(':'), rest.size());
  if (rest.starts_with('[')) {
    name_end = rest.find(']');
    if (name_end == std::string_view::npos || !is_ipv6(rest.substr(1, name_end - 1))) {
      return refused(fmt::format("no IPv6 address in the brackets of '{}'", printable(text)));
    }
    host.host = std::string(rest.substr(1, name_end - 1));
    ++name_end;
    if (name_end < rest.size() && rest[name_end] != ':') return refused(fmt::format("'{}' goes on after its address", printable(text)));
  } else {
    host.host = std::string(rest.substr(0, name_end));
  }
  TRY_STATUS(check_host_name(host.host));
  if (host.host == kLocal) return refused("'local' is this machine and takes no user").hint("write 'localhost' to reach it over ssh");
  TRY_STATUS(take_rest(rest.substr(name_end), text, host));
  host.name = host_name(host);
  return host;
}

Result<Source> parse_place(const std::string& text) {
  Source source;
  if (text == "target" || text.starts_with("target:")) {
    return Error(ErrorCode::not_built, fmt::format("'{}' as a source is not built yet in this version", printable(text)))
        .hint("name the host, or 'local', that holds the environment");
  }
  const std::size_t head_end = std::min(text.find_first_of(":/["), text.size());
  const bool is_path = begins_path(text) || text == "." || text == ".." || (head_end < text.size() && text[head_end] == '/');
  if (!is_path) {
    TRY(source.host, parse_host(text));
    source.path = source.host.path;
    return source;
  }
  source.host.is_local = true;
  source.host.name = kLocal;
  source.path = text;
  // A relative path is the command line's to complete; a manifest refuses it.
  if (begins_path(text)) {
    TRY(source.path, environment_path(text));
  }
  source.host.path = source.path;
  return source;
}

}  // namespace envsync::manifest
