# SPDX-License-Identifier: MIT
"""Every kind of operation that changes the target's disk fails, or is the last one before the agent dies: the path holds exactly
the old or the new tree, and the next apply succeeds."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
from kills import Kills

# The operations of the seam to the disk, and which of their calls are struck. The first exchange is the probe of the place, the
# second is the commit.
OPERATIONS = {
    "mkdir": (1, 2, 5), "create": (1, 2, 4), "write_at": (1, 2, 5), "link": (1, 7), "symlink": (1, 2), "chmod": (1, 3), "set_mtime": (1, 3),
    "rename": (1, 2, 3), "rename_exchange": (1, 2), "fsync": (1, 2, 3, 5, 8), "fdatasync": (1, 2, 3, 4), "syncfs": (1,),
    "unlink": (1, 2, 9), "rmdir": (1, 2),
}


class Faults(Kills):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest(extra="settings: {delete_limit: 100%}\n")
        self.number = 0

    def strike(self, fault):
        """True where the fault struck: the run failed, or says that something is left to do."""
        before = trees.snapshot(self.dst) if self.dst.exists() else None
        self.number += 1
        self.change_source(self.number)
        run = self.struck_apply(fault)
        self.wait_for_quiet()
        new = trees.snapshot(self.src)
        if before is None:
            found = trees.snapshot(self.dst) if self.dst.exists() else None
            self.assertIn(found, (None, new), f"{fault}: neither absent nor new\n{run}")
        else:
            if self.assert_old_or_new(before, new, f"{fault}\n{run}"):
                self.assertNotIn("nothing was changed", run.err, f"{fault}: the path holds the new tree\n{run}")
        if run.rc == 0:  # success may only be said of the new tree
            self.assert_same_tree(new, self.dst, f"after a success\n{run}")
        self.apply("--lock-wait", "30")
        self.assert_same_tree(new, self.dst, f"after the apply that follows {fault}")
        return run.rc != 0 or bool(run.outcome().get("pending"))

    def strike_all(self, effects):
        self.struck_apply("", rc=0)  # without a fault it is an agent like the other
        struck = 0
        for operation, calls in OPERATIONS.items():
            for effect in effects:
                for call in calls:
                    with self.subTest(fault=f"{operation}:{call}:{effect}"):
                        struck += self.strike(f"{operation}:{call}:{effect}")
        self.envsync("verify", self.manifest_file, "--full")
        self.assertGreater(struck, 12, "most points must be reached")

    def test_the_agent_dies_before_each_point(self):
        self.strike_all(["before"])

    def test_the_agent_dies_after_each_point(self):
        self.strike_all(["after"])

    def test_the_disk_fails_at_each_point(self):
        self.strike_all(["EIO"])

    def test_the_disk_is_full_at_each_point(self):
        self.strike_all(["short"])

    def test_a_first_apply_dies_or_fails_at_each_point(self):
        for fault in ("rename_noreplace:1:before", "rename_noreplace:1:after", "rename_noreplace:2:before", "rename_noreplace:2:after", "rename_noreplace:1:EIO", "create:5:before", "fsync:1:after",
                      "syncfs:1:EIO", "write_at:3:short", "mkdir:1:before", "mkdir:2:after", "mkdir:3:after", "mkdir:4:after", "mkdir:5:after", "mkdir:6:after", "any:40:before", "any:120:after"):
            with self.subTest(fault=fault):
                self.manifest(path=self.root / "dst" / fault.replace(":", "-") / "env", extra="settings: {delete_limit: 100%}\n")
                self.dst = self.root / "dst" / fault.replace(":", "-") / "env"
                self.strike(fault)
                self.assertEqual([g["current"] for g in self.generations().values()], [True])

    def test_recovery_dies_at_its_own_points_and_is_finished_by_the_next_run(self):
        self.apply()
        for first in ("rename_exchange:2:before", "rename_exchange:2:after", "unlink:2:after", "rename:2:after"):
            for second in ("any:1:before", "any:1:after", "any:2:after", "any:3:before", "any:4:after", "any:6:after", "any:9:after"):
                with self.subTest(first=first, second=second):
                    old = trees.snapshot(self.dst)
                    self.number += 1
                    self.change_source(self.number)
                    self.struck_apply(first)
                    new = trees.snapshot(self.src)
                    self.assert_old_or_new(old, new, first)
                    self.struck_apply(second)
                    self.assert_old_or_new(old, new, f"{first}, then {second}")
                    self.apply("--lock-wait", "30")
                    self.assert_same_tree(new, self.dst, f"{first}, then {second}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
