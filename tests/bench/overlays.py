#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Overlays of real torch builds onto real environments, proven file by file, with figures. What does not hold is told, and ends this with 1.

    run.sh --overlays [--cache DIR] [--env PATH] [--work DIR] [--cases a,b]

    2.9.1-2.10.0    `packages: [torch]` onto the older one is what uv makes of the newer one, and it imports
    2.10.0-2.12.0   the same from CUDA 12 to 13
    neighbours      a newer and an older torch onto --env, over ssh: no file of another distribution changes; seconds to a plan; and back again
    mirror          --env from one host to another by a relay, both at the same path; verify --record of all of it
    staged          a folder that somebody staged by hand on the target: refused with what it lacks, and laid when the overlay says how
    rsync           torch 2.9.0 to 2.9.1 against rsync -a and -az of the same folders, over loopback and over 200 Mbit/s

uv makes the environments from PyPI (about 20 GB of downloads into --cache, once) and links their files from there; --cache and --work
lie on one filesystem. --env, an environment that holds torch beside others, is only read and never written to. `mirror` and `staged` give each host a
view of the disk of its own, which needs root.
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
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import sshd
import uvenv
from bench import say, size_text
from links import Line

CASES = ("2.9.1-2.10.0", "2.10.0-2.12.0", "neighbours", "mirror", "staged", "rsync")
OF_ENV = ("neighbours", "mirror")
REPEATS = 5
IMPORTS = "import torch; print(torch.__version__, torch.version.cuda)"
STAGED = ("torch", "torch-2.11.0.dist-info", "torchgen", "triton", "triton-3.6.0.dist-info", "nvidia")


class Failed(Exception):
    pass


def check(holds, what, details=()):
    if not holds:
        raise Failed("\n  ".join([what, *map(str, list(details)[:40])]))


class Run:
    """One run of envsync that ended."""

    def __init__(self, done, seconds):
        self.rc, self.err, self.seconds = done.returncode, done.stderr, seconds
        self.events = [json.loads(line) for line in done.stdout.splitlines()]

    def of(self, event):
        return [e for e in self.events if e["event"] == event]

    @property
    def outcome(self):
        return self.of("outcome")[0]

    @property
    def plan(self):
        return self.of("plan")[0]

    @property
    def wire(self):
        return self.outcome["bytes_up"] + self.outcome["bytes_down"]

    def packages(self):
        return {uvenv.normal(p["name"]) for p in self.plan["packages"] if p["change"] != "unchanged"}


class Bench:
    def __init__(self, options):
        self.options = options
        self.uv = uvenv.Uv(options.cache)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="envsync-overlays-", dir=options.work)).resolve()
        self.servers = {}
        self.manifest = self.work / "overlay.yaml"
        self.config = self.work / "ssh_config"
        self.env = {**os.environ, "HOME": str(self.work / "home"), "XDG_CACHE_HOME": str(self.work / "home/.cache"),
                    "XDG_STATE_HOME": str(self.work / "home/.local/state"), "PYTHONDONTWRITEBYTECODE": "1"}
        (self.work / "home").mkdir()

    def close(self):
        for server in self.servers.values():
            server.stop()
        shutil.rmtree(self.work, ignore_errors=True)

    # --- hosts, environments, runs

    def host(self, name, view=None, port=None):
        """An ssh host of this name. `view`: (folder, path): this folder is what the host sees at that path."""
        if name not in self.servers:
            mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
            within = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh", *map(str, view)] if view else []
            self.servers[name] = sshd.Sshd(self.work / f"ssh-{name}", name, within).start()
        ports = {name: port} if port else {}
        self.config.write_text("".join(server.ssh_config(port=ports.get(server.name)) for server in self.servers.values()))

    def ssh(self, host, *command):
        return subprocess.run(["ssh", "-F", str(self.config), host, *command], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def torch(self, version, path):
        return self.uv.make(self.work / path, f"torch=={version}")

    def write(self, path, target, origin=None, source="target", **keys):
        text = f"version: 1\npath: {path}\nsource: {source}\ntargets: [{target}]\n"
        if origin:
            text += f"overlays:\n  - from: {origin}\n    packages: [torch]\n" + "".join(f"    {key}: {value}\n" for key, value in keys.items())
        self.manifest.write_text(text)

    def envsync(self, verb, *arguments, rc=0):
        line = [os.environ["ENVSYNC_BIN"], verb, str(self.manifest), "--json", "--ssh-config", str(self.config), *arguments]
        start = time.monotonic()
        done = subprocess.run(line, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        run = Run(done, time.monotonic() - start)
        check(run.rc == rc, f"`envsync {verb}` ended with {run.rc}, not {rc}:", run.err.splitlines()[-40:])
        return run

    def remove(self, *folders):
        for folder in map(pathlib.Path, folders):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(folder.parent / ".envsync", ignore_errors=True)

    def imports(self, python):
        done = subprocess.run([str(python), "-W", "ignore", "-c", IMPORTS], env=self.env, capture_output=True, text=True)
        check(done.returncode == 0, f"'{python}' does not import torch:", done.stderr.splitlines())
        return done.stdout.strip()

    # --- cases

    def upgrade(self, older, newer):
        """Equal, file by file, to what uv makes of the newer one; and gone back to what was there."""
        target, wanted = self.torch(older, f"{older}/env"), self.torch(newer, f"{newer}/env")
        before = uvenv.digests(target)
        self.write(target, "local", wanted)
        run = self.envsync("apply")
        found, by_path = uvenv.differences(target, wanted)
        check(not found, f"torch {newer} onto {older} is not what uv makes of it:", found)
        names = len(uvenv.walk(wanted))
        imported = self.imports(target / "bin/python")
        check(imported.startswith(newer), f"torch {newer} was laid, {imported} is imported")
        verified = self.envsync("verify", "--record")
        check(not verified.of("finding"), "files are not what their RECORD says:", verified.of("finding"))
        self.envsync("rollback", "-y")
        check(uvenv.digests(target) == before, f"the rollback to torch {older} did not bring back what was there")
        kinds = [p["change"] for p in run.plan["packages"]]
        print(f"torch {older} to {newer}: {names:,} paths equal to uv's ({by_path} name their environment's path); "
              f"{kinds.count('changed')} distributions changed, {kinds.count('added')} came, {kinds.count('removed')} left; imports as {imported}; "
              f"{run.seconds:.1f} s; rolled back to what was there", flush=True)
        self.remove(target, wanted)

    def neighbours(self):
        self.host("gpu")
        for version in ("2.12.0", "2.10.0"):
            target = uvenv.link_copy(self.options.env, self.work / "onto/env")
            origin = self.torch(version, f"{version}/env")
            before = uvenv.digests(target)
            self.write(target, "gpu", origin)
            first = self.envsync("plan")
            warm = [self.envsync("plan").seconds for _ in range(REPEATS)]
            run = self.envsync("apply")
            self.assert_neighbours(target, before, run)
            known = [self.envsync("plan").seconds for _ in range(REPEATS)]
            imported = self.imports(target / "bin/python")
            self.envsync("rollback", "-y")
            check(uvenv.digests(target) == before, "the rollback did not bring back what was there")
            print(f"  plan: {first.seconds:.2f} s at first, {statistics.median(warm):.2f} s warm, {statistics.median(known):.2f} s when it is laid "
                  f"(median of {REPEATS}); apply {run.seconds:.1f} s, {size_text(run.wire)} on the wire; imports as {imported}; rolled back", flush=True)
            self.remove(target, origin)

    def assert_neighbours(self, target, before, run):
        """What stays keeps every file; what differs is listed by a distribution that the plan names, before or after."""
        moved, after = run.packages(), uvenv.digests(target)
        old, new = uvenv.owners(self.options.env), uvenv.owners(target)
        staying = {path for name, rows in old.items() if name not in moved for path in rows if path in before}
        lost = sorted(path for path in staying if after.get(path) != before[path])
        check(not lost, "files of distributions that stay have changed:", lost)
        differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        named = {path for rows in (old, new) for name, listed in rows.items() if name in moved for path in listed}
        strange = sorted(differing - named)
        check(not strange, "files have changed that no distribution of the plan lists:", strange)
        version = next(p["to"] for p in run.plan["packages"] if p["name"] == "torch")
        print(f"torch {version} onto {self.options.env.name}: {len(moved)} distributions move, {len(differing):,} files differ; "
              f"the {len(staying):,} files of {len(old.keys() - moved)} others are unchanged, digest by digest", flush=True)

    def views(self, *names):
        """Hosts that each have a folder of their own at one path: (that path, {host: its folder})."""
        there, folders = self.work / "root", {name: self.work / "hosts" / name for name in names}
        for folder in (there, *folders.values()):
            folder.mkdir(parents=True, exist_ok=True)
        for name, folder in folders.items():
            self.host(name, (folder, there))
        return there, folders

    def mirror(self):
        there, hosts = self.views("ct200", "b300")
        source = uvenv.link_copy(self.options.env, hosts["ct200"] / "venv_sglang211")
        self.write(there / "venv_sglang211", f"{self.servers['b300'].user}@b300", source="ct200")
        run = self.envsync("apply")
        check(run.plan["route"]["relayed"], "it was not relayed")
        errors = [f["what"] for f in run.plan["findings"] if f["severity"] == "error"]
        check(not errors and not run.plan["refused_by"], "a plain mirror has errors:", errors)
        sums = uvenv.digests(hosts["b300"] / "venv_sglang211")
        check(sums == uvenv.digests(source), "the mirror is not the source")
        start = time.monotonic()
        verified = self.envsync("verify", "--record")
        seconds = time.monotonic() - start
        check(not verified.of("finding") and not verified.of("difference"), "files are not what their RECORD says:", verified.of("finding"))
        listed = {}
        for rows in uvenv.owners(hosts["b300"] / "venv_sglang211").values():
            for path, digest in rows.items():
                if digest.startswith("sha256=") and path in sums:
                    listed.setdefault(path, set()).add(digest[7:])
        unlike = [path for path, digests in listed.items() if uvenv.base64_of(sums[path][2]) not in digests]
        check(not unlike, "files match no RECORD that lists them:", unlike)
        again = self.envsync("apply")
        check(again.outcome["result"] == "unchanged", "a second apply changed something")
        print(f"mirror by a relay: {len(sums):,} files, 0 errors, {len(run.plan['findings'])} notes and warnings; {run.seconds:.1f} s, "
              f"{size_text(run.wire)} on both wires; again {again.seconds:.2f} s; verify --record {seconds:.1f} s: all {len(listed):,} hashed files match an owner",
              flush=True)
        self.remove(source, hosts["b300"] / "venv_sglang211")

    def stage(self, folder, origin):
        """What somebody copies by hand: no dist-infos of the nvidia wheels, no functorch."""
        for item in STAGED:
            uvenv.link_copy(uvenv.site_of(origin) / item, folder / item)

    def refused(self, run):
        causes = run.outcome["error"]["causes"]
        return sorted({cause.split(":")[0] for cause in causes}), causes

    def staged(self):
        there, hosts = self.views("ct200")
        path, staged = there / "venv_sglang211", there / "ct129_torch_overlay"
        self.uv.make(path, "torch==2.10.0").rename(hosts["ct200"] / path.name)
        newer = self.torch("2.11.0", "2.11.0/env")
        self.stage(hosts["ct200"] / staged.name, newer)
        before = uvenv.digests(hosts["ct200"] / path.name)
        lists = {}
        for keys, codes in (({}, ["incomplete", "no_distribution"]), ({"roots": "[nvidia]"}, ["incomplete"]), ({"incomplete": "base"}, ["no_distribution"])):
            self.write(path, "ct200", f"target:{staged}", **keys)
            found, causes = self.refused(self.envsync("apply", rc=13))
            check(found == codes, f"refused by {found}, not by {codes}, with {keys}:", causes)
            lists.update({cause.split(":")[0]: cause for cause in causes})
        check(uvenv.digests(hosts["ct200"] / path.name) == before, "a refused overlay changed something")
        self.assert_listed(lists["incomplete"], hosts["ct200"] / path.name, newer)
        self.write(path, "ct200", f"target:{staged}", roots="[nvidia]", incomplete="base")
        run = self.envsync("apply")
        imported = self.ssh("ct200", f"{path}/bin/python -B -W ignore -c '{IMPORTS}'")
        check(imported.returncode == 0 and imported.stdout.startswith("2.11.0"), "what was laid does not import:", imported.stderr.splitlines())
        check(run.outcome["bytes_written"] > 1e9 and run.wire < 5e6, f"{run.wire:,} bytes crossed the wire for content that lies on the target")
        print(f"staged folder on the target: refused by incomplete and no_distribution, each until it is said how;\n  {lists['incomplete']}\n  {lists['no_distribution']}\n"
              f"  with roots and incomplete: base {run.seconds:.1f} s, {size_text(run.outcome['bytes_written'])} written, {size_text(run.wire)} on the wire; "
              f"imports as {imported.stdout.strip()}", flush=True)
        self.remove(hosts["ct200"] / path.name, hosts["ct200"] / staged.name, newer)

    def assert_listed(self, cause, older, newer):
        """Exactly what the staged folder lacks and the environment has not as RECORD says."""
        here, there = (uvenv.owners(env)["torch"] for env in (older, newer))
        site = os.path.relpath(uvenv.site_of(newer), newer)
        lacks = sorted(os.path.relpath(name, site) for name, digest in there.items() if name.startswith(f"{site}/functorch/") and here.get(name) != digest)
        told = cause.split("in the origin: ")[1].split(" (")[0].split(", ")
        check(sorted(told) == lacks, f"the list of missing rows is not exact: {told}", lacks)

    def rsync(self):
        wanted = self.torch("2.9.1", "2.9.1/env")
        site = uvenv.site_of(wanted)
        items = sorted(item.name for item in site.iterdir() if re.match(r"(torch|functorch|triton|nvidia)", item.name))
        for title, rate in (("loopback", 0), ("200 Mbit/s", 200)):
            for program in ("rsync -a", "rsync -az", "envsync"):
                target = self.torch("2.9.0", "target/env")
                self.host("far")
                with Line(self.servers["far"].port, rate, 0) as line:
                    self.host("far", port=line.port)
                    start = time.monotonic()
                    if program == "envsync":
                        self.write(target, "far", wanted)
                        self.envsync("apply")
                    else:
                        there = f"far:{target / site.relative_to(wanted)}/"
                        subprocess.run([*program.split(), "--delete", "-e", f"ssh -F {self.config}", *(str(site / item) for item in items), there],
                                       env=self.env, stdin=subprocess.DEVNULL, check=True)
                    seconds = time.monotonic() - start
                print(f"torch 2.9.0 to 2.9.1, {title}, {program}: {seconds:.1f} s, {size_text(line.up + line.down)} on the wire", flush=True)
                self.remove(target)
        self.remove(wanted)

    def run(self, case):
        say(case)
        if case[0].isdigit():
            self.upgrade(*case.split("-"))
        else:
            getattr(self, case)()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("/var/tmp/envsync-bench-uv"), help="uv's cache, kept [/var/tmp/envsync-bench-uv]")
    parser.add_argument("--env", type=pathlib.Path, help=f"an environment that holds torch and others, for {' and '.join(OF_ENV)}")
    parser.add_argument("--work", default="/var/tmp", help="a folder of the same filesystem as the cache [/var/tmp]")
    parser.add_argument("--cases", type=lambda text: tuple(text.split(",")), help=f"some of {','.join(CASES)} [all that can be]")
    options = parser.parse_args()
    options.cases = options.cases or tuple(case for case in CASES if options.env or case not in OF_ENV)
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no case is named {', '.join(sorted(unknown))}: {', '.join(CASES)} are")
    if not options.env and set(options.cases) & set(OF_ENV):
        parser.error(f"{' and '.join(OF_ENV)} need --env")
    if options.env:
        options.env = options.env.resolve()
    bench, failed = Bench(options), 0
    try:
        for case in options.cases:
            try:
                bench.run(case)
            except Failed as failure:
                failed += 1
                print(f"{case}: FAILED: {failure}", flush=True)
    finally:
        bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
