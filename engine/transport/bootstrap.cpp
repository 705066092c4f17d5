// SPDX-License-Identifier: MIT
#include "transport/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>

#include <fmt/format.h>

#include "os/files.hpp"

namespace envsync::transport {
namespace {

constexpr std::size_t kBannerBytesMax = 64u << 10;
constexpr std::size_t kAnswerBytesMax = 4096;
constexpr std::size_t kWordBytesMax = 4000;  // LIMIT: csh refuses words of 8,192 bytes
constexpr std::size_t kPieceBytes = 256u << 10;

// What the script needs of a host is sh, ls, mkdir, head, chmod and mv; id and uname only where they are there. It must hold no
// quote, backslash, exclamation mark or newline, so that every login shell hands it on as it is. @X@ is filled in.
//
// The first line: t is the token, put together here so that an echo of the script is not taken for an answer; b the request.
// u: our user id, from /proc, for `id` may be absent.
//
// l NAME: lists, in the place c, the place (.), our folder (e) and the file e/NAME by one `ls`, and takes mode, owner and size
// from its columns. True where the folder is usable: the place is not writable by all (or sticky), belongs to root or us, the folder
// is a real folder (no link), ours, and writable by nobody else. xm, xo, xs are the file's mode, owner and size.
//
// First loop: a cached agent that is ours, whole, writable by nobody else and that runs is started. Second loop: the first place
// where a folder can be made, a file executed (a noexec mount refuses) and as many bytes written as the agent has.
//
// Some `head` read blocks from a pipe: nothing may follow the agent's bytes before the agent itself has spoken.
constexpr std::string_view kScript =
    "umask 077;set -f;t=@T1@;t=${t}@T2@;IFS=;b=\"$*\";unset IFS;a=envsync-agent-@DIGEST@;h=${XDG_CACHE_HOME:-${HOME:-.}/.cache};"
    "m=$(uname -m 2>/dev/null);case \"@MACHINE@.$m\" in .*|*.|\"@MACHINE@.@MACHINE@\");;*)echo \"$t ARCH $m\";exit 1;;esac;"
    "u=;while read k r v w;do case $k in Uid:)u=$v;;esac;done 2>/dev/null </proc/self/status;[ \"$u\" ]||u=$(id -u);"
    "e=envsync-$u;"
    "l(){ k=0;pm=;po=;em=;eo=;xm=;xo=;xs=;for w in $(cd \"$c\" 2>/dev/null&&LC_ALL=C ls -ldn . $e $e/$1 2>/dev/null);do "
    "case $w in [-bcdlps]?????????*)k=$((k+1));i=0;;esac;i=$((i+1));"
    "case $k.$i in 1.1)pm=$w;;1.3)po=$w;;2.1)em=$w;;2.3)eo=$w;;3.1)xm=$w;;3.3)xo=$w;;3.5)xs=$w;;esac;done;"
    "case $pm in d???????[-]?*|d????????[tT]*);;*)return 1;;esac;case $po in 0|$u);;*)return 1;;esac;"
    "case $em in drwx?[-]??[-]?*);;*)return 1;;esac;[ \"$eo\" = \"$u\" ];};"
    "for c in \"$h\" /var/tmp /dev/shm /tmp;do case $c in /*);;*)continue;;esac;"
    "if [ -d \"$c/$e\" ]&&l $a;then case $xm in -rwx?[-]??[-]?*)if [ \"$xo.$xs\" = \"$u.@SIZE@\" ]&&"
    "\"$c/$e/$a\" --version </dev/null >/dev/null 2>&1;then echo \"$t OK\";exec \"$c/$e/$a\" serve $b;fi;;esac;fi;done;"
    "n=;f=;for c in \"$h\" /var/tmp /dev/shm /tmp;do case $c in /*);;*)continue;;esac;"
    "[ -d \"$c\" ]||mkdir -m 700 \"$c\" 2>/dev/null;mkdir -m 700 \"$c/$e\" 2>/dev/null;f=$c/$e/$a.@T1@;"
    "if l $a;then if (echo exit 0 >\"$f\") 2>/dev/null&&chmod 700 \"$f\";then "
    "if \"$f\" </dev/null >/dev/null 2>&1;then (head -c @SIZE@ </dev/zero >\"$f\") 2>/dev/null;l $a.@T1@;"
    "if [ \"$xs\" = @SIZE@ ];then break;fi;n=\"$n $c:full\";else n=\"$n $c:noexec\";fi;rm -f \"$f\";"
    "else n=\"$n $c:not-writable\";fi;else if [ -d \"$c/$e\" ];then n=\"$n $c:not-ours\";else n=\"$n $c:not-writable\";fi;fi;f=;"
    "rmdir \"$c/$e\" 2>/dev/null;done;"
    "if [ -z \"$f\" ];then echo \"$t NONE$n\";exit 1;fi;"
    "echo \"$t NEED\";head -c @SIZE@ >\"$f\";l $a.@T1@;"
    "if [ \"$xs\" = @SIZE@ ];then :;else echo \"$t SHORT $xs $c\";rm -f \"$f\";exit 1;fi;"
    "chmod 700 \"$f\";if \"$f\" --version </dev/null >/dev/null;then :;else echo \"$t BAD $c\";rm -f \"$f\";exit 1;fi;"
    "mv -f \"$f\" \"$c/$e/$a\"&&echo \"$t OK\"&&exec \"$c/$e/$a\" serve $b";

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) text.replace(at, what.size(), with);
}

/// "x86_64" and the like from an ELF header; empty for anything else.
std::string machine_of(ByteView header) {
  if (header.size() < 20 || as_text(header.first(4)) != "\x7f" "ELF") return {};
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(header[at]); };
  const bool is_little = byte(5) == 1;
  const unsigned machine = is_little ? byte(18) | byte(19) << 8 : byte(19) | byte(18) << 8;
  switch (machine) {
    case 62: return "x86_64";
    case 183: return "aarch64";
    case 243: return "riscv64";
    case 21: return is_little ? "ppc64le" : "ppc64";
    case 22: return "s390x";
    default: return {};
  }
}

/// How many bytes at the end of `seen` begin the token.
std::size_t begun(std::string_view seen, std::string_view token) {
  for (std::size_t length = std::min(seen.size(), token.size()); length > 0; --length)
    if (seen.ends_with(token.substr(0, length))) return length;
  return 0;
}

/// Appends between 1 and `most` bytes; false at the end of the stream.
Result<bool> read_some(channel::Channel& channel, std::size_t most, Seconds silence_max, std::string& out) {
  std::array<std::byte, 64> buffer;
  auto read = channel.read(std::span(buffer).first(std::min(most, buffer.size())), deadline_in(silence_max));
  if (!read) {
    if (!read.error().sys_errno) read.error().what = fmt::format("no byte came for {:.0f} s", silence_max.count());
    return std::move(read).error();
  }
  const std::size_t got = *read;
  out += as_text(std::span(buffer).first(got));
  return got > 0;
}

}  // namespace

Result<AgentFile> look_at_agent(const std::string& path, const std::string& digest) {
  ENVSYNC_CHECK(!digest.empty() && digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return os::os_error(errno, "read the agent", path);
  TRY(const os::Stat stat, os::stat_fd(file.get()));
  std::array<std::byte, 20> header;
  TRY(const std::size_t got, os::read_at(file.get(), 0, header, path));
  return AgentFile{path, digest, stat.size, machine_of(std::span(header).first(got))};
}

std::string bootstrap_line(const AgentFile& agent, std::string_view token, ByteView first_request, bool sudo) {
  std::string line = sudo ? "exec sudo -n sh -c '" : "exec sh -c '";
  line += kScript;
  replace_all(line, "@T1@", token.substr(0, token.size() / 2));
  replace_all(line, "@T2@", token.substr(token.size() / 2));
  replace_all(line, "@DIGEST@", agent.digest);
  replace_all(line, "@SIZE@", fmt::format("{}", agent.size));
  replace_all(line, "@MACHINE@", agent.machine);
  line += "' sh";
  const std::string request = to_base64(first_request);
  for (std::size_t at = 0; at < request.size(); at += kWordBytesMax) line += " " + request.substr(at, kWordBytesMax);
  return line;
}

Result<std::optional<Answer>> read_answer(channel::Channel& channel, std::string_view token, Seconds silence_max, std::string& banner) {
  // The shortest answer is the token, a space, a word of two letters and a newline: so much may be read at once.
  constexpr std::size_t kAfterToken = 4;
  std::size_t at = std::string::npos;
  while (at == std::string::npos) {
    if (banner.size() > kBannerBytesMax)
      return Error(ErrorCode::connect_failed, fmt::format("more than {} KiB came before the agent's start", kBannerBytesMax >> 10));
    const std::size_t before = banner.size();
    TRY(const bool is_more, read_some(channel, token.size() - begun(banner, token) + kAfterToken, silence_max, banner));
    if (!is_more) return std::optional<Answer>();
    at = banner.find(token, before - std::min(before, token.size()));
  }
  std::string line = banner.substr(at + token.size());
  banner.resize(at);
  while (!line.ends_with('\n')) {
    if (line.size() > kAnswerBytesMax) return Error(ErrorCode::connect_failed, "an answer of the host's shell has no end");
    TRY(const bool is_more, read_some(channel, 1, silence_max, line));
    if (!is_more) return std::optional<Answer>();
  }
  line.pop_back();
  if (line.ends_with('\r')) line.pop_back();  // a terminal on the way
  const std::size_t word = line.find_first_not_of(' ');
  if (word == std::string::npos) return Error(ErrorCode::connect_failed, "an answer of the host's shell is empty");
  const std::size_t end = std::min(line.find(' ', word), line.size());
  return std::optional<Answer>({line.substr(word, end - word), line.substr(std::min(end + 1, line.size()))});
}

Result<void> send_agent(channel::Channel& channel, const AgentFile& agent, Seconds silence_max) {
  const os::Fd file(::open(agent.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return os::os_error(errno, "read the agent", agent.path);
  Bytes piece(kPieceBytes);
  for (u64 sent = 0; sent < agent.size;) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min<u64>(kPieceBytes, agent.size - sent)));
    TRY(const std::size_t got, os::read_at(file.get(), sent, part, agent.path));
    if (got == 0) return Error(ErrorCode::connect_failed, fmt::format("the agent '{}' became shorter while it was sent", agent.path));
    TRY_STATUS(channel.write(part.first(got), deadline_in(silence_max)));
    sent += got;
  }
  return ok();
}

}  // namespace envsync::transport
