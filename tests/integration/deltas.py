# SPDX-License-Identifier: MIT
"""Changed files: what the target has of their older versions does not travel, and what arrives is equal to the byte."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import link
import trees

SITE = trees.SITE
CHUNKS = ("--force-origin", "chunks", "--force-level", "raw")


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def edited(content, seed, edits):
    """The content after some insertions, deletions and replacements."""
    chance, out = random.Random(seed), bytearray(content)
    for _ in range(edits):
        at, piece = chance.randrange(len(out)), chance.randbytes(chance.randrange(1, 2000))
        kind = chance.randrange(3)
        if kind == 0:
            out[at:at] = piece
        elif kind == 1:
            del out[at:at + len(piece)]
        else:
            out[at:at + len(piece)] = piece
    return bytes(out)


class Deltas(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.large, self.medium = noise(20_000_000, 1), noise(900_000, 2)
        self.text = "".join(f"def f{i}():\n    return {i * i}\n" for i in range(4000)).encode()
        self.put("1.0", self.large, self.medium, self.text)

    def put(self, version, large, medium, text, name="gamma"):
        trees.add_package(self.src, name, version, {"__init__.py": "", "_core.so": large, "_more.so": medium, "code.py": text, "empty.py": ""})

    def remote(self):
        self.server()
        self.manifest(targets=["alpha"])
        self.apply()

    def up(self, *arguments):
        run = self.apply("--allow-delete", *arguments)
        self.assert_same_tree(self.src, self.dst)
        return run.outcome()["bytes_up"]

    def change(self, seed=7, edits=6):
        self.put("1.1", edited(self.large, seed, edits), edited(self.medium, seed, edits), edited(self.text, seed, edits))

    def test_of_changed_files_only_what_is_new_travels(self):
        self.remote()
        self.change()
        self.assertLess(self.up(*CHUNKS), 200_000)

    def test_the_same_by_every_way(self):
        self.remote()
        for seed, origin in enumerate(("chunks", "source", "chunks")):
            self.change(seed)
            with self.subTest(origin=origin):
                self.up("--force-origin", origin)

    def test_a_folder_that_was_renamed_serves_the_one_that_comes(self):
        self.remote()
        trees.add_package(self.src, "gamma", "2.0", {"__init__.py": ""})
        self.put("1.0", edited(self.large, 1, 5), edited(self.medium, 2, 5), edited(self.text, 3, 5), name="gamma2")
        self.assertLess(self.up(*CHUNKS), 200_000)

    def test_a_file_that_has_nothing_of_its_base_comes_whole(self):
        self.remote()
        self.put("1.1", noise(9_000_000, 5), noise(800_000, 6), noise(50_000, 8))
        self.assertGreater(self.up(*CHUNKS), 9_800_000)

    def test_content_of_another_file_on_the_target_is_found(self):
        self.remote()
        self.put("1.1", self.large[:5_000_000] + self.medium + self.large[5_000_000:], self.large[:900_000], self.text)
        self.assertLess(self.up(*CHUNKS), 600_000)

    def test_a_cut_in_the_middle_is_gone_on_with(self):
        self.remote()
        # Half of it is new, so that there is a middle.
        self.put("1.1", edited(self.large, 1, 3) + noise(20_000_000, 9), edited(self.medium, 2, 3), self.text)
        server = self.servers["alpha"]
        for after in (1_000_000, 6_000_000, 9_000_000):
            with self.subTest(after=after), link.Link(server.port, cut_after=after) as cut:
                (self.root / "cut_config").write_text(server.ssh_config(port=cut.port))
                run = self.envsync("apply", self.manifest_file, "--allow-delete", "--ssh-config", self.root / "cut_config", *CHUNKS, rc=12)
                self.assertEqual(run.outcome()["result"], "failed")
                self.wait_for_quiet()
        self.assertLess(self.up(*CHUNKS), 21_000_000)

    def test_bases_on_a_host_and_a_source_on_another(self):
        self.server("alpha"), self.server("beta")
        self.manifest(targets=["alpha"], source=f"beta:{self.src}")
        self.apply()
        self.change()
        self.assertLess(self.up(*CHUNKS), 200_000)


if __name__ == "__main__":
    harness.main()
