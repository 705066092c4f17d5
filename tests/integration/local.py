# SPDX-License-Identifier: MIT
"""One environment on this machine: applied, patched, rolled back, verified, pruned."""
import mmap
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees


class Apply(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()

    def test_a_first_apply_makes_an_equal_tree_that_runs(self):
        run = self.apply()
        outcome = run.outcome()
        self.assertEqual((outcome["result"], outcome["generation"]), ("applied", 1))
        self.assert_same_tree(trees.snapshot(self.src, mtime=True), trees.snapshot(self.dst, mtime=True))
        self.assertEqual(trees.python(self.dst, "import beta; print(beta.TEXT, beta.alpha.VERSION)"), "beta 1.0")
        self.assertEqual(trees.python(self.dst, "import sys; print(sys.prefix)"), str(self.dst))

    def test_parents_of_an_absent_path_are_made(self):
        deep = self.root / "dst/a/b/c/env"
        self.manifest(path=deep)
        self.apply()
        self.assert_same_tree(self.src, deep)

    def test_an_unchanged_second_apply_makes_no_generation_and_touches_nothing(self):
        self.apply()
        before, inode = trees.inodes(self.dst), os.stat(self.dst).st_ino
        times = {p: os.lstat(self.dst / p).st_ctime_ns for p in before}
        run = self.apply()
        self.assertEqual((run.outcome()["result"], run.outcome()["generation"]), ("unchanged", 1))
        self.assertEqual(list(self.generations()), [1])
        self.assertEqual((trees.inodes(self.dst), os.stat(self.dst).st_ino), (before, inode))
        self.assertEqual({p: os.lstat(self.dst / p).st_ctime_ns for p in before}, times)

    def test_new_times_on_equal_content_cost_nothing(self):
        self.apply()
        inodes = trees.inodes(self.dst)
        for name in inodes:
            os.utime(self.src / name)
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        self.assertEqual(trees.inodes(self.dst), inodes)

    def test_five_patched_files_arrive_and_every_other_file_stays_the_same_inode(self):
        self.apply()
        before = trees.inodes(self.dst)
        patched = trees.patch_five(self.src, "patched")
        outcome = self.apply().outcome()
        self.assertEqual((outcome["result"], outcome["generation"], outcome["files"]), ("applied", 2, 5))
        self.assert_same_tree(self.src, self.dst)
        after = trees.inodes(self.dst)
        self.assertEqual({p for p in before if after[p] != before[p]}, set(patched))
        self.assertEqual(trees.python(self.dst, "import alpha.m3; print(alpha.m3.answer())"), "patched")

    def test_additions_removals_and_changed_types_arrive(self):
        self.apply()
        site = self.src / trees.SITE
        trees.add_package(self.src, "gamma", "0.1", {"__init__.py": "X = 1\n", "sub/y.py": "Y = 2\n"})
        (site / "alpha/m0.py").unlink()
        (site / "alpha/m1.py").unlink()
        trees.write(site / "alpha/m1.py/__init__.py", "a file became a folder\n")
        (site / "alpha/m2.py").unlink()
        (site / "alpha/m2.py").symlink_to("m3.py")
        (site / "alpha/empty").mkdir(mode=0o750)
        os.chmod(site / "alpha/m4.py", 0o755)
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_plan_and_dry_run_change_nothing(self):
        before = trees.snapshot(self.root / "dst") if (self.root / "dst").exists() else None
        for arguments in (("plan", self.manifest_file), ("apply", self.manifest_file, "--dry-run")):
            run = self.envsync(*arguments)
            self.assertGreater(run.plan()["files_added"], 10)
            self.assertEqual(before, trees.snapshot(self.root / "dst") if (self.root / "dst").exists() else None)
        self.assertEqual(self.envsync("plan", self.manifest_file, "--exit-code", rc=4).plan()["generation_next"], 1)
        self.apply()
        self.envsync("plan", self.manifest_file, "--exit-code", rc=0)

    def test_every_origin_of_content_gives_the_same_tree(self):
        for origin in ("target", "same-host", "source"):
            with self.subTest(origin=origin):
                path = self.root / "dst" / origin / "env"
                manifest = self.manifest(path=path)
                self.apply()
                trees.patch_five(self.src, origin)
                self.apply("--force-origin", origin, manifest=manifest)
                self.assert_same_tree(self.src, path)

    def test_a_staged_tree_that_is_read_again_before_the_swap_arrives(self):
        self.apply("--verify-staged")
        self.assert_same_tree(self.src, self.dst)


class History(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest(extra="settings: {keep_generations: 10}\n")
        self.trees = {}
        for number in (1, 2, 3):
            if number > 1:
                trees.patch_five(self.src, f"generation {number}")
            self.apply()
            self.trees[number] = trees.snapshot(self.dst, mtime=True)

    def test_rollback_goes_one_further_back_each_time_and_a_first_apply_stays(self):
        for generation, tree in ((4, 2), (5, 1)):
            outcome = self.envsync("rollback", self.manifest_file, "-y").outcome()
            self.assertEqual((outcome["result"], outcome["generation"]), ("applied", generation))
            self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[tree])
            self.assertEqual(self.generations()[generation]["restores"], tree)
        self.envsync("rollback", self.manifest_file, "-y", rc=1)
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[1])

    def test_a_new_apply_after_a_rollback_can_be_rolled_back_too(self):
        self.envsync("rollback", self.manifest_file, "-y")
        self.assertEqual(self.apply().outcome()["result"], "applied")
        self.assert_same_tree(self.src, self.dst)
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[2])

    def test_rollback_to_a_named_generation(self):
        self.envsync("rollback", self.manifest_file, "--to", "1", "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[1])

    def test_rollback_to_a_generation_that_never_was_changes_nothing(self):
        self.envsync("rollback", self.manifest_file, "--to", "99", "-y", rc=1)
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[3])

    def test_a_rolled_back_file_is_found_though_its_content_left_the_live_tree(self):
        (self.src / trees.SITE / "alpha/m0.py").unlink()
        self.apply()
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[3])

    def test_history_lists_the_kept_generations_and_the_current_one(self):
        found = self.generations()
        self.assertEqual(list(found), [1, 2, 3])
        self.assertEqual([n for n, e in found.items() if e["current"]], [3])
        self.assertEqual(len({e["committed_run"] for e in found.values()}), 3)
        self.assertEqual({e["source"] for e in found.values()}, {f"local:{self.src}"})

    def test_status_names_the_generation_and_counts_drift(self):
        status = self.envsync("status", self.manifest_file).of("status")[0]
        self.assertEqual((status["generation"], status["drift_added"], status["drift_removed"], status["drift_changed"]), (3, 0, 0, 0))
        trees.write(self.dst / trees.SITE / "alpha/m0.py", "edited = True\n")
        trees.write(self.dst / trees.SITE / "alpha/extra.py", "new = True\n")
        (self.dst / trees.SITE / "alpha/m2.py").unlink()
        status = self.envsync("status", self.manifest_file).of("status")[0]
        self.assertEqual((status["drift_added"], status["drift_removed"], status["drift_changed"]), (1, 1, 1))
        self.envsync("status", self.manifest_file, "--exit-code", rc=4)

    def test_prune_drops_old_generations_and_keeps_the_environment(self):
        run = self.envsync("prune", self.manifest_file, "--keep", "1", "-y")
        self.assertEqual(list(self.generations()), [2, 3])
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[3])
        self.envsync("prune", self.manifest_file, "--keep", "0", "-y")
        self.assertEqual(list(self.generations()), [3])
        pool = self.state_folder() / "contents"
        self.assertEqual(list(pool.iterdir()) if pool.exists() else [], [])
        self.assertTrue(run.of("summary"))

    def test_prune_all_removes_the_state_and_keeps_the_environment(self):
        self.envsync("prune", self.manifest_file, "--all", "-y")
        self.assertFalse(self.state_folder().exists())
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.trees[3])

    def test_only_so_many_generations_are_kept_beside_the_current_one(self):
        self.manifest(extra="settings: {keep_generations: 1}\n")
        trees.patch_five(self.src, "generation 4")
        self.apply()
        self.assertEqual(list(self.generations()), [3, 4])


class Verify(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()
        self.apply()
        self.table = self.dst / trees.SITE / "alpha/data/table.bin"

    def test_an_untouched_environment_is_as_it_was_applied(self):
        for arguments in ((), ("--full",)):
            self.assertEqual(self.envsync("verify", self.manifest_file, *arguments).of("difference"), [])

    def test_a_flipped_byte_with_its_old_time_is_found(self):
        info = os.stat(self.table)
        with open(self.table, "r+b") as file:
            file.seek(1000)
            file.write(b"\xff")
        os.utime(self.table, ns=(info.st_atime_ns, info.st_mtime_ns))
        for arguments in ((), ("--full",)):
            run = self.envsync("verify", self.manifest_file, *arguments, rc=4)
            self.assertEqual([d["path"] for d in run.of("difference")], [str(self.table.relative_to(self.dst))])

    def test_verify_full_finds_a_byte_that_no_file_time_tells_of(self):
        # A store through a mapping whose page is already dirty changes neither mtime nor ctime.
        with open(self.table, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            mapping[1000] = mapping[1000]
            settled = os.stat(self.table).st_ctime_ns + 100_000_000
            harness.wait_until(lambda: time.time_ns() > settled, "the file's times lie in the past")
            self.assertEqual(self.apply().outcome()["result"], "unchanged")
            before = os.stat(self.table)
            mapping[1000] ^= 0xFF
            after = os.stat(self.table)
            self.assertEqual((before.st_mtime_ns, before.st_ctime_ns), (after.st_mtime_ns, after.st_ctime_ns))
            run = self.envsync("verify", self.manifest_file, "--full", rc=4)
            self.assertEqual([d["path"] for d in run.of("difference")], [str(self.table.relative_to(self.dst))])

    def test_verify_names_added_removed_and_changed_metadata(self):
        site = self.dst / trees.SITE
        trees.write(site / "alpha/extra.py", "")
        (site / "alpha/m2.py").unlink()
        os.chmod(site / "alpha/m4.py", 0o755)
        run = self.envsync("verify", self.manifest_file, rc=4)
        found = {d["path"]: d["kind"] for d in run.of("difference")}
        self.assertEqual(found, {f"{trees.SITE}/alpha/extra.py": "+", f"{trees.SITE}/alpha/m2.py": "-", f"{trees.SITE}/alpha/m4.py": "m"})

    def test_verify_of_an_environment_that_was_never_applied_says_so(self):
        self.manifest(path=self.root / "elsewhere/env")
        run = self.envsync("verify", self.manifest_file, rc=None)
        self.assertNotEqual(run.rc, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
