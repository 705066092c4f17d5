#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""envsync against `rsync -aH --delete`, on one environment, over one private sshd, in one run. Figures are ratios of that run.

The environment is only read: what a case changes is changed in a copy by hard links, each file by a new inode. One target tree lies
on the disk at a time. Everything this makes is below one folder of --work and is deleted at the end.

Wire bytes of the small cases are counted on the TCP connections by a link of their own, in a run that is not timed, login included;
of the large ones they are what each program says that it sent. "sync" is rsync's time with a sync of the target's filesystem, which
envsync's time holds.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import link
import sshd

CASES = ("login", "cold", "nothing", "patch", "pull", "recreated", "tmpfs")
MORE = ("version",)  # where --older names something
REPEATS = 5
SGLANG = "sglang==0.5.15"


def say(text):
    print(text, file=sys.stderr, flush=True)


def size_text(count):
    if count is None:
        return "-"
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


class Memory:
    """The greatest VmHWM of the processes of one run, by program name. The kernel keeps the peak, so looking now and then is enough."""

    def __init__(self, mark):
        self.mark = mark.encode()
        self.peak = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _watch(self):
        while not self._ends.wait(0.05):
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    self._look(pathlib.Path("/proc", entry))

    def _look(self, process):
        try:
            if self.mark not in (process / "environ").read_bytes():
                return
            status = (process / "status").read_text()
        except OSError:
            return
        name = re.search(r"^Name:\s+(\S+)", status, re.M).group(1)
        high = re.search(r"^VmHWM:\s+(\d+)", status, re.M)
        if high and (name.startswith("envsync") or name == "rsync"):
            self.peak[(name, process.name)] = max(self.peak.get((name, process.name), 0), int(high.group(1)) * 1024)

    def by_name(self):
        found = {}
        for (name, _), peak in self.peak.items():
            found.setdefault(name, []).append(peak)
        return {name: sorted(peaks, reverse=True) for name, peaks in found.items()}


class Measure:
    def __init__(self, seconds, wire, synced=None, memory=None, phases=None):
        self.seconds, self.wire, self.synced, self.memory, self.phases = seconds, wire, synced, memory, phases


def median(measures):
    return sorted(measures, key=lambda m: m.seconds)[len(measures) // 2]


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="envsync-bench-", dir=options.work)).resolve()
        self.rows, self.record = [], []
        self.server = sshd.Sshd(self.work / "ssh", "bench").start()
        self.config = self.work / "ssh_config"
        self.config.write_text(self.server.ssh_config())
        self.link = link.Link(self.server.port)
        self.link.__enter__()
        self.counted_config = self.work / "ssh_config_counted"
        self.counted_config.write_text(self.server.ssh_config(port=self.link.port))
        self.env = {**os.environ, "HOME": str(self.work / "home"), "XDG_CACHE_HOME": str(self.work / "home/.cache"),
                    "XDG_STATE_HOME": str(self.work / "home/.local/state")}
        (self.work / "home").mkdir()

    def close(self):
        self.link.__exit__()
        self.server.stop()
        for folder in (self.work, *pathlib.Path("/dev/shm").glob(self.work.name)):
            shutil.rmtree(folder, ignore_errors=True)

    # --- the two programs

    def counted(self, program, source, target):
        """The bytes of one more run, on the wire."""
        before = self.link.up + self.link.down
        timed, self.config = self.config, self.counted_config
        try:
            program(source, target)
        finally:
            self.config = timed
        return self.link.up + self.link.down - before

    def rsync(self, source, target, cipher=None, options=()):
        ssh = f"ssh -F {self.config}" + (f" -c {cipher}" if cipher else "")
        line = ["rsync", "-aH", "--delete", *options, "--stats", "-e", ssh, f"{source}/", f"{target}/"]
        with Memory(str(self.work)) as memory:
            start = time.monotonic()
            done = subprocess.run(line, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
            seconds = time.monotonic() - start
        local = str(target).split(":")[-1]
        subprocess.run(["sync", "-f", local], check=True)
        synced = time.monotonic() - start
        moved = [int(m.replace(",", "")) for m in re.findall(r"^Total bytes (?:sent|received): ([\d,]+)", done.stdout, re.M)]
        return Measure(seconds, sum(moved), synced, memory.by_name())

    def envsync(self, source, target, *arguments):
        """`source` and `target` as rsync takes them: [host:]path."""
        host, _, path = str(target).rpartition(":")
        manifest = self.work / "envsync.yaml"
        manifest.write_text(f"version: 1\npath: {path}\nsource: {source}\ntargets: [{host or 'local'}]\n"
                            "invariants: {same_path: false}\n")
        line = [os.environ["ENVSYNC_BIN"], "apply", str(manifest), "--json", "--ssh-config", str(self.config), *arguments]
        with Memory(str(self.work)) as memory:
            start = time.monotonic()
            done = subprocess.run(line, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            seconds = time.monotonic() - start
        if done.returncode != 0:
            raise RuntimeError(f"envsync failed ({done.returncode}):\n{done.stderr}")
        outcome = [e for e in map(json.loads, done.stdout.splitlines()) if e["event"] == "outcome"][0]
        return Measure(seconds, outcome["bytes_up"] + outcome["bytes_down"], None, memory.by_name(), outcome["seconds"])

    # --- reporting

    def row(self, case, rsync, envsync, login=None):
        def line(name, r, e):
            ratio = r / e if e > 0 else float("inf")
            self.rows.append((name, f"{r:.2f} s", f"{e:.2f} s", f"{ratio:.1f}x", size_text(rsync.wire), size_text(envsync.wire)))
            say("   ".join(self.rows[-1]))
        line(case, rsync.seconds, envsync.seconds)
        if login is not None:
            line(f"{case}, less the login", max(0.0, rsync.seconds - login), max(0.001, envsync.seconds - login))
        if rsync.synced and rsync.synced - rsync.seconds > 0.5:
            line(f"{case}, rsync with sync", rsync.synced, envsync.seconds)
        if envsync.phases:
            say("      envsync: " + ", ".join(f"{k} {v:.2f}" for k, v in envsync.phases.items()))
        self.record.append({"case": case, "rsync": vars(rsync), "envsync": vars(envsync)})

    def memory_row(self, case, rsync, envsync):
        for name, measure in (("rsync", rsync), ("envsync", envsync)):
            peaks = ", ".join(f"{program} {' + '.join(size_text(p) for p in found)}" for program, found in (measure.memory or {}).items())
            print(f"peak memory, {case}, {name}: {peaks}")

    def table(self):
        head = ("case", "rsync", "envsync", "faster", "rsync wire", "envsync wire")
        widths = [max(len(r[i]) for r in [head, *self.rows]) for i in range(len(head))]
        for cells in [head, tuple("-" * w for w in widths), *self.rows]:
            print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))))

    # --- cases

    def remove(self, *folders):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(pathlib.Path(folder).parent / ".envsync", ignore_errors=True)

    def warm(self, folder):
        """Reads everything once, so that no program pays for the other's first look at the disk."""
        subprocess.run(f"find {folder} -type f -print0 | xargs -0 cat >/dev/null", shell=True, check=True)

    def login(self):
        def once():
            start = time.monotonic()
            subprocess.run(["ssh", "-F", str(self.config), "bench", "true"], env=self.env, check=True, stdin=subprocess.DEVNULL)
            return time.monotonic() - start
        return statistics.median(once() for _ in range(REPEATS))

    def login_bytes(self):
        before = self.link.up + self.link.down
        subprocess.run(["ssh", "-F", str(self.counted_config), "bench", "true"], env=self.env, check=True, stdin=subprocess.DEVNULL)
        return self.link.up + self.link.down - before

    def patch(self, tree, number):
        """Five modules change, each as a new inode: the tree's files are hard links of the environment that was given."""
        modules = [p for p in sorted(tree.rglob("site-packages/**/*.py")) if p.stat().st_size > 2000]
        chosen = [p for p in modules if "/sglang/srt/" in str(p)][100:105] or modules[:5]
        for module in chosen:
            new = module.with_name(module.name + ".new")
            new.write_text(module.read_text() + f"\n# patch {number}\n")
            new.rename(module)

    def prepare(self, env):
        self.tree = self.work / "source/env"
        self.tree.parent.mkdir()
        same_disk = os.stat(env).st_dev == os.stat(self.work).st_dev
        say(f"{'linking' if same_disk else 'copying'} {env}")
        subprocess.run(["cp", "-al" if same_disk else "-a", str(env), str(self.tree)], check=True)
        files = sum(len(names) for _, _, names in os.walk(self.tree))
        size = int(subprocess.run(["du", "-sb", str(self.tree)], capture_output=True, text=True, check=True).stdout.split()[0])
        print(f"{env}: {files:,} files, {size_text(size)}; {os.cpu_count()} cores, {os.uname().release}")
        self.files = files

    def patched(self, program, source, target, label):
        measures = []
        program(source, target)  # a first run from this source may meet no cache
        for number in range(REPEATS):
            self.patch(self.tree, f"{label} {number}")
            measures.append(program(source, target))
        result = median(measures)
        self.patch(self.tree, f"{label} counted")
        result.wire = self.counted(program, source, target)
        return result

    def on_disk(self, cases, login):
        """cold, nothing, patch, pull and recreated: first all of one program, then all of the other."""
        found = {}
        for name, program in (("rsync", self.rsync), ("envsync", self.envsync)):
            target = self.work / name / "env"
            target.parent.mkdir(exist_ok=True)
            remote = f"bench:{target}"
            say(f"{name}: cold")
            self.warm(self.tree)
            subprocess.run(["sync"], check=True)
            found[name, "cold"] = program(self.tree, remote)
            if "nothing" in cases:
                found[name, "nothing"] = median([program(self.tree, remote) for _ in range(REPEATS)])
                found[name, "nothing"].wire = self.counted(program, self.tree, remote)
            for case, source, there in (("patch", self.tree, remote), ("pull", f"bench:{self.tree}", target)):
                if case in cases:
                    found[name, case] = self.patched(program, source, there, f"{name} {case}")
            if "recreated" in cases:
                copy = self.work / "again/env"
                copy.parent.mkdir()
                say(f"{name}: making the environment again, with new times")
                subprocess.run(["cp", "-r", "-P", "--preserve=mode,links", str(self.tree), str(copy)], check=True)
                subprocess.run(["sync"], check=True)
                found[name, "recreated"] = program(copy, remote)
                self.remove(copy)
                copy.parent.rmdir()
            self.remove(target)
        titles = {"cold": "cold, onto the disk", "nothing": "nothing to do", "patch": "five files patched, source here",
                  "pull": "five files patched, source there", "recreated": "made again from the same wheels"}
        for case, title in titles.items():
            if case in cases:
                self.row(title, found["rsync", case], found["envsync", case], login if case == "nothing" else None)
        for case in ("cold", "nothing"):
            if case in cases:
                self.memory_row(titles[case], found["rsync", case], found["envsync", case])

    def part_of(self, env, folder, limit):
        """An environment of the size that is asked for: everything beside site-packages, and packages until it is full."""
        site = next(env.glob("lib/python3*/site-packages"))
        skip = {site}
        folder.parent.mkdir(parents=True)
        shutil.copytree(env, folder, symlinks=True, ignore=lambda where, names: names if pathlib.Path(where) in skip else [])
        there = folder / site.relative_to(env)
        sizes = [(int(subprocess.run(["du", "-sb", str(p)], capture_output=True, text=True, check=True).stdout.split()[0]), p) for p in site.iterdir()]
        for size, package in sorted(sizes, key=lambda pair: (-pair[0], pair[1])):
            if size < limit:
                limit -= size
                subprocess.run(["cp", "-a", str(package), str(there)], check=True)

    def on_tmpfs(self):
        shm = pathlib.Path("/dev/shm") / self.work.name
        source = shm / "source/env"
        say(f"tmpfs: copying {self.options.part_gb} GB")
        self.part_of(self.tree, source, int(self.options.part_gb * 1e9))
        found = {}
        for name, program in (("rsync, default cipher", lambda t: self.rsync(source, t)),
                              ("rsync, aes128-gcm", lambda t: self.rsync(source, t, "aes128-gcm@openssh.com")),
                              ("envsync", lambda t: self.envsync(source, t)),
                              ("envsync, level 1", lambda t: self.envsync(source, t, "--force-level", "1"))):
            target = shm / "target/env"
            target.parent.mkdir(exist_ok=True)
            shutil.rmtree(self.work / "home/.cache", ignore_errors=True)
            say(f"tmpfs: {name}")
            found[name] = program(f"bench:{target}")
            self.remove(target)
        title = f"cold, {self.options.part_gb:g} GB on tmpfs"
        for cipher in ("default cipher", "aes128-gcm"):
            self.row(f"{title}, rsync {cipher}", found[f"rsync, {cipher}"], found["envsync"])
        self.row(f"{title}, rsync aes128-gcm, envsync level 1", found["rsync, aes128-gcm"], found["envsync, level 1"])
        self.memory_row(title, found["rsync, default cipher"], found["envsync"])
        shutil.rmtree(shm)

    def version(self, older):
        """From an older version of the environment to this one, whose files lie on the target as hard links; `rsync -z`."""
        found = {}
        for name in ("rsync", "envsync"):
            target = self.work / "version" / name / "env"
            target.parent.mkdir(parents=True)
            subprocess.run(["cp", "-al" if os.stat(older).st_dev == os.stat(self.work).st_dev else "-a", str(older), str(target)], check=True)
            remote = f"bench:{target}"
            say(f"version: {name}")
            self.warm(target)
            if name == "rsync":
                found[name] = self.rsync(self.tree, remote, options=("-z", "--exclude", "__pycache__"))
            else:
                self.envsync(older, remote, "--adopt")  # known, as after an apply
                found[name] = self.envsync(self.tree, remote, "--allow-delete")
            self.remove(target)
        self.row(f"from {older.name}, rsync -z", found["rsync"], found["envsync"])
        print(f"bytes on the wire, of rsync -z: {found['envsync'].wire / found['rsync'].wire:.3f}")
        self.memory_row("version", found["rsync"], found["envsync"])

    def run(self, env):
        self.prepare(env)
        cases = self.options.cases
        login = self.login()
        print(f"login and one command over ssh: {login * 1000:.0f} ms, {size_text(self.login_bytes())} on the wire")
        if set(cases) & {"cold", "nothing", "patch", "pull", "recreated"}:
            self.on_disk(cases, login)
        if "tmpfs" in cases:
            self.on_tmpfs()
        if self.options.older:
            self.version(self.options.older.resolve())
        self.table()
        if self.options.json:
            pathlib.Path(self.options.json).write_text(json.dumps(self.record, indent=1))


def build_env(folder):
    """The environment that serves sglang: about 11 GB from PyPI."""
    say(f"building {SGLANG} in {folder}; give one by --env to save this")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "-q", "--disable-pip-version-check", "--no-compile", SGLANG], check=True)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=pathlib.Path, help="an environment to measure with; it is only read [sglang from PyPI]")
    parser.add_argument("--older", type=pathlib.Path, help="an older version of --env; adds the case `version`, against rsync -z")
    parser.add_argument("--work", default="/var/tmp", help="a folder of the disk to measure [/var/tmp]")
    parser.add_argument("--cases", default=CASES, type=lambda text: tuple(text.split(",")), help=f"some of {','.join(CASES)} [all]")
    parser.add_argument("--part-gb", type=float, default=2.0, help="size of the part that is measured on tmpfs [2]")
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES) - set(MORE)
    if unknown:
        parser.error(f"no case is named {', '.join(sorted(unknown))}: {', '.join(CASES + MORE)} are")
    bench = Bench(options)
    try:
        bench.run(options.env.resolve() if options.env else build_env(bench.work / "built"))
    finally:
        bench.close()


if __name__ == "__main__":
    main()
