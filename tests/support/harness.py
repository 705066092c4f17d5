# SPDX-License-Identifier: MIT
"""What integration tests share: a folder of its own for each test, runs of envsync with parsed events, hosts by private sshd.

$ENVSYNC_BIN and $ENVSYNC_AGENT name the binaries under test ($ENVSYNC_AGENT_FAULTY the one with faults, where a test wants it).
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import sshd
import trees

PASSED_ON = ("PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH")
CONNECTING = {"init", "plan", "apply", "verify", "status", "history", "rollback", "prune", "inspect"}
# A run that hangs is a failure; sanitizers make a run several times slower.
RUN_SECONDS = 240


def binary(variable):
    value = os.environ.get(variable)
    if not value or not os.access(value, os.X_OK):
        sys.exit(f"${variable} must name a built binary; run this through ctest (it is {value!r})")
    return value


def wait_until(condition, what, seconds=60):
    """Polls until the condition holds; a test never sleeps for a fixed time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


class Run:
    """One finished run of envsync."""

    def __init__(self, arguments, rc, out, err):
        self.arguments, self.rc, self.out, self.err = arguments, rc, out, err
        self.events = []
        if "--json" in arguments:
            for line in out.splitlines():
                try:
                    self.events.append(json.loads(line))
                except ValueError as error:
                    raise AssertionError(f"stdout of --json is not one JSON object a line: {line!r}\n{self}") from error

    def of(self, event):
        return [e for e in self.events if e["event"] == event]

    def outcome(self, host=None):
        found = [e for e in self.of("outcome") if host in (None, e["host"])]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} outcomes for host {host!r}\n{self}")
        return found[0]

    def plan(self, host=None):
        found = [e for e in self.of("plan") if host in (None, e["host"])]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} plans for host {host!r}\n{self}")
        return found[0]

    def __str__(self):
        return f"$ envsync {' '.join(self.arguments)}\nexit {self.rc}\n--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-6000:]}"


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        binary("ENVSYNC_BIN")  # before there is anything to clean up
        agent = binary("ENVSYNC_AGENT")
        # Resolved: envsync reports resolved paths, and TMPDIR may lie behind a link.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="envsync-test-")).resolve()
        self.addCleanup(self._remove_root)
        self.home = self.root / "home"
        self.home.mkdir()
        self.src = self.root / "src/env"
        self.dst = self.root / "dst/env"
        self.manifest_file = self.root / "envsync.yaml"
        self.servers = {}
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env.update(HOME=str(self.home), LANG="C.UTF-8", ENVSYNC_AGENT=agent)

    def _remove_root(self):
        self.kill_agents()
        for folder, names, _ in os.walk(self.root):
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(self.root)

    # --- environments and manifests

    def make_source(self):
        return trees.make_env(self.src)

    def manifest(self, targets=("local",), source=None, path=None, extra="", name=None):
        """Writes a manifest. Every "host" of a test is this machine, so source and target paths differ. `extra`: more YAML lines."""
        text = (f"version: 1\npath: {path or self.dst}\nsource: {source or self.src}\n"
                f"targets: [{', '.join(targets)}]\n")
        if "invariants:" not in extra:
            text += "invariants: {same_path: false}\n"
        file = self.root / name if name else self.manifest_file
        file.write_text(text + extra)
        return file

    def snapshot(self, root, **options):
        return trees.snapshot(root, **options)

    def assert_same_tree(self, left, right, message=""):
        """Snapshots, or folders to take them of."""
        left, right = (x if isinstance(x, dict) else trees.snapshot(x) for x in (left, right))
        if left != right:
            self.fail(f"the trees differ {message}\n{trees.describe(left, right)}")

    def state_folder(self, path=None):
        path = pathlib.Path(path or self.dst)
        return path.parent / ".envsync" / path.name

    def generations(self, manifest=None):
        """{number: event}, as `history` lists them."""
        run = self.envsync("history", str(manifest or self.manifest_file))
        return {e["generation"]: e for e in run.of("generation")}

    # --- running envsync

    def command(self, *arguments):
        line = [binary("ENVSYNC_BIN"), *arguments]
        if self.servers and arguments and arguments[0] in CONNECTING and "--ssh-config" not in arguments:
            line += ["--ssh-config", str(self.root / "ssh_config")]
        # What a test cuts or kills shall be seen, unless it is about going on.
        if arguments and arguments[0] == "apply" and not any("settings.retry_for" in a for a in arguments):
            line += ["--set", "settings.retry_for=0s"]
        return line

    def envsync(self, *arguments, rc=0, json_events=True, env=None, seconds=RUN_SECONDS):
        """Runs to the end and checks the exit status (None: any)."""
        arguments = [str(a) for a in arguments] + (["--json"] if json_events else [])
        line = self.command(*arguments)
        done = subprocess.run(line, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=seconds, cwd=self.root, text=True, errors="surrogateescape")
        run = Run(line[1:], done.returncode, done.stdout, done.stderr)
        if rc is not None and run.rc != rc:
            self.fail(f"exit status {run.rc}, not {rc}\n{run}")
        return run

    def apply(self, *arguments, rc=0, manifest=None, **options):
        return self.envsync("apply", str(manifest or self.manifest_file), *arguments, rc=rc, **options)

    def start(self, *arguments, env=None):
        """Starts envsync and leaves it running, in a session of its own; end it or wait for it."""
        arguments = [str(a) for a in arguments]
        return subprocess.Popen(self.command(*arguments), env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.root, start_new_session=True)

    # --- hosts

    def server(self, name="alpha"):
        """A host by this name: a private sshd with its own home."""
        server = sshd.Sshd(self.root / "ssh" / name, name)
        server.start()
        self.addCleanup(server.stop)
        self.servers[name] = server
        self.write_ssh_config()
        return server

    def write_ssh_config(self, more=""):
        blocks = [s.ssh_config() for s in self.servers.values()]
        (self.root / "ssh_config").write_text("".join(blocks) + more)

    def own_agent(self):
        """An agent that no host has yet, whatever other runs left on this machine: the binary with a tail of its own."""
        agent = self.root / "envsync-agent"
        agent.write_bytes(pathlib.Path(binary("ENVSYNC_AGENT")).read_bytes() + os.urandom(16))
        agent.chmod(0o755)
        self.env["ENVSYNC_AGENT"] = str(agent)
        return agent

    # --- processes

    def agents(self):
        """Processes of this test's hosts: those whose home lies in its folder, envsync itself left out."""
        mark = f"HOME={self.root}".encode()
        program = os.path.realpath(binary("ENVSYNC_BIN"))
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if mark in pathlib.Path("/proc", entry, "environ").read_bytes() and os.readlink(f"/proc/{entry}/exe") != program:
                    found.append(int(entry))
            except OSError:
                continue  # ended meanwhile
        return found

    def kill_agents(self):
        for pid in self.agents():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: not self.agents(), "agents end when killed")

    def wait_for_quiet(self, seconds=60):
        """Until no agent works any more: only then is what lies at the path final."""
        wait_until(lambda: not self.agents(), "agents end by themselves", seconds)


def main():
    unittest.main(verbosity=2)
