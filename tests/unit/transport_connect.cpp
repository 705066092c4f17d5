// SPDX-License-Identifier: MIT
// Connecting by a command that leads to `sh`, with a shell script in the agent's place.
#include "transport/transport.hpp"

#include <algorithm>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "os/process.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::transport;
using envsync::testing::Folder;

namespace {

constexpr std::string_view kAgent =
    "#!/bin/sh\n"
    "case $1 in --version) exit 0;; esac\n"
    "echo ready >&2\n"
    "printf 'HELLO %s\\n' \"$2$3$4\"\n"
    "exec cat\n";

/// A machine whose cache home is `cache/` in a folder of the test.
struct Machine {
  Folder folder;
  Options options;
  Machine() {
    folder.mkdir("cache");
    folder.write("agent", kAgent, 0755);
    options.agent_path = folder.path("agent");
    options.agent_digest = "0123abcd";
    options.batch = true;
  }
  std::string our_folder() const { return "cache/envsync-" + std::to_string(::geteuid()); }
  std::string cached() const { return our_folder() + "/envsync-agent-0123abcd"; }
  Host host(std::vector<std::string> command) const {
    command.insert(command.begin(), {"env", "XDG_CACHE_HOME=" + folder.path("cache")});
    return {.name = "box", .kind = Kind::command, .user = "", .host = "", .port = 0, .identity = "", .jump = "", .command = std::move(command)};
  }
  Result<Connected> connect_by(std::vector<std::string> command, std::string_view request = "request") const {
    return connect(host(std::move(command)), options, as_bytes(request), {});
  }
};

/// In a mount namespace of its own, where `mounts` makes places of /var/tmp, /dev/shm and an empty /tmp that shows only the
/// test's folder.
std::vector<std::string> alone(const Machine& machine, const std::string& mounts) {
  const std::string keep = machine.folder.path();
  return {"unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount --bind " + keep + " /mnt && mount -t tmpfs none /tmp && mkdir -p " +
                                           keep + " && mount --bind /mnt " + keep + " && " + mounts + " && exec sh"};
}
const char* const kNoPlaces =
    "mount -t tmpfs -o noexec none /var/tmp && mount -t tmpfs -o noexec none /dev/shm && mount -o remount,noexec /tmp";

bool can_mount() {
  static const bool can = [] {
    auto child = os::spawn({"unshare", "-m", "sh", "-c", "mount -t tmpfs none /var/tmp"}, {});
    return child && child->wait(kNoDeadline) == 0;
  }();
  if (!can) MESSAGE("not checked: this user cannot make mounts");
  return can;
}

std::string read_line(Connected& connected) {
  std::string line;
  std::byte byte[1];
  while (!line.ends_with('\n')) {
    const auto got = connected.channel->read(byte, deadline_in(Seconds(20)));
    if (!got || *got == 0) return line + "<end>";
    line += as_text(byte);
  }
  line.pop_back();
  return line;
}

/// The agent's greeting, and an echo that shows that nothing was lost on the way.
std::string greeting(Result<Connected>& connected) {
  if (!connected) {
    std::string all = connected.error().what;
    for (const auto& cause : connected.error().causes) all += " | " + cause;
    return all;
  }
  const std::string hello = read_line(*connected);
  REQUIRE(connected->channel->write(as_bytes("ping\n"), deadline_in(Seconds(20))));
  return hello + " " + read_line(*connected);
}

const std::string kGreeting = "HELLO cmVxdWVzdA== ping";

bool has_cause(const Error& error, std::string_view text) {
  return std::ranges::any_of(error.causes, [&](const std::string& cause) { return cause.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("an absent agent is uploaded, a cached one is started") {
  const Machine machine;
  for (const bool is_first : {true, false}) {
    auto connected = machine.connect_by({"sh"});
    CHECK(greeting(connected) == kGreeting);
    CHECK(connected->agent_uploaded == is_first);
    CHECK(connected->transport == "command");
  }
  CHECK(machine.folder.read(machine.cached()) == kAgent);
  CHECK((os::stat_at(machine.folder.fd(), machine.our_folder())->mode & 0777) == 0700);
  CHECK(os::list(os::open_dir(machine.folder.fd(), machine.our_folder())->get(), "").value().size() == 1);
}

TEST_CASE("a request of 6 KiB arrives whole") {
  const Machine machine;
  const std::string request(6144, 'r');
  auto connected = machine.connect_by({"sh"}, request);
  CHECK(greeting(connected) == "HELLO " + to_base64(as_bytes(request)) + " ping");
}

TEST_CASE("a large agent is uploaded whole") {
  const Machine machine;
  std::string agent(kAgent);
  agent += "# ";
  agent.append(3'000'000, 'x');
  machine.folder.write("agent", agent, 0755);
  auto connected = machine.connect_by({"sh"});
  CHECK(greeting(connected) == kGreeting);
  CHECK(machine.folder.read(machine.cached()) == agent);
}

TEST_CASE("a command that ends in '--' gets the shell appended") {
  const Machine machine;
  auto connected = machine.connect_by({"sh", "-c", "exec \"$@\"", "--"});
  CHECK(greeting(connected) == kGreeting);
}

TEST_CASE("what a login says before the agent's start is skipped, up to 64 KiB") {
  const Machine machine;
  auto chatty = machine.connect_by({"sh", "-c", "echo Welcome; head -c 60000 /dev/zero; exec sh"});
  CHECK(greeting(chatty) == kGreeting);
  const auto endless = machine.connect_by({"sh", "-c", "exec cat /dev/zero"});
  REQUIRE_FALSE(endless);
  CHECK(endless.error().code == ErrorCode::connect_failed);
  CHECK(has_cause(endless.error(), "64 KiB"));
}

TEST_CASE("every shell that may be a login shell starts the agent") {
  const Machine machine;
  for (const std::string shell : {"sh", "bash", "dash", "csh", "bsd-csh", "tcsh", "fish", "mksh", "ksh93", "zsh", "busybox"}) {
    CAPTURE(shell);
    auto probe = os::spawn({"sh", "-c", "command -v " + shell + " >/dev/null"}, {});
    if (!probe || probe->wait(kNoDeadline) != 0) continue;
    // As sshd does it: the line is the argument of -c.
    const std::string program = shell == "busybox" ? "busybox sh" : shell;
    auto connected = machine.connect_by({"sh", "-c", "read -r line; exec " + program + " -c \"$line\""}, std::string(6144, 'r'));
    CHECK(greeting(connected).starts_with("HELLO cnJy"));
  }
}

TEST_CASE("a cached agent that is not whole, not executable, writable by others or does not run is replaced") {
  const Machine machine;
  std::string wrong(kAgent);
  wrong.replace(wrong.find("exit 0"), 6, "exit 1");
  for (const auto& [text, mode] : {std::pair{std::string("#!/bin/sh\nexit 0\n"), 0700u}, {std::string(kAgent), 0600u},
                                   {std::string(kAgent), 0722u}, {wrong, 0700u}}) {
    CAPTURE(mode);
    machine.folder.mkdir(machine.our_folder());
    REQUIRE(::chmod(machine.folder.path(machine.our_folder()).c_str(), 0700) == 0);
    machine.folder.write(machine.cached(), text, mode);
    auto connected = machine.connect_by({"sh"});
    CHECK(greeting(connected) == kGreeting);
    CHECK(connected->agent_uploaded);
    CHECK(machine.folder.read(machine.cached()) == kAgent);
  }
}

TEST_CASE("a cached agent that is a link is replaced, and what it points to is left alone") {
  const Machine machine;
  machine.folder.write("elsewhere", kAgent, 0700);
  machine.folder.mkdir(machine.our_folder());
  REQUIRE(::chmod(machine.folder.path(machine.our_folder()).c_str(), 0700) == 0);
  machine.folder.symlink(machine.folder.path("elsewhere"), machine.cached());
  auto connected = machine.connect_by({"sh"});
  CHECK(greeting(connected) == kGreeting);
  CHECK(connected->agent_uploaded);
  CHECK(os::stat_at(machine.folder.fd(), machine.cached())->kind == os::Kind::file);
  CHECK(machine.folder.read("elsewhere") == kAgent);
}

TEST_CASE("a folder that is a link or writable by others is not used") {
  if (!can_mount()) return;
  for (const bool is_link : {true, false}) {
    CAPTURE(is_link);
    const Machine machine;
    if (is_link) {
      machine.folder.mkdir("planted");
      machine.folder.symlink(machine.folder.path("planted"), machine.our_folder());
    } else {
      machine.folder.mkdir(machine.our_folder());
      REQUIRE(::chmod(machine.folder.path(machine.our_folder()).c_str(), 0777) == 0);
    }
    const auto refused = machine.connect_by(alone(machine, kNoPlaces));
    REQUIRE_FALSE(refused);
    CHECK(has_cause(refused.error(), "cache:not-ours"));
    CHECK_FALSE(machine.folder.has("planted/envsync-agent-0123abcd"));
  }
}

TEST_CASE("a cache home that everybody may write to is used only with the sticky bit") {
  if (!can_mount()) return;
  const Machine machine;
  REQUIRE(::chmod(machine.folder.path("cache").c_str(), 0777) == 0);
  const auto refused = machine.connect_by(alone(machine, kNoPlaces));
  REQUIRE_FALSE(refused);
  CHECK(has_cause(refused.error(), "cache:not-ours"));
  REQUIRE(::chmod(machine.folder.path("cache").c_str(), 01777) == 0);
  CHECK(machine.connect_by({"sh"}));
}

TEST_CASE("a folder or a file of somebody else is not used") {
  if (::geteuid() != 0 || !can_mount()) return;
  const Machine machine;
  REQUIRE(machine.connect_by({"sh"}));
  REQUIRE(::chown(machine.folder.path(machine.cached()).c_str(), 65534, 65534) == 0);
  CHECK(machine.connect_by({"sh"})->agent_uploaded);
  REQUIRE(::chown(machine.folder.path(machine.our_folder()).c_str(), 65534, 65534) == 0);
  const auto refused = machine.connect_by(alone(machine, kNoPlaces));
  REQUIRE_FALSE(refused);
  CHECK(has_cause(refused.error(), "cache:not-ours"));
}

TEST_CASE("places that do not execute or are full are passed over, and named where none is left") {
  if (!can_mount()) return;
  const Machine machine;
  const std::string noexec_cache = "mount -t tmpfs -o noexec none " + machine.folder.path("cache");
  auto elsewhere = machine.connect_by(alone(machine, noexec_cache + " && mount -t tmpfs -o size=4k none /var/tmp && mount -t tmpfs none /dev/shm"));
  std::string agent(kAgent);
  agent += "# " + std::string(20'000, 'x');
  CHECK(greeting(elsewhere) == kGreeting);
  machine.folder.write("agent", agent, 0755);
  const auto refused = machine.connect_by(alone(machine, noexec_cache + " && mount -t tmpfs -o size=4k none /var/tmp && "
                                                "mount -t tmpfs -o noexec none /dev/shm && mount -o remount,noexec /tmp"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::connect_failed);
  CHECK(refused.error().what.starts_with("no place to run from on 'box'"));
  CHECK(refused.error().causes == std::vector<std::string>{machine.folder.path("cache") + ":noexec", "/var/tmp:full", "/dev/shm:noexec", "/tmp:noexec"});
}

TEST_CASE("an agent for another machine is not sent") {
  const Machine machine;
  std::string elf("\x7f" "ELF\2\1\1", 7);
  elf.resize(64);
  elf[18] = 22;  // s390x
  machine.folder.write("agent", elf, 0755);
  const auto refused = machine.connect_by({"sh"});
  REQUIRE_FALSE(refused);
  CHECK(has_cause(refused.error(), "is for s390x"));
  CHECK_FALSE(machine.folder.has(machine.our_folder()));
}

TEST_CASE("an agent that does not run there is refused with its own words, and leaves nothing") {
  const Machine machine;
  machine.folder.write("agent", "#!/bin/sh\necho no such libc >&2\nexit 1\n", 0755);
  const auto refused = machine.connect_by({"sh"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "the agent does not run on 'box'");
  CHECK(has_cause(refused.error(), "no such libc"));
  CHECK(os::list(os::open_dir(machine.folder.fd(), machine.our_folder())->get(), "").value().empty());
}

TEST_CASE("an upload that the host cuts short is an error that says how much arrived") {
  const Machine machine;
  // The first call fills a place from /dev/zero.
  machine.folder.write("bin/head", "#!/bin/sh\n[ -e " + machine.folder.path("once") + " ] && exec dd bs=1 count=10 2>/dev/null\n" +
                                       ": >" + machine.folder.path("once") + "; PATH=/usr/bin:/bin exec head \"$@\"\n", 0755);
  const auto cut = machine.connect_by({"env", "PATH=" + machine.folder.path("bin") + ":/usr/bin:/bin", "sh"});
  REQUIRE_FALSE(cut);
  CHECK(cut.error().what == "cannot upload the agent to 'box'");
  CHECK(has_cause(cut.error(), "the host kept: 10"));
}

TEST_CASE("a host that ends before the agent is reported with its status, its errors and its output") {
  const Machine machine;
  const auto ended = machine.connect_by({"sh", "-c", "echo account expired; echo no entry >&2; exit 7"});
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == ErrorCode::connect_failed);
  CHECK(has_cause(ended.error(), "ended with status 7"));
  CHECK(has_cause(ended.error(), "no entry"));
  CHECK(has_cause(ended.error(), "output: account expired"));
  const auto missing = connect({.name = "box", .kind = Kind::command, .user = "", .host = "", .port = 0, .identity = "", .jump = "",
                                .command = {"/no/such/program"}}, machine.options, {}, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().sys_errno == ENOENT);
}

TEST_CASE("a host that says nothing ends the connect at its timeout") {
  Machine machine;
  machine.options.connect_timeout = Seconds(0.05);
  const auto stalled = machine.connect_by({"sleep", "1000"});
  REQUIRE_FALSE(stalled);
  CHECK(stalled.error().code == ErrorCode::connect_failed);
  CHECK(has_cause(stalled.error(), "no byte came"));
}

TEST_CASE("a stop ends a connect at once") {
  const Machine machine;
  std::stop_source stop;
  std::thread other([&] { stop.request_stop(); });
  const auto stopped = connect(machine.host({"sleep", "1000"}), machine.options, {}, stop.get_token());
  other.join();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::interrupted);
}

TEST_CASE("the agent's words on stderr are kept") {
  const Machine machine;
  auto connected = machine.connect_by({"sh"});
  REQUIRE(greeting(connected) == kGreeting);
  const auto words = connected->stderr_text;
  connected->channel.reset();  // ends the agent; the text outlives the channel
  CHECK(words() == "ready\n");
}

TEST_CASE("the local agent gets its request as an argument over a socket pair") {
  const Machine machine;
  const Host here{.name = "local", .kind = Kind::local, .user = "", .host = "", .port = 0, .identity = "", .jump = "", .command = {}};
  auto connected = connect(here, machine.options, as_bytes("request"), {});
  CHECK(greeting(connected) == kGreeting);
  CHECK_FALSE(connected->agent_uploaded);
  Options absent = machine.options;
  absent.agent_path = machine.folder.path("absent");
  const auto failed = connect(here, absent, {}, {});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::connect_failed);
  CHECK(failed.error().sys_errno == ENOENT);
}

TEST_CASE("an agent that has to finish something alone is not killed when its channel goes") {
  Machine machine;
  const std::string go = machine.folder.path("go"), done = machine.folder.path("done");
  REQUIRE(::mkfifo(go.c_str(), 0600) == 0);
  REQUIRE(::mkfifo(done.c_str(), 0600) == 0);
  machine.folder.write("agent", "#!/bin/sh\necho HELLO\ncat >/dev/null\nread word <" + go + "\necho $word >" + done + "\n", 0755);
  const Host here{.name = "local", .kind = Kind::local, .user = "", .host = "", .port = 0, .identity = "", .jump = "", .command = {}};
  auto connected = connect(here, machine.options, {}, {});
  REQUIRE(connected);
  CHECK(read_line(*connected) == "HELLO");
  connected->channel.reset();
  machine.folder.write("go", "finished");
  CHECK(machine.folder.read("done") == "finished\n");
}
