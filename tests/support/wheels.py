# SPDX-License-Identifier: MIT
"""Real environments from PyPI. Wheels are downloaded once a machine, below $XDG_CACHE_HOME/envsync-tests."""
import fcntl
import functools
import os
import pathlib
import subprocess
import sys

NUMPY, REQUESTS = "numpy==2.1.3", "requests==2.32.3"
SGLANG_OLD, SGLANG_NEW = "sglang==0.5.13", "sglang==0.5.15"


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "envsync-tests" / f"wheels-{sys.implementation.cache_tag}"


def pip(interpreter, *arguments):
    done = subprocess.run([str(interpreter), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"pip {' '.join(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def fetch(interpreter, requirement, dependencies):
    """The folder that holds this requirement's wheels (one each: two versions of a package are two downloads)."""
    folder = cache_folder() / requirement.replace("==", "-")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            pip(interpreter, "download", "-q", "--only-binary", ":all:", "-d", str(folder), requirement,
                *([] if dependencies else ["--no-deps"]))
            (folder / ".complete").touch()
    return folder


def make(path):
    """A virtual environment with pip."""
    subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    return pathlib.Path(path)


@functools.cache
def installer():
    """A Python that has pip: the system's may have none."""
    env = cache_folder() / "installer"
    env.mkdir(parents=True, exist_ok=True)
    with open(env.with_name("installer.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (env / ".complete").exists():
            make(env)
            (env / ".complete").touch()
    return str(env / "bin/python")


def install(env, requirement, dependencies=True):
    interpreter = pathlib.Path(env) / "bin/python"
    folder = fetch(interpreter, requirement, dependencies)
    pip(interpreter, "install", "-q", "--no-index", "--find-links", str(folder), "--no-compile",
        *([] if dependencies else ["--no-deps"]), requirement)
