# SPDX-License-Identifier: MIT
"""What envsync says of a target whose settings, tree or records are not what they were: what is a change and what is not."""
import os
import shutil
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees


class ChangedSettings(harness.Case):
    """A setting that changes is no drift: drift is judged by the rules under which the generation was committed."""

    def setUp(self):
        super().setUp()
        self.make_source()
        trees.write(self.src / trees.SITE / "alpha/notes.log", "noted\n")
        trees.write(self.src / trees.SITE / "alpha/__pycache__" / f"m1.{trees.TAG}.pyc", b"bytecode")
        if os.geteuid() == 0:
            os.chown(self.src / trees.SITE / "alpha/m5.py", 12, 34)
        self.manifest(extra="settings: {mtime: ignore, xattrs: ignore}\n")
        self.apply()
        trees.write(self.dst / trees.SITE / "alpha/__pycache__" / f"m2.{trees.TAG}.pyc", b"the target's own")

    def changed_to(self, **keys):
        source = f"{{path: {self.src}" + "".join(f", {k}: {v}" for k, v in keys.items() if k in ("exclude", "bytecode")) + "}"
        settings = "".join(f"{k}: {v}, " for k, v in keys.items() if k not in ("exclude", "bytecode"))
        self.manifest(source=source, extra=f"settings: {{{settings}}}\n" if settings else "settings: {mtime: ignore, xattrs: ignore}\n")

    def assert_no_drift(self):
        self.assertEqual(self.envsync("verify", self.manifest_file).outcome()["files"], 0)
        status = self.envsync("status", self.manifest_file).of("status")[0]
        self.assertEqual([status[f"drift_{k}"] for k in ("added", "removed", "changed")], [0, 0, 0])
        self.envsync("plan", self.manifest_file)
        run = self.apply()
        self.assertNotIn("drift", run.err)
        return run

    def test_another_bytecode_rule(self):
        self.changed_to(bytecode="ship")
        self.assert_no_drift()
        self.assert_same_tree(trees.snapshot(self.src, bytecode=True), trees.snapshot(self.dst, bytecode=True))

    def test_another_exclude(self):
        self.changed_to(exclude='["*.log"]')
        self.assert_no_drift()
        self.changed_to()
        self.assert_no_drift()
        self.assert_same_tree(self.src, self.dst)

    def test_another_mtime_policy(self):
        self.changed_to(mtime="strict")
        self.assert_no_drift()
        self.assert_same_tree(trees.snapshot(self.src, mtime=True), trees.snapshot(self.dst, mtime=True))

    def test_another_attribute_rule(self):
        os.setxattr(self.dst / trees.SITE / "alpha/m3.py", "user.note", b"here")
        self.changed_to(xattrs="preserve")
        self.assert_no_drift()
        self.assert_same_tree(self.src, self.dst)

    @unittest.skipUnless(os.geteuid() == 0, "owners are given by root only")
    def test_another_owner_rule(self):
        self.changed_to(owner="preserve")
        self.assert_no_drift()
        info = os.stat(self.dst / trees.SITE / "alpha/m5.py")
        self.assertEqual((info.st_uid, info.st_gid), (12, 34))

    def test_an_edit_is_drift_whatever_setting_changes_with_it(self):
        trees.write(self.dst / trees.SITE / "alpha/m1.py", "edited = True\n")
        self.changed_to(exclude='["*.log"]')
        run = self.apply(rc=14)
        self.assertIn("~ " + trees.SITE + "/alpha/m1.py", run.err)
        self.assertNotIn("notes.log", run.err)
        self.assertEqual(self.envsync("verify", self.manifest_file, rc=4).outcome()["files"], 1)


class AttributesLeft(harness.Case):
    def test_attributes_that_do_not_travel_are_told_once_a_run_that_changes_something(self):
        self.make_source()
        self.manifest()
        try:
            os.setxattr(self.src / trees.SITE / "alpha/m2.py", "trusted.note", b"host's own")
        except OSError as error:
            self.skipTest(f"no trusted attributes here: {error}")
        self.assertIn("[attributes_left]", self.apply().err)
        self.assertNotIn("attributes_left", self.apply().err)
        trees.patch_five(self.src, "patched")
        self.assertEqual(self.apply().err.count("attributes_left"), 1)


class DeletedTree(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()
        self.apply()
        trees.patch_five(self.src, "second")
        self.apply()
        self.second = trees.snapshot(self.dst)

    def test_a_deleted_tree_is_made_again_without_consent_and_is_called_deleted(self):
        shutil.rmtree(self.dst)
        plan = self.envsync("plan", self.manifest_file, json_events=False)
        self.assertIn("generation 2 was deleted", plan.out)
        self.assertNotIn("first apply", plan.out)
        self.assertNotIn("drift", plan.out + plan.err)
        self.assertEqual(self.apply().outcome()["generation"], 3)
        self.assert_same_tree(self.second, self.dst)

    def test_a_manifest_that_refuses_drift_refuses_a_deleted_tree_too(self):
        shutil.rmtree(self.dst)
        self.manifest(extra="settings: {drift: refuse}\n")
        self.assertIn("the path is gone", self.apply(rc=14).err)

    def test_a_generation_whose_content_went_with_the_tree_says_so_and_names_one_that_is_whole(self):
        shutil.rmtree(self.dst)
        trees.patch_five(self.src, "third")
        self.apply()  # 3: what only 2 held is nowhere any more
        trees.patch_five(self.src, "fourth")
        self.apply()
        listed = self.generations()
        self.assertEqual([listed[n]["missing"] for n in (2, 3, 4)], [1, 0, 0])
        run = self.envsync("rollback", self.manifest_file, "--to", "2", "-y", rc=1)
        self.assertIn("[content_gone]", run.err)
        self.assertIn("--to 3", run.err)
        self.envsync("rollback", self.manifest_file, "--to", "3", "-y")
        self.assertIn("cannot be restored", self.envsync("history", self.manifest_file, json_events=False).out)


class DamagedRecords(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest(extra="settings: {keep_generations: 5}\n")
        for word in ("one", "two", "three", "four"):
            trees.patch_five(self.src, word)
            self.apply()
        self.records = self.state_folder() / "records"

    def damage(self, number):
        record = bytearray((self.records / str(number)).read_bytes())
        record[len(record) // 2] ^= 1
        (self.records / str(number)).write_bytes(record)

    def test_an_old_one_stops_no_verb_but_its_own_restoring(self):
        self.damage(2)
        before = trees.snapshot(self.dst)
        self.assertIn("prune", self.envsync("status", self.manifest_file).err)
        self.assertTrue(self.generations()[2]["damaged"])
        self.assertEqual(self.envsync("verify", self.manifest_file).outcome()["files"], 0)
        self.assertIn("[corrupt]", self.envsync("rollback", self.manifest_file, "--to", "2", "-y", rc=1).err)
        trees.patch_five(self.src, "five")
        self.apply()
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(before, self.dst)
        self.envsync("rollback", self.manifest_file, "--to", "1", "-y")
        self.assertIn("'one'", (self.dst / trees.SITE / "alpha/m1.py").read_text())

    def test_an_old_one_can_be_dropped_and_its_contents_go_with_it(self):
        pool = self.state_folder() / "contents"
        self.damage(2)
        kept = len(list(pool.iterdir()))
        self.envsync("prune", self.manifest_file, "--drop", "2")
        self.assertEqual(list(self.generations()), [1, 3, 4])
        self.assertLess(len(list(pool.iterdir())), kept)
        self.envsync("rollback", self.manifest_file, "--to", "1", "-y")

    def test_the_current_one_stops_with_what_to_do_and_all_state_can_still_be_removed(self):
        self.damage(4)
        self.assertIn("records/4", self.apply(rc=1).err)
        self.envsync("prune", self.manifest_file, "--all", "-y")
        self.assertFalse(self.state_folder().exists())
        self.apply("--adopt")


class Looking(harness.Case):
    def test_a_look_waits_for_the_record_of_a_tree_that_is_in_place_already(self):
        self.make_source()
        self.manifest()
        self.apply()
        trees.patch_five(self.src, "patched")
        # Behind the exchange that puts the new tree at the path; the first one probes the place.
        applying = self.start("apply", self.manifest_file, env={"ENVSYNC_AGENT": harness.binary("ENVSYNC_AGENT_FAULTY"), "ENVSYNC_FAULT": "rename_exchange:2:stop"})
        try:
            harness.wait_until(lambda: self.stopped(), "the agent stops behind its exchange")
            looking = self.start("verify", self.manifest_file)
            harness.wait_until(lambda: len(self.agents()) > 2 or looking.poll() is not None, "the other agent looks")
            self.assertIsNone(looking.poll())
            for pid in self.stopped():
                os.kill(pid, signal.SIGCONT)
            self.assertEqual((applying.wait(60), looking.wait(60)), (0, 0))
        finally:
            self.kill_agents()
            applying.kill()
            applying.wait()

    def stopped(self):
        def state(pid):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    return file.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                return ""
        return [pid for pid in self.agents() if state(pid) == "T"]

    def test_a_look_beside_runs_that_commit_sees_no_difference(self):
        self.make_source()
        for i in range(400):
            trees.write(self.src / trees.SITE / f"many/n{i}.py", f"N = {i}\n")
        self.manifest(extra="settings: {keep_generations: 0}\n")
        self.apply()
        done = threading.Event()

        def commit():
            try:
                for i in range(12):
                    trees.patch_five(self.src, f"round {i}")
                    trees.write(self.src / trees.SITE / "many/n7.py", f"N = 'round {i}'\n")
                    self.apply()
            finally:
                done.set()

        committing = threading.Thread(target=commit)
        committing.start()
        looks = 0
        try:
            while not done.is_set():
                run = self.envsync("verify", self.manifest_file, rc=None)
                self.assertEqual((run.rc, [d["path"] for d in run.of("difference")]), (0, []), str(run))
                looks += 1
        finally:
            committing.join()
        self.assertGreater(looks, 0)


if __name__ == "__main__":
    harness.main()
