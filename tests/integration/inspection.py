# SPDX-License-Identifier: MIT
"""`inspect` on a real environment, here and over ssh: it says what is there, and leaves it as it was."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
import wheels


class Inspect(harness.Case):
    def setUp(self):
        super().setUp()
        wheels.make(self.src)
        for requirement in (wheels.NUMPY, wheels.REQUESTS):
            wheels.install(self.src, requirement)

    def look(self, place):
        found = self.envsync("inspect", place).of("inspection")
        self.assertEqual(len(found), 1)
        return found[0]

    def test_a_real_environment_is_told_by_its_distributions_interpreter_and_bytecode(self):
        before = trees.snapshot(self.src, mtime=True, bytecode=True)
        found = self.look(self.src)
        self.assertEqual(found["path"], str(self.src))
        self.assertEqual(found["answer"], trees.python(self.src, "import sys; print('%d.%d.%d' % sys.version_info[:3])"))
        versions = {d["name"]: d["version"] for d in found["distributions"]}
        self.assertEqual((versions["numpy"], versions["requests"]), ("2.1.3", "2.32.3"))
        self.assertEqual(found["distributions"][0]["name"], "numpy")
        numpy = found["distributions"][0]
        listed = trees.python(self.src, "import importlib.metadata as m; print(sum(f.locate().is_file() for f in m.files('numpy')))")
        self.assertEqual(numpy["files"], int(listed))
        self.assertEqual({d["installer"] for d in found["distributions"]}, {"pip"})
        self.assertEqual((found["shared"], found["unowned_files"], found["bytecode"]["orphaned"]), ([], 0, 0))
        self.assertEqual(trees.snapshot(self.src, mtime=True, bytecode=True), before)

        text = self.envsync("inspect", self.src, json_events=False).out
        self.assertIn("numpy 2.1.3", text)
        self.assertIn("which runs", text)

    def test_another_host_tells_the_same(self):
        self.server("alpha")
        here, there = self.look(self.src), self.look(f"alpha:{self.src}")
        self.assertEqual(there.pop("host"), "alpha")
        here.pop("host")
        for found in (here, there):
            found.pop("ts"), found.pop("run")
        self.assertEqual(here, there)

    def test_what_is_odd_is_told(self):
        site = self.src / trees.SITE
        trees.write(site / "requests/mine.py", "print('mine')\n")
        subprocess.run([self.src / "bin/python", "-m", "compileall", "-q", site / "requests"], check=True)
        (site / "requests/mine.py").unlink()
        (site / "requests/api.py").unlink()
        trees.write(site / "nobody.py", "x = 1\n")
        os.rename(self.src / "bin/python", self.src / "bin/gone")
        found = self.look(self.src)
        self.assertIsNone(found["answer"])
        self.assertEqual(found["bytecode"]["orphaned"], 2)
        self.assertEqual(found["unowned_files"], 1)
        self.assertEqual({d["name"]: d["missing"] for d in found["distributions"]}["requests"], 1)
        self.assertIn("incomplete", {f["code"] for f in found["findings"]})

    def test_what_is_no_environment_is_one_clear_error(self):
        for place, words in ((self.root / "nothing", "does not exist"), (self.home, "no pyvenv.cfg")):
            run = self.envsync("inspect", place, rc=13, json_events=False)
            self.assertIn("error[source_missing]", run.err)
            self.assertIn(words, run.err)
            self.assertEqual(run.out, "")


if __name__ == "__main__":
    harness.main()
