// SPDX-License-Identifier: MIT
#include "os/process.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>

#include <doctest/doctest.h>

#include "os/files.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::os;
using envsync::testing::Folder;

namespace {

constexpr Seconds kLong{20};

/// What a program writes to its stdout.
std::string output_of(const std::vector<std::string>& argv, const std::vector<std::string>& extra_env = {}) {
  auto pipe = make_pipe().value();
  auto child = spawn(argv, {.in = -1, .out = pipe.write.get(), .err = -1}, false, extra_env).value();
  pipe.write.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe.read.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  child.wait(deadline_in(kLong));
  return text;
}

/// A child that says a line once it runs, and then waits for its input to end.
struct Waiter {
  PipePair in = make_pipe().value(), out = make_pipe().value();
  Child child;
  explicit Waiter(const std::string& script) {
    child = spawn({"sh", "-c", script + "echo; exec cat >/dev/null"}, {.in = in.read.get(), .out = out.write.get(), .err = -1}).value();
    char byte = 0;
    REQUIRE(::read(out.read.get(), &byte, 1) == 1);
  }
};

bool names(const std::vector<std::string>& uses, pid_t pid, const std::string& what) {
  const std::string process = "(process " + std::to_string(pid) + ")";
  return std::ranges::any_of(uses, [&](const std::string& use) { return use.find(process) != std::string::npos && use.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("a child's status is the shell's, signals included, and can be asked for again") {
  auto child = spawn({"sh", "-c", "exit 7"}, {}).value();
  CHECK(child.wait(deadline_in(kLong)) == 7);
  CHECK(child.wait(deadline_in(kLong)) == 7);
  CHECK(spawn({"sh", "-c", "kill -TERM $$"}, {})->wait(kNoDeadline) == 128 + SIGTERM);
}

TEST_CASE("a program that does not exist is an error of spawn") {
  const auto missing = spawn({"/no/such/program"}, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what == "cannot start '/no/such/program'");
  CHECK(missing.error().sys_errno == ENOENT);
  const Folder folder;
  folder.write("data", "x", 0644);
  CHECK(spawn({folder.path("data")}, {}).error().sys_errno == EACCES);
}

TEST_CASE("waiting for a child that runs ends at the deadline, and the destructor ends the child") {
  pid_t pid = -1;
  {
    auto child = spawn({"sleep", "1000"}, {}).value();
    pid = child.pid();
    CHECK_FALSE(child.wait(deadline_in(Seconds(0.01))));
  }
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("killing the leader of a group ends what it started") {
  auto pipe = make_pipe().value();
  auto child = spawn({"sh", "-c", "sleep 1000 & echo; wait"}, {.in = -1, .out = pipe.write.get(), .err = -1}, true).value();
  pipe.write.reset();
  char byte = 0;
  REQUIRE(::read(pipe.read.get(), &byte, 1) == 1);
  child.kill_now();
  CHECK(child.wait(kNoDeadline) == 128 + SIGKILL);
  CHECK(::read(pipe.read.get(), &byte, 1) == 0);  // nobody holds the other end
}

TEST_CASE("a child inherits no descriptor, no blocked signal and no ignored SIGPIPE") {
  const Fd leaked(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  const std::string status = output_of({"cat", "/proc/self/status"});
  const std::string descriptors = output_of({"ls", "/proc/self/fd"});
  std::signal(SIGPIPE, old);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(status.find("SigBlk:\t0000000000000000") != std::string::npos);
  CHECK(status.find("SigIgn:\t0000000000001000") == std::string::npos);
  CHECK(descriptors == "0\n1\n2\n3\n");  // 3 is the folder that ls reads
}

TEST_CASE("descriptors 0 to 2 may stand for one another") {
  // In a child, for the test's own stay as they are.
  CHECK(output_of({"sh", "-c", "exec 2>&1; echo to_err >&2"}) == "to_err\n");
  auto pipe = make_pipe().value();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe.write.get(), 0);  // descriptor 0 is what the child is to have as 1
    auto child = spawn({"echo", "through 0"}, {.in = 1, .out = 0, .err = 2});
    ::_exit(child && child->wait(kNoDeadline) == 0 ? 0 : 1);
  }
  pipe.write.reset();
  char text[32] = {};
  CHECK(::read(pipe.read.get(), text, sizeof text - 1) == 10);
  CHECK(std::string(text) == "through 0\n");
  CHECK(Child(pid).wait(kNoDeadline) == 0);
}

TEST_CASE("given variables replace inherited ones") {
  ::setenv("ENVSYNC_TEST_A", "old", 1);
  ::setenv("ENVSYNC_TEST_AB", "kept", 1);
  CHECK(output_of({"sh", "-c", "echo $ENVSYNC_TEST_A $ENVSYNC_TEST_AB; env | grep -c ENVSYNC_TEST_A="}, {"ENVSYNC_TEST_A=new"}) == "new kept\n1\n");
  ::unsetenv("ENVSYNC_TEST_A");
  ::unsetenv("ENVSYNC_TEST_AB");
}

TEST_CASE("who runs by a link of the tree to a program elsewhere uses the tree") {
  const Folder folder;
  REQUIRE(::mkdir(folder.path("env").c_str(), 0755) == 0);
  REQUIRE(::symlink("/bin/cat", folder.path("env/python").c_str()) == 0);
  auto in = make_pipe().value(), out = make_pipe().value();
  const auto child = spawn({folder.path("env/python")}, {.in = in.read.get(), .out = out.write.get(), .err = -1}).value();
  // Until it answers, exec may not be done with its words.
  char byte = 'x';
  REQUIRE(::write(in.write.get(), &byte, 1) == 1);
  REQUIRE(::read(out.read.get(), &byte, 1) == 1);
  CHECK(names(processes_using(folder.path("env"), 10), child.pid(), "was started as '" + folder.path("env/python") + "'"));
  in.write.reset();
}

TEST_CASE("a lock is held by one descriptor until that is closed") {
  const Folder folder;
  folder.write("lock", "");
  const auto open_lock = [&] { return open_file(folder.fd(), "lock").value(); };
  auto first = try_lock(open_lock()).value();
  REQUIRE(first);
  CHECK_FALSE(try_lock(open_lock()).value());
  first.reset();
  CHECK(try_lock(open_lock()).value());
}

TEST_CASE("facts of this machine have a plausible form") {
  CHECK_FALSE(hostname().empty());
  CHECK_FALSE(user_name().empty());
  CHECK(home_dir().starts_with("/"));
  CHECK(boot_id().size() == 36);
  CHECK(boot_id() == boot_id());
  CHECK(cpu_count() >= 1);
  CHECK_FALSE(cpu_has("no_such_feature"));
  const std::string token = random_token();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token != random_token());
}

TEST_CASE("who stands in a tree, holds a file of it open or runs from it is named") {
  const Folder folder;
  const std::string root = folder.path("env");
  folder.write("env/f", "x");
  folder.write("environment/f", "x");  // a name that only begins alike
  const Waiter stands("cd " + root + "; "), opens("exec 7<" + root + "/f; "), beside("cd " + folder.path("environment") + "; ");
  REQUIRE(spawn({"cp", "/bin/sleep", root + "/prog"}, {})->wait(kNoDeadline) == 0);
  auto runs = spawn({root + "/prog", "1000"}, {}).value();
  const auto uses = processes_using(root, 100);
  CHECK(names(uses, stands.child.pid(), "stands in '" + root + "'"));
  CHECK(names(uses, opens.child.pid(), "holds open '" + root + "/f'"));
  CHECK(names(uses, runs.pid(), "runs from '" + root + "/prog'"));
  CHECK(uses.size() == 3);
  CHECK(processes_using(root, 2).size() == 2);
  CHECK(processes_using(folder.path("nobody"), 10).empty());
}

TEST_CASE("who maps a file of a tree is named, though its descriptor is closed") {
  const Folder folder;
  folder.write("env/lib.so", std::string(4096, 'x'));
  PipePair ready = make_pipe().value(), end = make_pipe().value();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(folder.path("env/lib.so").c_str(), O_RDONLY);
    void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    end.write.reset();
    char byte = mapped == MAP_FAILED ? 'f' : 'm';
    if (::write(ready.write.get(), &byte, 1) == 1) static_cast<void>(!::read(end.read.get(), &byte, 1));
    ::_exit(0);
  }
  Child child(pid);
  char byte = 0;
  REQUIRE(::read(ready.read.get(), &byte, 1) == 1);
  CHECK(byte == 'm');
  CHECK(names(processes_using(folder.path("env"), 10), pid, "has mapped '" + folder.path("env/lib.so") + "'"));
}

TEST_CASE("a mount of the tree in another mount namespace is named, under whatever path") {
  const Folder folder;
  folder.write("env/f", "x");
  folder.mkdir("elsewhere");
  const std::string mount = "mount --make-rprivate / && mount --bind " + folder.path("env") + " " + folder.path("elsewhere") + " && ";
  if (spawn({"unshare", "-m", "sh", "-c", mount + "exit 0"}, {})->wait(kNoDeadline) != 0) {
    MESSAGE("not checked: this user cannot make mounts");
    return;
  }
  const Waiter container("exec unshare -m sh -c '" + mount + "echo; exec cat >/dev/null'; ");
  CHECK(names(processes_using(folder.path("env"), 10), container.child.pid(), "has the tree mounted at '" + folder.path("elsewhere") + "'"));
}
