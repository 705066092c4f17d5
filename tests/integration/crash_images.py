# SPDX-License-Identifier: MIT
"""A power cut at each step, on ext4, XFS and Btrfs: what had reached the disk when the agent died is mounted again. The path holds
exactly the old or the new tree, a success that was reported stays, and the next apply succeeds.

The disk is a file behind a loop device. A copy of the file, taken while it is mounted, holds what was written through and not what
waits in memory: what a disk holds after a power cut. Needs root and loop devices.
"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees
from kills import Kills

POINTS = ("create:1:after", "write_at:2:after", "link:3:after", "rename:1:after", "fsync:1:after", "fsync:2:after", "fdatasync:1:after",
          "fdatasync:2:after", "syncfs:1:before", "syncfs:1:after", "rename_exchange:2:before", "rename_exchange:2:after", "unlink:1:after",
          "unlink:6:after", "rename:2:after", "rename:3:after", "fsync:4:after", "fsync:6:after")
# First the commit is cut off, then the recovery from that.
DOUBLE = (("rename_exchange:2:after", "any:1:after"), ("rename_exchange:2:after", "any:3:after"), ("rename_exchange:2:after", "any:6:after"),
          ("rename_exchange:2:before", "any:2:after"), ("unlink:2:after", "any:2:after"), ("unlink:2:after", "any:5:after"))


def run(*line):
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, line))} failed: {done.stderr.strip()}\n"
                             "crash images need root, loop devices and mkfs of ext4, XFS and Btrfs; "
                             "where they cannot be had: tests/run.sh --without crash_images")


class CrashImages(Kills):
    def setUp(self):
        super().setUp()
        self.disk = self.root / "disk"
        self.disk.mkdir()
        self.dst = self.disk / "place/env"
        self.image = self.root / "image"
        self.make_source()
        self.manifest(extra="settings: {delete_limit: 100%}\n")
        self.number = 0
        self.seen = {"old": 0, "new": 0}

    def mount(self, image):
        run("mount", "-o", "loop", image, self.disk)
        self.addCleanup(self.unmount)

    def unmount(self):
        if os.path.ismount(self.disk):
            self.kill_agents()
            run("umount", self.disk)

    def prepare(self, mkfs, megabytes):
        """An image that holds generation 1, all of it on the disk."""
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        run(*mkfs, self.image)
        self.mount(self.image)
        self.apply()
        self.unmount()
        self.old = trees.snapshot(self.src)

    def fresh_disk(self):
        run("cp", "--sparse=always", self.image, self.root / "work")
        self.mount(self.root / "work")

    def power_cut(self):
        """What the disk holds now is what there is after the reboot."""
        self.wait_for_quiet()
        run("cp", "--sparse=always", self.root / "work", self.root / "crashed")
        self.unmount()
        os.rename(self.root / "crashed", self.root / "work")
        self.mount(self.root / "work")

    def cut_at(self, *faults):
        self.number += 1
        self.change_source(self.number)
        new = trees.snapshot(self.src)
        self.fresh_disk()
        for fault in faults:
            reported = self.struck_apply(fault)
            self.power_cut()
            is_new = self.assert_old_or_new(self.old, new, f"{faults} at {fault}\n{reported}")
            self.seen["new" if is_new else "old"] += 1
            if reported.rc == 0:
                self.assertTrue(is_new, f"a success was reported and is gone\n{reported}")
        self.apply("--lock-wait", "30")
        self.assert_same_tree(new, self.dst, f"after the apply that follows {faults}")
        self.envsync("verify", self.manifest_file, "--full")
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(self.old, self.dst, f"after a rollback that follows {faults}")
        self.unmount()

    def all_points(self, mkfs, megabytes):
        self.prepare(mkfs, megabytes)
        for point in POINTS:
            with self.subTest(point=point):
                self.cut_at(point)
        for points in DOUBLE:
            with self.subTest(points=points):
                self.cut_at(*points)
        for _ in range(3):
            with self.subTest(point="right after a success"):
                self.cut_at("")
        print(f"after the cut: {self.seen}", file=sys.stderr)
        self.assertGreater(min(self.seen.values()), 5, "both sides of the swap must have been met")

    def test_ext4(self):
        self.all_points(["mkfs.ext4", "-q", "-F"], 64)

    def test_xfs(self):
        self.all_points(["mkfs.xfs", "-q", "-f"], 320)

    def test_btrfs(self):
        self.all_points(["mkfs.btrfs", "-q", "-f"], 128)


if __name__ == "__main__":
    unittest.main(verbosity=2)
