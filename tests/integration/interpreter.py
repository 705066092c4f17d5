# SPDX-License-Identifier: MIT
"""interpreter: ship. A host of its own is a mount namespace in which the folder of the base Python is another one."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
import dists

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def has_namespaces():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(has_namespaces(), "no mount namespaces here")
class Ship(harness.Case):
    def setUp(self):
        super().setUp()
        self.pythons = self.root / "share/uv/python"
        self.base = self.pythons / f"cpython-{VERSION}"
        self.theirs = self.root / "theirs"
        self.theirs.mkdir()
        trees.write(self.base / f"bin/python{VERSION}", f'#!/bin/sh\nexec {sys.executable} "$@"\n').chmod(0o755)
        trees.write(self.base / f"lib/python{VERSION}/os.py", "# the standard library\n")
        trees.write(self.base / f"lib/python{VERSION}/__pycache__/os.cpython.pyc", b"compiled")
        dists.make_env(self.src)
        (self.src / "bin/python").unlink()
        (self.src / "bin/python").symlink_to(self.base / f"bin/python{VERSION}")
        (self.src / "pyvenv.cfg").write_text(f"home = {self.base}/bin\ninclude-system-site-packages = false\nversion = {VERSION}.0\n")
        self.write_manifest("ship")

    def write_manifest(self, rule, base=None):
        enter = f"mount --bind {self.theirs} {self.pythons} && exec sh"
        self.manifest_file = self.root / "envsync.yaml"
        self.manifest_file.write_text(
            f"version: 1\nsource: local:{self.src}\n"
            f"targets:\n  - {{host: blank, path: {self.dst}, transport: {{command: [unshare, -m, sh, -c, \"{enter}\"]}}}}\n"
            f"invariants: {{same_path: false, interpreter: {rule}}}\n")

    def there(self):
        return self.theirs / self.base.name

    def test_a_host_without_python_gets_the_base_first_and_then_the_environment(self):
        self.write_manifest("require")
        self.assertEqual(self.apply(rc=13).outcome()["error"]["code"], "invariant_violated")
        self.write_manifest("ship")
        run = self.envsync("plan", self.manifest_file)
        self.assertEqual([p["path"] for p in run.of("plan")], [str(self.base), str(self.dst)])
        self.assertFalse(self.there().exists())
        run = self.apply()
        self.assertEqual([(o["path"], o["result"]) for o in run.of("outcome")], [(str(self.base), "applied"), (str(self.dst), "applied")])
        self.assert_same_tree(self.base, self.there())
        self.assertTrue((self.theirs / ".envsync" / self.base.name / "records/1").exists())
        run = self.apply()
        self.assertEqual([(o["path"], o["result"]) for o in run.of("outcome")], [(str(self.dst), "unchanged")])

    def test_a_base_that_envsync_brought_follows_the_source(self):
        self.apply()
        trees.write(self.base / f"lib/python{VERSION}/new.py", "")
        self.apply()
        self.assert_same_tree(self.base, self.there())

    def test_a_base_that_runs_there_is_left_alone(self):
        trees.write(self.there() / f"bin/python{VERSION}", f'#!/bin/sh\nexec {sys.executable} "$@"\n').chmod(0o755)
        self.apply()
        self.assertFalse((self.there() / "lib").exists())

    def test_the_systems_python_is_not_brought(self):
        (self.src / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {VERSION}\n")
        error = self.apply(rc=13).outcome()["error"]
        self.assertIn("is the system's", error["what"])
        self.assertFalse(self.dst.exists())

    def test_a_folder_that_is_no_python_is_refused(self):
        (self.base / f"lib/python{VERSION}/os.py").unlink()
        error = self.apply(rc=13).outcome()["error"]
        self.assertEqual(error["causes"], [f"its standard library is not in 'lib/python{VERSION}'"])
        self.assertFalse(self.there().exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
