# SPDX-License-Identifier: MIT
"""What lies on a disk, as a value that two trees can be compared by; and small environments to compare."""
import base64
import csv
import hashlib
import io
import os
import pathlib
import stat
import subprocess
import sys
from typing import NamedTuple

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
TAG = sys.implementation.cache_tag


class Entry(NamedTuple):
    kind: str            # file, dir, link, other
    mode: int = 0        # not of links
    size: int = 0
    sha256: str = ""
    target: str = ""
    group: str = ""      # first path of the files that share this one's inode; "" if it is alone
    xattrs: tuple = ()
    mtime_ns: int = 0    # of files, where asked for


def is_bytecode(path):
    """True for what the default leaves out: __pycache__, and x.pyc beside x.py."""
    if path.name == "__pycache__":
        return True
    return path.suffix in (".pyc", ".pyo") and path.with_suffix(".py").exists()


def walk(root, skip):
    root = pathlib.Path(root)
    yield root
    with os.scandir(root) as entries:
        found = sorted(entries, key=lambda e: os.fsencode(e.name))
    for entry in found:
        path = pathlib.Path(entry.path)
        if skip(path):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from walk(path, skip)
        else:
            yield path


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def xattrs_of(path):
    names = sorted(name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("user."))
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)


def snapshot(root, mtime=False, bytecode=False, skip=()):
    """{relative path: Entry} of everything below `root` that envsync manages. `skip`: relative paths, each with what is below."""
    root = pathlib.Path(root)
    skipped = {root / s for s in skip}
    found, groups = {}, {}
    for path in walk(root, lambda p: p in skipped or (not bytecode and is_bytecode(p))):
        info = os.lstat(path)
        name = os.fsdecode(os.fsencode(path.relative_to(root)))
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISLNK(info.st_mode):
            found[name] = Entry("link", target=os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            found[name] = Entry("dir", mode, xattrs=xattrs_of(path))
        elif stat.S_ISREG(info.st_mode):
            group = groups.setdefault((info.st_dev, info.st_ino), name) if info.st_nlink > 1 else ""
            found[name] = Entry("file", mode, info.st_size, sha256_of(path), group=group, xattrs=xattrs_of(path),
                                mtime_ns=info.st_mtime_ns if mtime else 0)
        else:
            found[name] = Entry("other", mode)
    sizes = {}
    for entry in found.values():
        sizes[entry.group] = sizes.get(entry.group, 0) + 1
    # An inode whose other names lie outside the tree is alone in it.
    return {name: e._replace(group="") if e.group and sizes[e.group] == 1 else e for name, e in found.items()}


def describe(left, right, limit=12):
    """How two snapshots differ, one line a path."""
    lines = []
    for name in sorted(set(left) | set(right)):
        if left.get(name) != right.get(name):
            lines.append(f"  {name!r}: {left.get(name)} -> {right.get(name)}")
    more = len(lines) - limit
    return "\n".join(lines[:limit] + ([f"  and {more} more"] if more > 0 else []))


def inodes(root, skip=()):
    """{relative path: inode} of regular files."""
    root = pathlib.Path(root)
    skipped = {root / s for s in skip}
    return {str(p.relative_to(root)): os.lstat(p).st_ino for p in walk(root, lambda p: p in skipped) if p.is_file() and not p.is_symlink()}


def write(path, content):
    """A file with this content, as a new inode as an editor that saves by renaming would leave it; parents are made."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name[:200] + ".new")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
    temporary.rename(path)
    return path


def add_package(env, name, version, files):
    """Installs a package as pip would: its files, a dist-info with METADATA and a RECORD that is true. Replaces what RECORD listed before."""
    site = pathlib.Path(env) / SITE
    for old in site.glob(f"{name}-*.dist-info"):
        for row in csv.reader((old / "RECORD").read_text().splitlines()):
            (site / row[0]).unlink(missing_ok=True)
        old.rmdir()
    info = f"{name}-{version}.dist-info"
    all_files = {f"{name}/{path}": content for path, content in files.items()}
    all_files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    all_files[f"{info}/INSTALLER"] = "pip\n"
    all_files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = io.StringIO()
    out = csv.writer(rows, lineterminator="\n")
    for path, content in all_files.items():
        data = content if isinstance(content, bytes) else content.encode()
        write(site / path, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        out.writerow([path, f"sha256={digest}", len(data)])
    out.writerow([f"{info}/RECORD", "", ""])
    write(site / info / "RECORD", rows.getvalue())


def make_env(path):
    """A real virtual environment without pip, and two small packages in it: 40 files or so."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    add_package(path, "alpha", "1.0", {
        "__init__.py": "VERSION = '1.0'\n",
        **{f"m{i}.py": f"def answer():\n    return {i}\n" for i in range(12)},
        "data/table.bin": bytes(range(256)) * 64,
        "deep/er/still/__init__.py": "",
    })
    add_package(path, "beta", "2.0", {"__init__.py": "import alpha\nTEXT = 'beta'\n", "native.so": b"\x7fELF" + b"\0\1\2\3" * 5000})
    return path


def patch_five(env, word):
    """Five modules of alpha change; which, relative to the environment."""
    names = [f"{SITE}/alpha/m{i}.py" for i in (1, 3, 5, 7, 9)]
    for name in names:
        write(pathlib.Path(env) / name, f"def answer():\n    return {word!r}\n")
    return names


def python(env, code):
    """Runs code by the environment's own interpreter, writing no bytecode; its output."""
    done = subprocess.run([str(pathlib.Path(env) / "bin/python"), "-B", "-c", code], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"]})
    if done.returncode != 0:
        raise AssertionError(f"{env}/bin/python -c {code!r} failed:\n{done.stderr}")
    return done.stdout.strip()
