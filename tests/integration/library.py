# SPDX-License-Identifier: MIT
"""The library without the command line: examples/apply_manifest."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees


class Library(harness.Case):
    def example(self, *arguments):
        return subprocess.run([harness.binary("ENVSYNC_EXAMPLE"), *map(str, arguments)], env=self.env, capture_output=True, text=True, timeout=120)

    def test_a_program_applies_a_manifest_and_hears_what_happens(self):
        self.make_source()
        self.manifest()
        done = self.example(self.manifest_file)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("local: applied, generation 1", done.stdout)
        self.assert_same_tree(self.src, self.dst)
        self.assertIn("local: unchanged, generation 1", self.example(self.manifest_file).stdout)

    def test_a_program_that_cannot_ask_is_refused_and_told_why(self):
        self.make_source()
        trees.make_env(self.dst)
        self.manifest()
        before = trees.snapshot(self.dst)
        done = self.example(self.manifest_file)
        self.assertEqual(done.returncode, 13, done.stdout + done.stderr)
        self.assertIn("refused", done.stdout)
        self.assert_same_tree(before, self.dst)
        self.assertEqual(self.example(self.manifest_file, "--adopt").returncode, 0)
        self.assert_same_tree(self.src, self.dst)

    def test_a_manifest_with_errors_names_their_lines(self):
        self.manifest_file.write_text("version: 1\npath: /x/env\nsuorce: /x\ntargets: [local]\n")
        done = self.example(self.manifest_file)
        self.assertEqual(done.returncode, 10)
        self.assertIn("envsync.yaml:3: ", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
