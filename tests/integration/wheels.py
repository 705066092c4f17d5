# SPDX-License-Identifier: MIT
"""Wheels as an overlay's origin: what comes is what pip makes of them."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
import dists
import wheels

# A script that is generated, one that is shipped, headers, and data beside site-packages.
REAL = (wheels.NUMPY, wheels.REQUESTS, "greenlet==3.1.1", "httpie==3.2.4", "ruff==0.8.0")


def wheel_of(requirement):
    name = requirement.split("==")[0]
    folder = wheels.fetch(wheels.installer(), requirement, False)
    return next(f for f in sorted(folder.glob("*.whl")) if f.name.lower().startswith(name))


def installed(env):
    """path -> (mode, bytes) of what is no environment's own. A generated script is its first line and the function that it calls, because
    installers write different texts; RECORD is the set of its rows that have no text of an installer's own."""
    out = {}
    for path in sorted(pathlib.Path(env).rglob("*")):
        name = str(path.relative_to(env))
        if path.is_symlink() or path.is_dir() or "__pycache__" in name or name == "pyvenv.cfg" or name.startswith(("bin/activate", "bin/Activate")):
            continue
        if name.endswith((".dist-info/INSTALLER", ".dist-info/REQUESTED")):
            continue
        data, mode = path.read_bytes(), path.stat().st_mode & 0o777
        if name.startswith("bin/") and data.startswith(b"#!") and b"import sys" in data:
            lines = data.decode().replace(str(env), "ENV").replace("python3.11", "python").splitlines()
            data = "\n".join([lines[0], *(line.strip() for line in lines if line.startswith("from ") or "sys.exit(" in line)])
        elif name.endswith(".dist-info/RECORD"):
            rows = data.decode().replace("\r\n", "\n").splitlines()
            data = sorted(r for r in rows if not r.startswith("../../../bin/") and "/INSTALLER," not in r and "/REQUESTED," not in r and ".pyc," not in r)
        out[name] = (mode, data)
    return out


class RealWheels(harness.Case):
    def test_each_comes_as_pip_installs_it(self):
        dists.make_env(self.src)
        folder = self.root / "wheels"
        folder.mkdir()
        for requirement in REAL:
            subprocess.run(["cp", wheel_of(requirement), folder], check=True)
        names = ", ".join(r.split("==")[0] for r in REAL)
        self.manifest(extra=f"overlays:\n  - {{from: '{folder}', packages: [{names}], closure: none}}\n")
        run = self.apply()
        self.assertEqual({p["name"]: p["to"] for p in run.plan()["packages"] if p["name"] in names.split(", ")}, dict(r.split("==") for r in REAL))
        reference = self.root / "reference/env"
        dists.make_env(reference)
        for requirement in REAL:
            subprocess.run([wheels.installer(), "-m", "pip", "--python", str(reference / "bin/python"), "install", "-q", "--no-index", "--no-deps", "--no-compile",
                            "--find-links", str(folder), requirement], check=True, capture_output=True)
        ours, pips = installed(self.dst), installed(reference)
        self.assertEqual(sorted(ours), sorted(pips))
        for name, entry in ours.items():
            self.assertEqual(entry, pips[name], name)
        self.assertEqual([row for row in dists.broken_rows(self.dst) if not row[1].endswith(".pyc")], [])
        self.assertEqual(trees.python(self.dst, "import numpy; print(numpy.__version__)"), "2.1.3")
        self.assertTrue(dists.run(self.dst / "bin/numpy-config").startswith("usage"))
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        # pip takes them for its own.
        subprocess.run([wheels.installer(), "-m", "pip", "--python", str(self.dst / "bin/python"), "uninstall", "-q", "-y", "greenlet", "httpie"], check=True, capture_output=True)
        self.assertFalse((self.dst / "bin/http").exists())
        self.assertFalse(list(self.dst.glob("include/**/greenlet*.h")))

    def test_a_wheel_of_another_host_crosses_with_what_it_holds_and_no_more(self):
        self.server("alpha")
        dists.make_env(self.src)
        self.manifest(extra=f"overlays:\n  - {{from: 'alpha:{wheel_of(wheels.NUMPY)}', packages: [numpy], closure: none}}\n")
        self.apply()
        self.assertEqual(trees.python(self.dst, "import numpy; print(numpy.__version__)"), "2.1.3")


class Refused(harness.Case):
    def overlay(self, path):
        dists.make_env(self.src)
        self.manifest(extra=f"overlays:\n  - {{from: '{path}', packages: ['*'], closure: none}}\n")
        return self.apply(rc=13).outcome()["error"]

    def test_a_damaged_wheel_by_the_name_of_its_file(self):
        good = wheel_of(wheels.REQUESTS)
        data = bytearray(good.read_bytes())
        data[len(data) // 2] ^= 0xFF
        bad = self.root / good.name
        bad.write_bytes(data)
        error = self.overlay(bad)
        self.assertEqual(error["code"], "wheel_refused")
        self.assertIn(good.name, error["what"])
        self.assertFalse(self.dst.exists())

    def test_two_wheels_of_one_distribution(self):
        folder = self.root / "two"
        folder.mkdir()
        (folder / "demo-1.0-py3-none-any.whl").touch()
        (folder / "demo-1.1-py3-none-any.whl").touch()
        error = self.overlay(folder)
        self.assertEqual((error["code"], error["causes"]), ("wheel_refused", ["demo-1.0-py3-none-any.whl", "demo-1.1-py3-none-any.whl"]))

    def test_a_wheel_for_another_python(self):
        good = wheel_of(wheels.NUMPY)
        other = self.root / good.name.replace("cp311", "cp39")
        subprocess.run(["cp", good, other], check=True)
        error = self.overlay(other)
        self.assertEqual(error["code"], "overlay_refused")
        self.assertTrue(any("it is for cp39 (cp39), not for Python 3.11" in c for c in error["causes"]), error)


class Relocated(harness.Case):
    def test_scripts_of_the_source_run_from_the_new_path_and_their_rows_are_true(self):
        dists.make_env(self.src)
        dists.install(self.src, "tool", "1.0", {"tool.py": "def main():\n    import sys\n    print(sys.prefix)\n"}, scripts={"tool": "tool:main"})
        (self.src / "bin/far").symlink_to("/nowhere/far")
        self.manifest(extra="")
        plain = self.apply().plan()["findings"]
        codes = [f["code"] for f in plain]
        self.assertEqual({f["severity"] for f in plain} - {"note", "warning"}, set())
        for code in ("path_differs", "shebang_elsewhere", "activate_elsewhere", "link_leaves"):
            self.assertIn(code, codes)
        text = pathlib.Path(self.manifest_file).read_text()
        pathlib.Path(self.manifest_file).write_text(text.replace("same_path: false", "relocate: true"))
        run = self.apply()
        self.assertEqual([f["code"] for f in run.plan()["findings"] if f["severity"] == "warning"], ["link_leaves"])
        self.assertEqual(dists.run(self.dst / "bin/tool"), str(self.dst))
        self.assertEqual(dists.broken_rows(self.dst), [])
        activated = subprocess.run(["sh", "-c", f". {self.dst}/bin/activate && command -v python"], capture_output=True, text=True)
        self.assertEqual(activated.stdout.strip(), f"{self.dst}/bin/python")
        held = [p for p in self.dst.rglob("*") if p.is_file() and not p.is_symlink() and str(self.src).encode() + b"/" in p.read_bytes()]
        self.assertEqual(held, [])
        self.assertEqual(self.apply().outcome()["result"], "unchanged")


if __name__ == "__main__":
    unittest.main(verbosity=2)
