# SPDX-License-Identifier: MIT
"""What a reader sees while trees are swapped: the old one or the new one, and never nothing."""
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees

SWAPS = 15


class Reader(threading.Thread):
    """Reads two files of the environment over and over, the second one always after the first."""

    def __init__(self, first, second):
        super().__init__(daemon=True)
        self.first, self.second = first, second
        self.ends = threading.Event()
        self.faults, self.reads, self.seen = [], 0, set()

    def run(self):
        while not self.ends.is_set():
            try:
                a = int(self.first.read_text())
                b = int(self.second.read_text())
            except (OSError, ValueError) as error:
                self.faults.append(f"nothing there: {error}")
                return
            # One swap brings both: whoever saw the new first file sees the new second one.
            if b < a:
                self.faults.append(f"a mix: {self.first.name} of {a}, then {self.second.name} of {b}")
                return
            self.reads += 1
            self.seen |= {a, b}


class Readers(harness.Case):
    def swap_under_readers(self, *names):
        self.make_source()
        self.manifest(extra="settings: {keep_generations: 2}\n")
        files = [f"{trees.SITE}/{name}" for name in names]
        for name in files:
            trees.write(self.src / name, "0")
        self.apply()
        first, second = (self.dst / name for name in files)
        readers = [Reader(first, second), Reader(second, first)]
        for reader in readers:
            reader.start()
        try:
            for number in range(1, SWAPS + 1):
                for name in files:
                    trees.write(self.src / name, str(number))
                self.apply()
        finally:
            for reader in readers:
                reader.ends.set()
                reader.join()
        for reader in readers:
            self.assertEqual(reader.faults, [])
            self.assertGreater(reader.reads, 10 * SWAPS)
            self.assertGreater(len(reader.seen), SWAPS // 2)

    def test_two_files_of_one_package_change_together(self):
        self.swap_under_readers("alpha/one.txt", "alpha/two.txt")

    def test_two_files_at_far_ends_of_the_environment_change_together(self):
        self.swap_under_readers("alpha/deep/er/still/one.txt", "../../../two.txt")

    def test_a_process_that_runs_from_the_old_tree_goes_on(self):
        self.make_source()
        self.manifest()
        self.apply()
        code = "import sys, alpha\nprint('up', flush=True)\nfor line in sys.stdin: print(alpha.VERSION, open(alpha.__file__).read().strip(), flush=True)"
        with subprocess.Popen([str(self.dst / "bin/python"), "-B", "-c", code], cwd=self.dst, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "up\n")
            trees.add_package(self.src, "alpha", "1.1", {"__init__.py": "VERSION = '1.1'\n"})
            run = self.apply()
            process.stdin.write("go\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "1.0 VERSION = '1.1'\n")
            process.stdin.close()
            self.assertIn(str(process.pid), run.out + run.err, "the plan names processes that use the tree")
        self.assert_same_tree(self.src, self.dst)

    def test_a_tree_in_use_is_refused_where_the_manifest_says_so(self):
        self.make_source()
        self.manifest(extra="invariants: {same_path: false, in_use: refuse}\n")
        self.apply()
        trees.patch_five(self.src, "patched")
        with subprocess.Popen([str(self.dst / "bin/python"), "-c", "import sys; print(1, flush=True); sys.stdin.read()"], cwd=self.dst,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.assertIn("in_use", self.apply(rc=13).err)
            process.stdin.close()
            process.wait()
        self.apply()
        self.assert_same_tree(self.src, self.dst)


if __name__ == "__main__":
    unittest.main(verbosity=2)
