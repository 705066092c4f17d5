# SPDX-License-Identifier: MIT
"""Real environments of real packages: numpy and requests, and sglang in two versions."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
import wheels

RUNS = "import numpy, requests; print(numpy.__version__, requests.__version__, numpy.arange(10).sum())"
VERSION = "import importlib.metadata as m; print(m.version('sglang'))"


class Real(harness.Case):
    def build(self, sglang):
        wheels.make(self.src)
        for requirement in (wheels.NUMPY, wheels.REQUESTS):
            wheels.install(self.src, requirement)
        wheels.install(self.src, sglang, dependencies=False)

    def setUp(self):
        super().setUp()
        self.server("alpha")
        self.build(wheels.SGLANG_OLD)
        self.manifest(targets=["alpha"], extra="settings: {keep_generations: 10}\n")

    def test_a_real_environment_is_brought_upgraded_patched_recreated_and_rolled_back(self):
        run = self.apply()
        self.assertEqual(trees.python(self.dst, RUNS), "2.1.3 2.32.3 45")
        self.assert_same_tree(self.src, self.dst)
        first = trees.snapshot(self.dst, mtime=True)
        self.assertLessEqual({"numpy", "requests", "sglang"}, {p["name"] for p in run.plan()["packages"]})

        wheels.install(self.src, wheels.SGLANG_NEW, dependencies=False)
        run = self.apply("--force-origin", "chunks")
        self.assertLess(run.outcome()["bytes_up"], 12_000_000)
        changed = {p["name"]: (p["from"], p["to"]) for p in run.plan()["packages"]}
        self.assertEqual(changed, {"sglang": ("0.5.13", "0.5.15")})
        self.assertEqual(trees.python(self.dst, VERSION), "0.5.15")
        self.assert_same_tree(self.src, self.dst)
        second = trees.snapshot(self.dst, mtime=True)

        modules = sorted((self.src / trees.SITE / "sglang/srt").rglob("*.py"))
        for module in modules[100:105]:
            trees.write(module, module.read_text() + "\n# patched here\n")
        outcome = self.apply().outcome()
        self.assertEqual(outcome["files"], 5)
        self.assertLess(outcome["bytes_up"], 200_000)
        self.assert_same_tree(self.src, self.dst)

        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), second)
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), first)
        self.assertEqual(trees.python(self.dst, VERSION), "0.5.13")

    def test_an_environment_that_was_made_again_from_the_same_wheels_is_up_to_date(self):
        self.apply()
        shutil.rmtree(self.src)
        self.build(wheels.SGLANG_OLD)
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        self.assertEqual(trees.python(self.dst, RUNS), "2.1.3 2.32.3 45")


if __name__ == "__main__":
    unittest.main(verbosity=2)
