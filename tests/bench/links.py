#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""envsync over lines that are slow, far or break, against rsync over the same line in the same run. All trees are on a tmpfs.

    run.sh --links [--env PATH] [--cases up,down,torch,relay,far,cuts,fanout,laggard] [--gb N]
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import sshd
from bench import Memory, say, size_text

CASES = ("up", "down", "torch", "relay", "far", "cuts", "fanout", "laggard")
GBIT = 1000
SITE = "lib/python3.11/site-packages"


class Line:
    """A bench_link before a server."""

    def __init__(self, port, rate=0, rtt=0, cut=0):
        self.arguments = [os.environ["ENVSYNC_BENCH_LINK"], str(port), "--rate", str(rate), "--rtt", str(rtt), "--cut", str(cut)]
        self.up = self.down = 0

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True, preexec_fn=sshd.die_with_parent)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.up, self.down = map(int, re.findall(r"\d+", self.process.stdout.read()))
        self.process.wait()


class Links:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="envsync-links-", dir="/dev/shm"))
        self.servers = {}
        self.env = {**os.environ, "HOME": str(self.work / "home"), "XDG_CACHE_HOME": str(self.work / "home/.cache"),
                    "XDG_STATE_HOME": str(self.work / "home/.local/state")}

    def close(self):
        for server in self.servers.values():
            server.stop()
        shutil.rmtree(self.work, ignore_errors=True)

    def server(self, name):
        if name not in self.servers:
            self.servers[name] = sshd.Sshd(self.work / f"ssh-{name}", name).start()
        return self.servers[name]

    def config(self, **ports):
        """An ssh_config of these hosts, each at its line's port."""
        path = self.work / "ssh_config"
        path.write_text("".join(self.server(name).ssh_config(port=port) for name, port in ports.items()))
        return path

    # --- the two programs: seconds, and the events of envsync

    def envsync(self, config, source, targets, *arguments, settings="", start_only=False):
        manifest = self.work / "links.yaml"
        hosts = ", ".join(f"{{host: '{h}', path: '{p}'}}" if h else f"{{host: local, path: '{p}'}}" for h, p in targets)
        manifest.write_text(f"version: 1\nname: links\nsource: {source}\ntargets: [{hosts}]\ninvariants: {{same_path: false, interpreter: ignore}}\n{settings}")
        line = [os.environ["ENVSYNC_BIN"], "apply", str(manifest), "--json", "--ssh-config", str(config), *arguments]
        if start_only:
            return subprocess.Popen(line, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        with Memory(str(self.work)) as memory:
            start = time.monotonic()
            done = subprocess.run(line, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            seconds = time.monotonic() - start
        if done.returncode != 0:
            raise RuntimeError(f"envsync failed ({done.returncode}):\n{done.stderr[-3000:]}")
        self.peaks = memory.by_name()
        self.events = [json.loads(text) for text in done.stdout.splitlines()]
        return seconds

    def until_three_are_done(self, config, source, targets):
        """Seconds; a fourth that is not done is given up."""
        start, done = time.monotonic(), 0
        process = self.envsync(config, source, targets, "--hosts-at-once", "4", start_only=True)
        for text in process.stdout:
            event = json.loads(text)
            done += event["event"] == "outcome" and event["host"] != "n3"
            if done == 3:
                break
        seconds = time.monotonic() - start
        process.terminate()
        process.stdout.read()
        process.wait()
        return seconds

    def rsync(self, config, source, target):
        start = time.monotonic()
        subprocess.run(["rsync", "-aH", "--delete", "-e", f"ssh -F {config}", f"{source}/", f"{target}/"], env=self.env, check=True, stdin=subprocess.DEVNULL)
        return time.monotonic() - start

    def forget(self, *folders):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(folder.parent / ".envsync", ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)

    def transfer_seconds(self):
        return next(e["seconds"].get("transfer", 0) for e in self.events if e["event"] == "outcome")

    # --- trees

    def tree(self, name, files):
        """An environment of these: relative path to bytes."""
        root = self.work / name / "env"
        (root / SITE).mkdir(parents=True)
        (root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
        for path, size in files.items():
            (root / SITE / path).parent.mkdir(parents=True, exist_ok=True)
            with open(root / SITE / path, "wb") as out:
                for at in range(0, size, 1 << 24):
                    out.write(random.randbytes(min(1 << 24, size - at)))
        return root

    def random_tree(self):
        root = self.work / "random/env"
        if not root.exists():
            size = int(self.options.gb * 1e9)
            big = {f"big/{i}.bin": size // 5 for i in range(4)}
            self.tree("random", big | {f"small/{i // 100}/{i}.bin": size // 5 // 2000 for i in range(2000)})
        return root

    def torch_tree(self):
        root = self.work / "torch/env"
        if not root.exists():
            self.tree("torch", {})
            subprocess.run(["cp", "-a", f"{self.options.env}/{SITE}/torch", root / SITE], check=True)
        return root

    def size(self, root):
        return int(subprocess.run(["du", "-sb", "--apparent-size", str(root)], capture_output=True, text=True, check=True).stdout.split()[0])

    # --- cases

    def one_way(self, title, root, is_up, bar):
        target = self.work / "target/env"
        size = self.size(root)
        found = {}
        for name in ("rsync", "envsync"):
            self.forget(target)
            with Line(self.server("far").port, GBIT, 40) as line:
                config = self.config(far=line.port)
                source, there = (str(root), f"far:{target}") if is_up else (f"far:{root}", str(target))
                if name == "rsync":
                    found[name] = self.rsync(config, source, there)
                else:
                    found[name] = self.envsync(config, source, [("far" if is_up else "", target)])
        self.forget(target)
        transfer = self.transfer_seconds()
        ideal = size / (GBIT * 1e6 / 8)
        print(f"{title}: {size_text(size)}; rsync {found['rsync']:.1f} s; envsync {found['envsync']:.1f} s, of it {transfer:.1f} s transfer at "
              f"{size / transfer / 1e6:.0f} MB/s of content, {line.up + line.down:,} B on the line; {ideal / transfer:.2f} of the line; "
              f"{found['rsync'] / found['envsync']:.1f}x rsync ({bar})", flush=True)

    def up(self):
        self.one_way("1 Gbit/s, 40 ms, up, incompressible", self.random_tree(), True, "bar: 0.9 of the line")

    def down(self):
        self.one_way("1 Gbit/s, 40 ms, down, incompressible", self.random_tree(), False, "bar: 0.9 of the line")

    def torch(self):
        self.one_way("1 Gbit/s, 40 ms, up, torch", self.torch_tree(), True, "bar: 3x rsync")

    def relay(self):
        root = self.tree("relay", {f"big/{i}.bin": 64 << 20 for i in range(6)})
        target, rate, size = self.work / "target/env", 200, 6 * (64 << 20)
        self.forget(target)
        with Line(self.server("far").port, rate, 80) as one, Line(self.server("other").port, rate, 80) as other:
            self.envsync(self.config(far=one.port, other=other.port), f"far:{root}", [("other", target)])
        print(f"relay, two legs of 200 Mbit/s and 80 ms: {size / (rate * 1e6 / 8) / self.transfer_seconds():.2f} of the slower leg (bar: 0.9)", flush=True)
        self.forget(target, root)

    def far(self):
        root, target = self.tree("far", {"one.py": 1000}), self.work / "target/env"
        self.forget(target)
        with Line(self.server("far").port, 0, 200) as line:
            config = self.config(far=line.port)
            for _ in range(2):
                self.envsync(config, root, [("far", target)])
            seconds = self.envsync(config, root, [("far", target)])
            start = time.monotonic()
            subprocess.run(["ssh", "-F", str(config), "far", "true"], check=True, stdin=subprocess.DEVNULL)
            login = time.monotonic() - start
        print(f"nothing to do at 200 ms: {seconds:.2f} s, {seconds / 0.2:.1f} round trips; `ssh host true` {login:.2f} s, {login / 0.2:.1f} round trips", flush=True)
        self.forget(target, root)

    def cuts(self):
        root, target = self.tree("cuts", {f"big/{i}.bin": 50 << 20 for i in range(4)}), self.work / "target/env"
        size = self.size(root)
        for part in (0.1, 0.5, 0.9, random.uniform(0.05, 0.95)):
            self.forget(target)
            with Line(self.server("far").port, 400, 20, int(size * part)) as line:
                self.envsync(self.config(far=line.port), root, [("far", target)], settings="settings: {retry_for: 1m}\n")
            again = line.up - size
            same = subprocess.run(["diff", "-rq", str(root), str(target)], capture_output=True).returncode == 0
            print(f"cut at {part:.0%} of {size_text(size)}: {size_text(max(0, again))} more than the content on the line; {'identical' if same else 'DIFFERS'}", flush=True)
        self.forget(target, root)

    def fanout(self):
        root = self.tree("fan", {f"big/{i}.bin": 50 << 20 for i in range(6)})
        names = [f"n{i}" for i in range(8)]
        targets = [(name, self.work / f"target-{name}/env") for name in names]
        size = self.size(root)
        self.forget(*(path for _, path in targets))
        with Line(self.server("far").port) as line:
            config = self.config(far=line.port, **{name: self.server(name).port for name in names})
            seconds = self.envsync(config, f"far:{root}", targets, "--hosts-at-once", "8")
        controller = max(self.peaks.get("envsync", [0]))
        print(f"8 targets: {seconds:.1f} s, {line.down / size:.2f} x one target's need read from the source (bar: 1.05); controller {size_text(controller)} (bar: 250 MB)", flush=True)
        self.forget(root, *(path for _, path in targets))

    def laggard(self):
        root = self.tree("lag", {f"big/{i}.bin": 150 << 20 for i in range(8)})
        names = [f"n{i}" for i in range(4)]
        targets = [(name, self.work / f"target-{name}/env") for name in names]
        found = {}
        for lag in (False, True):
            self.forget(*(path for _, path in targets))
            with Line(self.server("n3").port, 8, 5) as slow:
                ports = {name: self.server(name).port for name in names}
                if lag:
                    ports["n3"] = slow.port
                chosen = targets if lag else targets[:3]
                found[lag] = self.until_three_are_done(self.config(far=self.server("far").port, **ports), f"far:{root}", chosen)
        print(f"four targets, one at 1 MB/s: the others take {found[True] / found[False]:.2f} x of a run without it (bar: 1.1)", flush=True)
        self.forget(root, *(path for _, path in targets))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=pathlib.Path, help="an environment that holds torch, for the case of that name")
    parser.add_argument("--cases", default=CASES, type=lambda text: tuple(text.split(",")), help=f"some of {','.join(CASES)} [all]")
    parser.add_argument("--gb", type=float, default=2.0, help="size of the incompressible tree [2]")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no case is named {', '.join(sorted(unknown))}: {', '.join(CASES)} are")
    if "torch" in options.cases and not options.env:
        parser.error("the case torch needs --env")
    links = Links(options)
    try:
        for case in options.cases:
            say(case)
            getattr(links, case)()
    finally:
        links.close()


if __name__ == "__main__":
    main()
