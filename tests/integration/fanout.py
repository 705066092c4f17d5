# SPDX-License-Identifier: MIT
"""Several targets and one source behind a line that counts: what all of them want is read once, and one that dies hurts nobody."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import link
import trees

NOISE = 24 << 20
NAMES = ("n0", "n1", "n2", "n3")


class FanOut(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        for i in range(3):
            trees.write(self.src / trees.SITE / f"alpha/noise{i}.bin", os.urandom(NOISE // 3))
        far = self.server("far")
        for name in NAMES:
            self.server(name)
        self.line = link.Link(far.port, rate=12e6)
        self.line.__enter__()
        self.addCleanup(self.line.__exit__)
        blocks = [s.ssh_config() for n, s in self.servers.items() if n != "far"]
        (self.root / "ssh_config").write_text(far.ssh_config(port=self.line.port) + "".join(blocks))
        targets = [f"{{host: {name}, path: '{self.path(name)}'}}" for name in NAMES]
        self.manifest(targets=targets, source=f"far:{self.src}")

    def path(self, name):
        return self.root / f"dst-{name}" / "env"

    def agents_of(self, name):
        mark = f"HOME={self.root}/ssh/{name}/".encode()
        return [pid for pid in self.agents() if mark in pathlib.Path("/proc", str(pid), "environ").read_bytes()
                and b"envsync-agent" in pathlib.Path("/proc", str(pid), "cmdline").read_bytes()]

    def test_four_targets_cost_the_source_what_one_costs(self):
        run = self.apply("--hosts-at-once", "4")
        for name in NAMES:
            self.assertEqual(run.outcome(name)["result"], "applied")
            self.assert_same_tree(self.src, self.path(name), name)
        self.assertLess(self.line.down, 1.2 * NOISE)

    def test_a_target_that_dies_in_the_middle_leaves_the_others_their_share(self):
        process = self.start("apply", self.manifest_file, "--hosts-at-once", "4")
        harness.wait_until(lambda: self.line.down > NOISE // 4, "the transfer runs")
        for pid in self.agents_of("n1"):
            os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(process.wait(harness.RUN_SECONDS), 0)
        for name in NAMES:
            if name != "n1":
                self.assert_same_tree(self.src, self.path(name), name)
        self.assertFalse(self.path("n1").exists())
        self.assertLess(self.line.down, 1.2 * NOISE)


if __name__ == "__main__":
    harness.main()
