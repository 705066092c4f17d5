# SPDX-License-Identifier: MIT
"""Overlays: packages of one environment laid onto another, swapped in together or refused by name."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
import dists


class Overlays(harness.Case):
    """A base with a torch that pins a triton and a library, a neighbour that lives beside them, and an origin with a newer torch."""

    def setUp(self):
        super().setUp()
        self.other = self.root / "other/env"
        dists.make_env(self.src)
        dists.install(self.src, "torch", "2.9.1", {"torch/__init__.py": "V = '2.9.1'\n", "torch/old.py": "", "functorch/__init__.py": ""},
                      requires=["triton==3.5.1", "nvidia-nccl-cu12==2.27"], scripts={"torchrun": "torch.run:main"})
        dists.install(self.src, "triton", "3.5.1", {"triton/__init__.py": "V = '3.5.1'\n"})
        dists.install(self.src, "nvidia-nccl-cu12", "2.27", {"nvidia/nccl/lib/libnccl.so.2": b"cu12" * 900})
        dists.install(self.src, "nvidia-ml-py", "13.0", {"pynvml.py": "V = 1\n", "nvidia/ml/x.py": ""})
        dists.install(self.src, "neighbour", "1.0", {"neighbour/__init__.py": "import torch\nV = torch.V\n"}, requires=["torch>=2"])
        dists.make_env(self.other)
        dists.install(self.other, "torch", "2.10.0", {"torch/__init__.py": "V = '2.10.0'\n", "torch/new.py": "", "torch/run.py": "def main():\n    print('ran')\n"},
                      requires=["triton==3.6.0", "nvidia-nccl-cu13==2.28; platform_system == 'Linux'"], scripts={"torchrun": "torch.run:main"})
        dists.install(self.other, "triton", "3.6.0", {"triton/__init__.py": "V = '3.6.0'\n"})
        dists.install(self.other, "nvidia-nccl-cu13", "2.28", {"nvidia/nccl/lib/libnccl.so.2": b"cu13" * 900})
        dists.install(self.other, "stranger", "1.0", {"stranger.py": ""})

    def overlay(self, **keys):
        origin = keys.pop("origin", self.other)
        lines = "".join(f", {key}: {value}" for key, value in keys.items())
        return f"overlays:\n  - {{from: '{origin}', packages: [torch]{lines}}}\n"

    def expected(self):
        """What an installer would leave: the newer torch and its pins, the neighbours of the base."""
        env = self.root / "expected/env"
        dists.make_env(env)
        for name in ("nvidia-ml-py", "neighbour"):
            dists.copy(self.src, env, name)
        for name in ("torch", "triton", "nvidia-nccl-cu13"):
            dists.copy(self.other, env, name)
        return env

    def assert_laid(self, path):
        # Scripts and the RECORD rows that list them name the path.
        skip = ("pyvenv.cfg", "bin/torchrun", f"{trees.SITE}/torch-2.10.0.dist-info/RECORD")
        there, wanted = (trees.snapshot(p, skip=skip) for p in (path, self.expected()))
        wanted = {n: e for n, e in wanted.items() if not n.startswith("bin/")}
        there = {n: e for n, e in there.items() if not n.startswith("bin/")}
        self.assert_same_tree(there, wanted)
        self.assertEqual(trees.python(path, "import neighbour, triton; print(neighbour.V, triton.V)"), "2.10.0 3.6.0")
        self.assertEqual(dists.broken_rows(path), [])
        self.assertEqual((path / "bin/torchrun").read_text().splitlines()[0], f"#!{path}/bin/python")
        self.assertEqual(dists.run(path / "bin/torchrun"), "ran")


class OntoASource(Overlays):
    def test_a_package_comes_with_its_pins_and_what_only_the_old_one_needed_leaves(self):
        self.manifest(extra=self.overlay())
        run = self.apply()
        packages = {p["name"]: (p["change"], p["from"], p["to"]) for p in run.plan()["packages"]}
        self.assertEqual(packages["torch"], ("added", None, "2.10.0"))
        self.assertNotIn("nvidia-nccl-cu12", packages)
        self.assert_laid(self.dst)
        self.assertEqual(self.apply().outcome()["result"], "unchanged")

    def test_a_name_that_no_origin_has_is_refused_though_the_tree_would_stay_as_it_is(self):
        self.manifest(extra=self.overlay())
        self.apply()
        self.manifest(extra=self.overlay().replace("[torch]", "[torch, toch]"))
        for verb in ("plan", "apply"):
            error = self.envsync(verb, str(self.manifest_file), rc=13).outcome()["error"]
            self.assertEqual(error["code"], "overlay_refused")
        self.assertEqual(sorted(self.generations()), [1])

    def test_an_overlay_that_is_added_later_changes_its_packages_alone(self):
        self.manifest()
        self.apply()
        before = trees.inodes(self.dst)
        self.manifest(extra=self.overlay())
        run = self.apply()
        packages = {p["name"]: (p["change"], p["from"], p["to"]) for p in run.plan()["packages"]}
        self.assertEqual(packages, {"torch": ("changed", "2.9.1", "2.10.0"), "triton": ("changed", "3.5.1", "3.6.0"),
                                    "nvidia-nccl-cu12": ("removed", "2.27", None), "nvidia-nccl-cu13": ("added", None, "2.28")})
        why = {p["name"]: p["why"] for p in run.plan()["packages"]}
        self.assertEqual(why["triton"], "torch 2.10.0 pins triton==3.6.0")
        self.assertEqual(why["nvidia-nccl-cu12"], "only torch 2.9.1 needed it")
        self.assert_laid(self.dst)
        after = trees.inodes(self.dst)
        self.assertEqual([p for p in after if "neighbour" in p and after[p] != before[p]], [])
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(self.src, self.dst)

    def test_overlays_are_laid_in_order(self):
        """The second one replaces what the first one brought, and finds what it needs there."""
        third = self.root / "third/env"
        dists.make_env(third)
        dists.install(third, "triton", "3.6.0", {"triton/__init__.py": "V = '3.6.0+fix'\n"})
        dists.install(third, "plugin", "1.0", {"plugin.py": "import torch\nV = torch.V\n"}, requires=["torch>=2.10"])
        self.manifest(extra=self.overlay() + f"  - {{from: '{third}', packages: [triton, plugin]}}\n")
        self.apply()
        self.assertEqual(trees.python(self.dst, "import plugin, triton; print(plugin.V, triton.V)"), "2.10.0 3.6.0+fix")
        self.assertEqual(dists.broken_rows(self.dst), [])
        self.assertEqual(self.apply().outcome()["result"], "unchanged")

    def test_an_overlay_crosses_hosts(self):
        self.server("alpha")
        self.server("beta")
        self.manifest(targets=["alpha"], source=f"local:{self.src}", extra=self.overlay(origin=f"beta:{self.other}"))
        self.apply()
        self.assert_laid(self.dst)

    def test_what_the_origin_lacks_is_refused_by_name_and_nothing_is_changed(self):
        (self.other / trees.SITE / "torch/new.py").unlink()
        self.manifest(extra=self.overlay())
        run = self.apply(rc=13)
        error = run.outcome()["error"]
        self.assertEqual(error["code"], "overlay_refused")
        self.assertTrue(any(c.startswith("incomplete: 'torch 2.10.0' lacks 1 of its files in the origin") for c in error["causes"]), error)
        self.assertTrue(any("accept: [{code: incomplete" in h for h in error["hints"]), error)
        self.assertFalse(self.dst.exists())

    def test_a_finding_is_taken_by_accept_and_an_entry_that_takes_none_is_a_warning(self):
        (self.other / trees.SITE / "torch/new.py").unlink()
        self.manifest(extra=self.overlay() + "accept: [{code: incomplete, files: '**/torch/**', why: not used}, {code: conflicts}]\n")
        run = self.apply()
        self.assertTrue(any("accepted: not used" in f["what"] for f in run.plan()["findings"]), run.plan()["findings"])
        self.assertTrue(any("'conflicts'" in p["error"]["what"] for p in run.of("problem")), run.of("problem"))

    def test_content_that_is_not_what_its_record_says_does_not_come(self):
        library = self.other / trees.SITE / "nvidia/nccl/lib/libnccl.so.2"
        library.write_bytes(b"bad!" * 900)  # of the same size: only its sha256 tells
        self.manifest(extra=self.overlay())
        run = self.apply(rc=13)
        error = run.outcome()["error"]
        self.assertEqual(error["code"], "invariant_violated")
        self.assertTrue(any("nvidia-nccl-cu13 2.28" in c for c in error["causes"]), error)
        self.assertFalse(self.dst.exists())
        self.manifest(extra=self.overlay() + "accept: [{code: record_mismatch, why: patched}]\n")
        self.apply()

    def test_verify_holds_files_against_their_records(self):
        self.manifest(extra=self.overlay())
        self.apply()
        self.assertEqual(self.envsync("verify", self.manifest_file, "--record").of("finding"), [])
        (self.dst / trees.SITE / "pynvml.py").write_text("V = 2\n")
        run = self.envsync("verify", self.manifest_file, "--record", rc=4)
        self.assertTrue(any(f["code"] == "record_mismatch" and "nvidia-ml-py 13.0" in f["what"] for f in run.of("finding")), run)
        self.assertIn("Differs", self.envsync("verify", self.manifest_file, "--record", rc=4, json_events=False).out)

    def test_a_pattern_that_matches_nothing_is_refused(self):
        self.manifest(extra=self.overlay().replace("[torch]", "[torhc]"))
        run = self.apply(rc=13)
        self.assertTrue(any("'torhc' matches no distribution" in c for c in run.outcome()["error"]["causes"]), run)


class OntoTheTarget(Overlays):
    """`source: target`: the environment that is there, with packages laid onto it."""

    def setUp(self):
        super().setUp()
        self.src.rename(self.move_to(self.dst))
        dists.relocate(self.dst, self.src)
        self.before = trees.snapshot(self.dst)

    @staticmethod
    def move_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, overlays, extra=""):
        self.manifest_file.write_text(f"version: 1\npath: {self.dst}\nsource: target\ntargets: [local]\n{overlays}{extra}")

    def expected(self):
        env = self.root / "expected/env"
        if env.exists():
            return env
        dists.make_env(env)
        for name in ("nvidia-ml-py", "neighbour"):
            dists.copy(self.dst, env, name)
        for name in ("torch", "triton", "nvidia-nccl-cu13"):
            dists.copy(self.other, env, name)
        return env

    def test_what_is_there_is_kept_and_a_removed_overlay_restores_it(self):
        self.write(self.overlay())
        run = self.apply()
        self.assertEqual((run.outcome()["result"], run.outcome()["generation"]), ("applied", 1))
        self.assert_laid(self.dst)
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        self.write("")
        self.assertEqual(self.apply().outcome()["generation"], 2)
        self.assert_same_tree(trees.snapshot(self.dst), self.before)

    def test_changes_outside_the_overlay_are_carried_over_again_and_again(self):
        self.write(self.overlay())
        self.apply()
        dists.install(self.dst, "later", "1.0", {"later.py": "X = 1\n"})
        trees.write(self.dst / trees.SITE / "neighbour/__init__.py", "V = 'patched'\n")
        dists.install(self.other, "triton", "3.6.0", {"triton/__init__.py": "V = '3.6.0+1'\n"})
        for _ in range(2):
            self.apply()
            self.assertEqual(trees.python(self.dst, "import later, neighbour, triton; print(later.X, neighbour.V, triton.V)"), "1 patched 3.6.0+1")
            dists.install(self.other, "triton", "3.6.0", {"triton/__init__.py": "V = '3.6.0+1'\n", "triton/more.py": ""})
        self.write("")
        self.apply()
        self.assertEqual(trees.python(self.dst, "import later, neighbour, triton; print(later.X, neighbour.V, triton.V)"), "1 patched 3.5.1")

    def test_changes_inside_what_an_overlay_brought_are_drift(self):
        self.write(self.overlay())
        self.apply()
        trees.write(self.dst / trees.SITE / "torch/new.py", "patched\n")
        trees.write(self.dst / trees.SITE / "torch/extra.py", "")
        run = self.apply(rc=14)
        self.assertEqual(sorted(c.split("/")[-1] for c in run.outcome()["error"]["causes"]), ["extra.py", "new.py"])
        self.apply("--drift", "replace")
        self.assert_laid(self.dst)
        self.envsync("rollback", self.manifest_file, "-y")
        self.assertEqual((self.dst / trees.SITE / "torch/new.py").read_text(), "patched\n")
        self.write("")
        self.apply()
        self.assert_same_tree(trees.snapshot(self.dst), self.before)

    def test_a_rollback_knows_what_was_there_before_the_overlay(self):
        self.write(self.overlay())
        self.apply()
        dists.install(self.other, "triton", "3.6.0", {"triton/__init__.py": "V = '3.6.0+1'\n"})
        self.apply()
        self.envsync("rollback", self.manifest_file, "-y")
        self.envsync("prune", self.manifest_file, "--keep", "0")
        self.write("")
        self.apply()
        self.assert_same_tree(trees.snapshot(self.dst), self.before)

    def test_an_overlay_of_the_target_itself_moves_no_content(self):
        self.server("alpha")
        big = os.urandom(3 << 20)
        dists.install(self.other, "nvidia-nccl-cu13", "2.28", {"nvidia/nccl/lib/libnccl.so.2": big})
        self.manifest_file.write_text(f"version: 1\npath: {self.dst}\nsource: target\ntargets: [alpha]\n" + self.overlay(origin=f"target:{self.other}"))
        outcome = self.apply().outcome()
        self.assertLess(outcome["bytes_up"] + outcome["bytes_down"], 1 << 20)
        self.assert_laid(self.dst)

    def test_a_folder_of_packages_is_an_origin_and_its_scripts_are_made_anew(self):
        staged = self.root / "staged"
        for item in ("torch", "torch-2.10.0.dist-info", "triton", "triton-3.6.0.dist-info", "nvidia", "nvidia_nccl_cu13-2.28.dist-info"):
            dists.copy_tree(self.other / trees.SITE / item, staged / item)
        self.write(self.overlay(origin=f"target:{staged}"))
        self.apply()
        self.assert_laid(self.dst)

    def test_a_folder_taken_whole_comes_without_its_dist_infos(self):
        staged = self.root / "staged"
        for item in ("torch", "torch-2.10.0.dist-info", "triton", "triton-3.6.0.dist-info", "nvidia"):
            dists.copy_tree(self.other / trees.SITE / item, staged / item)
        self.write(self.overlay(origin=f"target:{staged}", roots="[nvidia]", evict="[nvidia-nccl-cu12]"))
        self.apply()
        library = self.dst / trees.SITE / "nvidia/nccl/lib/libnccl.so.2"
        self.assertEqual(library.read_bytes(), b"cu13" * 900)
        self.assertEqual(trees.python(self.dst, "import neighbour; print(neighbour.V)"), "2.10.0")

    def test_a_build_that_was_staged_by_hand_is_refused_with_what_it_lacks_until_the_overlay_says_how(self):
        """nvidia/ came without dist-infos, functorch not at all; both are named, and nothing is laid by half."""
        dists.install(self.other, "torch", "2.10.0", {"torch/__init__.py": "V = '2.10.0'\n", "torch/run.py": "def main():\n    print('ran')\n", "functorch/__init__.py": "V = 2\n", "functorch/dim.py": ""},
                      requires=["triton==3.6.0", "nvidia-nccl-cu13==2.28"], scripts={"torchrun": "torch.run:main"})
        staged = self.root / "staged"
        for item in ("torch", "torch-2.10.0.dist-info", "triton", "triton-3.6.0.dist-info", "nvidia"):
            dists.copy_tree(self.other / trees.SITE / item, staged / item)

        def causes(**keys):
            self.write(self.overlay(origin=f"target:{staged}", **keys))
            error = self.apply(rc=13).outcome()["error"]
            self.assertEqual(error["code"], "overlay_refused")
            return "\n".join(error["causes"]), "\n".join(error["hints"])

        lacks = "'torch 2.10.0' lacks 2 of its files in the origin: functorch/__init__.py, functorch/dim.py"
        bare = "'torch 2.10.0' needs nvidia-nccl-cu13==2.28, and no dist-info of the origin owns the 1 files (3.6 KB) below 'nvidia'"
        both, hints = causes()
        self.assertIn(lacks, both)
        self.assertIn(bare, both)
        self.assertIn("`incomplete: base`", hints)
        self.assertIn("`roots`", hints)
        self.assertNotIn(bare, causes(roots="[nvidia]")[0])
        self.assertNotIn(lacks, causes(incomplete="base")[0])
        self.assert_same_tree(trees.snapshot(self.dst), self.before)
        self.write(self.overlay(origin=f"target:{staged}", roots="[nvidia]", incomplete="base"))
        self.apply()
        self.assertEqual((self.dst / trees.SITE / "functorch/__init__.py").read_text(), "")  # the base's own
        self.assertEqual((self.dst / trees.SITE / "nvidia/nccl/lib/libnccl.so.2").read_bytes(), b"cu13" * 900)
        self.assertEqual(dists.run(self.dst / "bin/torchrun"), "ran")
        self.assertEqual(self.apply().outcome()["result"], "unchanged")

    def test_nothing_there_is_refused(self):
        self.manifest_file.write_text(f"version: 1\npath: {self.dst}2\nsource: target\ntargets: [local]\n" + self.overlay())
        self.assertEqual(self.apply(rc=13).outcome()["error"]["code"], "source_missing")

    def test_overlays_are_for_the_hosts_that_they_name(self):
        self.server("alpha")
        self.server("beta")
        there = self.root / "beta/env"
        dists.copy_tree(self.dst, there)
        dists.relocate(there, self.dst)
        self.manifest_file.write_text("version: 1\nsource: target\ntargets: [{host: alpha, path: %s, gpu: ['10.3']}, {host: beta, path: %s, gpu: ['12.0']}]\n" % (self.dst, there)
                                      + self.overlay(gpu="['10.3']"))
        run = self.apply()
        self.assertEqual((run.outcome("alpha")["result"], run.outcome("beta")["generation"]), ("applied", 0))
        self.assert_laid(self.dst)
        self.assertEqual(trees.python(there, "import neighbour; print(neighbour.V)"), "2.9.1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
