#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps the top folder to the names that it is agreed to hold.

    lint_names.py ROOT | --self-test
"""
import fnmatch
import pathlib
import subprocess
import sys
import tempfile

ALLOWED = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "engine", "examples", "include", "manifests", "tests"}


def names(root):
    """Top-level names that belong to the project: git's view where there is one, else what .gitignore leaves."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], check=True, capture_output=True, text=True).stdout
        return {name.split("/")[0] for name in listed.split("\0") if name}
    ignore = root / ".gitignore"
    patterns = [line.strip().strip("/") for line in ignore.read_text().splitlines()] if ignore.exists() else []
    return {p.name for p in root.iterdir() if not any(fnmatch.fnmatch(p.name, pattern) for pattern in patterns)}


def check(root):
    for name in sorted(names(root)):
        if name not in ALLOWED and not name.startswith("."):
            yield f"'{name}' is not a name of the top folder: {', '.join(sorted(ALLOWED))} and dot files are"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("engine", "build-x"):
            (root / name).mkdir()
        (root / "README.md").write_text("")
        (root / ".gitignore").write_text("/build*/\n")
        assert not list(check(root))
        (root / "scratch.txt").write_text("")
        assert len(list(check(root))) == 1
    print("lint_names: the bad sample was found")


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if len(arguments) != 1:
        print("usage: lint_names.py ROOT | --self-test", file=sys.stderr)
        return 2
    found = list(check(pathlib.Path(arguments[0]).resolve()))
    for line in found:
        print(line)
    print(f"lint_names: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
