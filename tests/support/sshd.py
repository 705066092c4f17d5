#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A private sshd on 127.0.0.1 with its own keys, configuration and home folder: one "host" of a test.

The account is the one that runs the test. The server sets HOME to a folder of its own, so that a login reads no start-up
file of that account, uploads its agent to no real home, and two servers look like two machines. Nothing outside the
given folder is touched, but for /run/sshd, which sshd wants when root starts it.

    sshd.py DIR [NAME...]      starts one server a name (default: alpha), prints the ssh_config to use, serves until stdin ends
"""
import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
START_SECONDS = 20


def die_with_parent():
    """In the child: ends when the test's process ends, however it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if not found:
        raise RuntimeError(f"'{name}' is not installed: apt-get install openssh-server openssh-client")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def parents():
    """{pid: parent pid} of every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path("/proc", entry, "stat").read_text()
            except OSError:
                continue  # ended meanwhile
            found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(pid):
    up = parents()
    found, grew = {pid}, True
    while grew:
        more = {child for child, parent in up.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found - {pid}


def make_key(path):
    if not path.exists():
        subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "envsync test", "-f", str(path)], check=True)
    return path


def root_is_locked():
    """A '!' account is refused without PAM; only root can see, and only root's server would refuse."""
    if os.getuid() != 0:
        return False
    for line in pathlib.Path("/etc/shadow").read_text().splitlines():
        fields = line.split(":")
        if fields[0] == "root":
            return fields[1].startswith("!")
    return False


class Sshd:
    """start() until stop(). `name` is the alias that ssh_config() defines."""

    def __init__(self, folder, name="alpha", within=()):
        """`within`: a command that runs the server, as `unshare` does for a view of the disk of its own."""
        self.name = name
        self.within = list(within)
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.port = 0
        self.process = None
        self.log = []
        self.user = pwd.getpwuid(os.getuid()).pw_name

    def start(self):
        self.home.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        make_key(self.folder / "hostkey")
        make_key(self.folder / "key")
        shutil.copy(self.folder / "key.pub", self.folder / "authorized")
        for attempt in range(5):  # somebody may take the free port first
            self.port = free_port()
            if self._start_once():
                break
            if attempt == 4:
                raise RuntimeError("sshd did not start:\n" + "".join(self.log))
        self._write_known_hosts()
        return self

    def _start_once(self):
        self._write_config()
        return self._run()

    def _write_config(self):
        (self.folder / "sshd_config").write_text("\n".join([
            f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {self.folder}/hostkey",
            f"AuthorizedKeysFile {self.folder}/authorized", "PidFile none", "StrictModes no",
            f"UsePAM {'yes' if root_is_locked() else 'no'}", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password", "MaxStartups 100", "MaxSessions 100", "UseDNS no", "PrintMotd no",
            f"SetEnv HOME={self.home}", ""]))

    def _run(self):
        config = self.folder / "sshd_config"
        self.process = subprocess.Popen([*self.within, program("sshd"), "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                        preexec_fn=die_with_parent)
        listening = threading.Event()
        threading.Thread(target=self._read_log, args=(self.process.stderr, listening), daemon=True).start()
        listening.wait(START_SECONDS)
        return self.process.poll() is None and any("Server listening" in line for line in self.log)

    def _read_log(self, stream, listening):
        for line in stream:
            self.log.append(line)
            if "Server listening" in line:
                listening.set()
        listening.set()

    def _write_known_hosts(self):
        kind, key = (self.folder / "hostkey.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")

    def replace_host_key(self):
        """The machine was set up anew; known_hosts still has the old key."""
        self.stop()
        for name in ("hostkey", "hostkey.pub"):
            (self.folder / name).unlink()
        make_key(self.folder / "hostkey")
        self.restart()

    def restart(self):
        """On the same port, with what its folder's sshd_config says now."""
        self.stop()
        self.log.clear()
        if not self._run():
            raise RuntimeError("sshd did not start again:\n" + "".join(self.log))

    def ssh_config(self, name=None, port=None, key=None, known_hosts=None):
        """One Host block. `port`: of a proxy before the server."""
        known = known_hosts or self.folder / "known_hosts"
        lines = [f"Host {name or self.name}", "  HostName 127.0.0.1", f"  Port {port or self.port}", f"  User {self.user}",
                 f"  IdentityFile {key or self.folder / 'key'}", "  IdentitiesOnly yes", "  IdentityAgent none",
                 f"  UserKnownHostsFile {known}", "  GlobalKnownHostsFile /dev/null", "  UpdateHostKeys no"]
        if port:  # known_hosts names the server, not the proxy
            lines.append(f"  HostKeyAlias [127.0.0.1]:{self.port}")
        return "\n".join(lines) + "\n"

    def sessions(self):
        return descendants(self.process.pid) if self.process else set()

    def stop(self):
        if not self.process:
            return
        sessions = self.sessions()
        self.process.terminate()
        self.process.wait()
        for pid in sessions:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 10
        while sessions & set(parents()) and time.monotonic() < deadline:
            time.sleep(0.01)  # until the kernel has taken them down
        self.process.stderr.close()
        self.process = None


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0]).absolute()
    servers = [Sshd(folder / name, name).start() for name in arguments[1:] or ["alpha"]]
    try:
        config = folder / "ssh_config"
        config.write_text("".join(server.ssh_config() for server in servers))
        print(config, flush=True)
        sys.stdin.read()
    finally:
        for server in servers:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
