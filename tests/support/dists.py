# SPDX-License-Identifier: MIT
"""Distributions as an installer leaves them: files anywhere in site-packages, requirements, scripts, a RECORD that is true."""
import base64
import csv
import hashlib
import io
import pathlib
import shutil
import subprocess
import sys

import trees


def digest_of(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def make_env(path):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    return path


def info_of(name, version):
    return f"{name.replace('-', '_')}-{version}.dist-info"


def launcher(env, target):
    module, function = target.split(":")
    return f"#!{env}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"


def install(env, name, version, files, requires=(), scripts=None):
    """`files`: path in site-packages -> text or bytes; `scripts`: name -> module:function."""
    env, scripts = pathlib.Path(env), scripts or {}
    site, info = env / trees.SITE, info_of(name, version)
    all_files = dict(files)
    all_files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    all_files[f"{info}/INSTALLER"] = "pip\n"
    if scripts:
        all_files[f"{info}/entry_points.txt"] = "[console_scripts]\n" + "".join(f"{s} = {t}\n" for s, t in scripts.items())
    for script, target in scripts.items():
        all_files[f"../../../bin/{script}"] = launcher(env, target)
    rows = io.StringIO()
    out = csv.writer(rows, lineterminator="\n")
    for path, content in all_files.items():
        data = content if isinstance(content, bytes) else content.encode()
        file = trees.write(site / path, data)
        if "/bin/" in path:
            file.chmod(0o755)
        out.writerow([path, digest_of(data), len(data)])
    out.writerow([f"{info}/RECORD", "", ""])
    trees.write(site / info / "RECORD", rows.getvalue())


def dist_info(env, name):
    found = list((pathlib.Path(env) / trees.SITE).glob(f"{name.replace('-', '_')}-*.dist-info"))
    if len(found) != 1:
        raise AssertionError(f"{len(found)} dist-infos of {name} in {env}")
    return found[0]


def rows_of(env, name):
    return [row for row in csv.reader((dist_info(env, name) / "RECORD").read_text().splitlines()) if row]


def copy(source, env, name):
    """The distribution's files as they are, bytes and modes."""
    site, there = pathlib.Path(source) / trees.SITE, pathlib.Path(env) / trees.SITE
    for path, _, _ in rows_of(source, name):
        if not (site / path).exists():
            continue
        file = trees.write(there / path, (site / path).read_bytes())
        file.chmod((site / path).stat().st_mode & 0o7777)


def copy_tree(source, target):
    """A file or a folder with everything below it; links stay links."""
    pathlib.Path(target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, symlinks=True)


def relocate(env, old):
    """Scripts of an environment that was moved name its new place, and their RECORDs say so."""
    env = pathlib.Path(env)
    for script in (env / "bin").iterdir():
        if script.is_file() and not script.is_symlink() and str(old) in script.read_text():
            script.write_text(script.read_text().replace(str(old), str(env)))
    site = env / trees.SITE
    for record in site.glob("*.dist-info/RECORD"):
        rows = []
        for path, digest, size in csv.reader(record.read_text().splitlines()):
            data = (site / path).read_bytes() if digest else b""
            rows.append(f"{path},{digest_of(data)},{len(data)}\n" if digest else f"{path},{digest},{size}\n")
        record.write_text("".join(rows))


def broken_rows(env):
    """Rows of every RECORD that the disk does not hold as they say."""
    site, broken = pathlib.Path(env) / trees.SITE, []
    for info in sorted(site.glob("*.dist-info")):
        for path, digest, _ in csv.reader((info / "RECORD").read_text().splitlines()):
            file = site / path
            if not file.exists() or (digest and digest_of(file.read_bytes()) != digest):
                broken.append((info.name, path))
    return broken


def run(program):
    done = subprocess.run([str(program)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode != 0:
        raise AssertionError(f"{program} failed:\n{done.stderr}")
    return done.stdout.strip()
