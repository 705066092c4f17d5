# SPDX-License-Identifier: MIT
"""What envsync refuses, and that a refusal changes nothing."""
import fcntl
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees


class Refusals(harness.Case):
    def refused(self, code, rc, *arguments, **options):
        """A run that is refused with this code, and leaves the target as it was."""
        before = trees.snapshot(self.dst) if self.dst.exists() else None
        run = self.apply(*arguments, rc=rc, **options)
        self.assertEqual(before, trees.snapshot(self.dst) if self.dst.exists() else None)
        codes = {e.get("code") for e in run.events if e.get("code")}
        self.assertIn(code, codes, str(run))
        self.assertIn(f"[{code}]", run.err, str(run))
        return run

    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()


class Adoption(Refusals):
    def setUp(self):
        super().setUp()
        trees.make_env(self.dst)
        trees.write(self.dst / trees.SITE / "own.py", "mine = True\n")
        self.found = trees.snapshot(self.dst, mtime=True)

    def test_a_tree_that_envsync_does_not_know_is_refused(self):
        run = self.refused("adoption_refused", 13)
        self.assertIn("--adopt", run.err)
        self.assertFalse(self.state_folder().exists() and self.generations())

    def test_an_adopted_tree_becomes_generation_0_and_can_be_restored(self):
        self.assertEqual(self.apply("--adopt").outcome()["generation"], 1)
        self.assert_same_tree(self.src, self.dst)
        self.assertTrue(self.generations()[0]["adopted"])
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), self.found)

    def test_an_empty_folder_needs_no_adoption(self):
        empty = self.root / "empty/env"
        empty.mkdir(parents=True)
        self.manifest(path=empty)
        self.apply()
        self.assert_same_tree(self.src, empty)

    def test_plan_exits_13_where_apply_would(self):
        self.envsync("plan", self.manifest_file, rc=13)


class Drift(Refusals):
    def setUp(self):
        super().setUp()
        self.apply()
        self.edited = self.dst / trees.SITE / "alpha/m1.py"
        trees.write(self.edited, "edited = True\n")
        trees.write(self.dst / trees.SITE / "extra.py", "added = True\n")

    def test_a_tree_that_somebody_edited_is_refused(self):
        run = self.refused("drift_refused", 14)
        self.assertIn("--drift replace", run.err)
        self.assertIn("envsync status", run.err)
        listed = self.envsync("status", self.manifest_file, "--files", json_events=False).out
        self.assertIn("alpha/m1.py", listed)
        self.assertIn("extra.py", listed)

    def test_drift_is_replaced_where_asked_and_stays_restorable(self):
        drifted = trees.snapshot(self.dst, mtime=True)
        self.apply("--drift", "replace")
        self.assert_same_tree(self.src, self.dst)
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), drifted)

    def test_the_manifest_can_ask_for_replacement(self):
        self.manifest(extra="settings: {drift: replace}\n")
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_a_flag_that_refuses_wins_over_the_manifest(self):
        self.manifest(extra="settings: {drift: replace}\n")
        self.refused("drift_refused", 14, "--drift", "refuse")


class Deletions(Refusals):
    def setUp(self):
        super().setUp()
        self.apply()
        for i in range(6):
            (self.src / trees.SITE / f"alpha/m{i}.py").unlink()

    def test_more_deletions_than_the_limit_are_refused(self):
        self.manifest(extra="settings: {delete_limit: 5}\n")
        run = self.refused("delete_limit", 13)
        self.assertIn("--allow-delete", run.err)

    def test_deletions_within_the_limit_are_done(self):
        self.manifest(extra="settings: {delete_limit: 6}\n")
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_a_limit_in_percent_counts_the_paths_of_the_tree(self):
        self.manifest(extra="settings: {delete_limit: 5%}\n")
        self.refused("delete_limit", 13)
        self.apply("--allow-delete")
        self.assert_same_tree(self.src, self.dst)


class Sources(Refusals):
    def setUp(self):
        super().setUp()
        self.apply()

    def test_a_missing_source_is_no_empty_target(self):
        self.src.rename(self.root / "moved")
        self.refused("source_missing", 13)

    def test_an_empty_source_is_no_empty_target(self):
        self.src.rename(self.root / "moved")
        self.src.mkdir()
        self.refused("source_missing", 13)

    def test_a_source_without_pyvenv_cfg_is_no_environment(self):
        (self.src / "pyvenv.cfg").unlink()
        run = self.refused("source_missing", 13)
        self.assertIn("pyvenv.cfg", run.err)

    def test_a_source_that_is_a_file_is_no_environment(self):
        self.src.rename(self.root / "moved")
        self.src.write_text("")
        run = self.apply(rc=None)
        self.assertIn(run.rc, (1, 13))
        self.assert_same_tree(self.root / "moved", self.dst)

    def test_special_files_are_refused_by_name(self):
        place = self.src / trees.SITE / "alpha"
        os.mkfifo(place / "pipe")
        run = self.refused("unreadable", 13)
        self.assertIn("alpha/pipe", run.err)
        (place / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as sock:
            here = os.getcwd()
            os.chdir(place)  # a socket's path is short
            try:
                sock.bind("sock")
            finally:
                os.chdir(here)
            self.assertIn("alpha/sock", self.refused("unreadable", 13).err)

    def test_an_interpreter_that_is_gone_is_an_invariant_violated(self):
        link = self.src / "bin/python3"
        for name in ("python", "python3", f"python{sys.version_info.major}.{sys.version_info.minor}"):
            if (self.src / "bin" / name).is_symlink():
                (self.src / "bin" / name).unlink()
        link.symlink_to("/nowhere/bin/python3")
        (self.src / "bin/python").symlink_to("python3")
        self.refused("invariant_violated", 13)
        self.manifest(extra="invariants: {same_path: false, interpreter: ignore}\n")
        self.apply()


class Places(Refusals):
    def test_another_path_than_the_sources_is_refused_by_default(self):
        self.manifest(extra="invariants: {same_path: true}\n")
        self.assertIn("same_path: false", self.refused("manifest_invalid", 10).err)

    def test_paths_that_are_no_environments_place_are_refused(self):
        for path in ("/", str(self.home), "relative/env", '""', "/a/../b", str(self.root / "x/.envsync/env")):
            with self.subTest(path=path):
                self.manifest(path=path)
                run = self.apply(rc=None)
                self.assertIn(run.rc, (10, 13), str(run))

    def test_the_source_itself_is_no_target(self):
        before = trees.snapshot(self.src, mtime=True)
        self.manifest(path=self.src)
        run = self.apply(rc=None)
        self.assertNotEqual(run.rc, 70, str(run))
        self.assert_same_tree(trees.snapshot(self.src, mtime=True), before)

    def test_a_state_folder_that_others_may_write_is_refused(self):
        state = self.state_folder()
        state.mkdir(parents=True)
        os.chmod(state, 0o777)
        run = self.apply(rc=None)
        self.assertNotEqual(run.rc, 0, str(run))
        self.assertFalse(self.dst.exists())

    def test_a_state_folder_that_is_a_link_is_refused(self):
        elsewhere = self.root / "elsewhere"
        elsewhere.mkdir()
        self.state_folder().parent.parent.mkdir(parents=True)
        self.state_folder().parent.symlink_to(elsewhere)
        run = self.apply(rc=None)
        self.assertNotEqual(run.rc, 0, str(run))
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_a_target_that_is_a_file_is_refused(self):
        self.dst.parent.mkdir(parents=True)
        self.dst.write_text("a file\n")
        for verb in ("plan", "apply", "status"):
            run = self.envsync(verb, self.manifest_file, rc=13)
            self.assertIn("[place_refused]", run.err)
            self.assertIn("it is not a folder", run.err)
        self.assertEqual(self.dst.read_text(), "a file\n")

    def test_a_linked_target_path_is_resolved_and_the_link_stays(self):
        real = self.root / "real/env"
        real.parent.mkdir()
        self.dst.parent.mkdir(parents=True)
        self.dst.symlink_to(real)
        real.mkdir()
        self.apply()
        trees.patch_five(self.src, "patched")
        self.apply()
        self.assertEqual(os.readlink(self.dst), str(real))
        self.assert_same_tree(self.src, real)
        self.assertTrue(self.state_folder(real).is_dir())
        self.assertFalse(self.state_folder().exists())


class Locks(Refusals):
    def setUp(self):
        super().setUp()
        self.apply()
        trees.patch_five(self.src, "patched")

    def hold(self):
        lock = open(self.state_folder() / "lock", "r+")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def test_an_environment_that_another_run_holds_is_refused(self):
        self.hold()
        self.refused("locked", 11)

    def test_a_run_waits_for_the_lock_where_asked(self):
        lock = self.hold()
        run = self.start("apply", self.manifest_file, "--lock-wait", "60")
        try:
            harness.wait_until(lambda: self.agents(), "the agent runs")
            self.assertIsNone(run.poll())
            lock.close()
            self.assertEqual(run.wait(60), 0)
        finally:
            run.kill()
            run.wait()
        self.assert_same_tree(self.src, self.dst)

    def test_reading_commands_need_no_lock(self):
        self.hold()
        self.assertEqual(list(self.generations()), [1])
        status = self.envsync("status", self.manifest_file).of("status")[0]
        self.assertEqual(status["generation"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
