# SPDX-License-Identifier: MIT
"""Whatever is killed, whenever: the path holds exactly the old or the new tree, and the next apply succeeds.

$ENVSYNC_KILL_ROUNDS sets the rounds of each random test (default 25, four tests); $ENVSYNC_KILL_SEED repeats one run's moments.
"""
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees

ROUNDS = int(os.environ.get("ENVSYNC_KILL_ROUNDS", "25"))
SEED = os.environ.get("ENVSYNC_KILL_SEED") or str(time.time_ns())


class Kills(harness.Case):
    def change_source(self, number):
        """Content, an addition, a removal, a mode and a link change."""
        alpha = self.src / trees.SITE / "alpha"
        trees.patch_five(self.src, f"round {number}")
        trees.write(alpha / f"added_{number}.py", f"N = {number}\n" * 400)
        (alpha / f"added_{number - 1}.py").unlink(missing_ok=True)
        os.chmod(alpha / "m0.py", 0o644 if number % 2 else 0o755)
        (alpha / "current").unlink(missing_ok=True)
        (alpha / "current").symlink_to(f"added_{number}.py")

    def struck_apply(self, fault, rc=None):
        """An apply whose agent has this fault ("": none)."""
        run = self.apply("--lock-wait", "30", rc=rc,
                         env={"ENVSYNC_AGENT": harness.binary("ENVSYNC_AGENT_FAULTY"), "ENVSYNC_FAULT": fault})
        self.assertNotIn(run.rc, (2, 70), f"{fault}\n{run}")
        self.assertNotIn("internal error", run.err, fault)
        if fault.endswith(("before", "after")):  # the agent died, or the point was not reached: nothing else may go wrong
            self.assertIn(run.rc, (0, 12), f"{fault}\n{run}")
        return run

    def assert_old_or_new(self, old, new, what):
        self.wait_for_quiet()
        found = trees.snapshot(self.dst)
        if found not in (old, new):
            self.fail(f"{what}: the path holds neither tree\nagainst the old one:\n{trees.describe(old, found)}\n"
                      f"against the new one:\n{trees.describe(new, found)}")
        return found == new


class AtRandom(Kills):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.random = random.Random(f"{SEED} {self.id()}")
        self.swapped = 0

    def prepare(self, target):
        self.manifest(targets=[target], extra="settings: {delete_limit: 100%}\n")
        self.apply()
        self.change_source(0)
        start = time.monotonic()
        self.apply()
        self.clean_seconds = time.monotonic() - start

    def one_round(self, number, victim):
        self.change_source(number)
        old, new = trees.snapshot(self.dst), trees.snapshot(self.src)
        moment = self.random.uniform(0, 1.1 * self.clean_seconds)
        run = self.start("apply", self.manifest_file)
        what = f"seed {SEED}, round {number}, killed after {moment:.4f} s"
        try:
            try:
                run.wait(moment)
            except Exception:  # still running: that is the moment
                pass
            victim(run)
            status = run.wait(120)
        finally:
            run.kill()
            run.wait()
        self.swapped += self.assert_old_or_new(old, new, what)
        self.assertIn(status, (0, 12, -signal.SIGKILL), what)
        self.apply("--lock-wait", "30")
        self.assert_same_tree(new, self.dst, what)

    def rounds(self, victim):
        for number in range(1, ROUNDS + 1):
            self.one_round(number, victim)
        leftovers = list((self.state_folder() / "staging").glob("*")) if (self.state_folder() / "staging").exists() else []
        self.assertEqual(leftovers, [], "a clean apply leaves no staging behind")
        self.envsync("verify", self.manifest_file, "--full")
        print(f"{ROUNDS} rounds, the swap had happened in {self.swapped}", file=sys.stderr)

    def kill_all_agents(self, _):
        for pid in self.agents():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_the_controller_of_a_local_target_is_killed(self):
        self.prepare("local")
        self.rounds(lambda run: run.kill())

    def test_the_agent_of_a_local_target_is_killed(self):
        self.prepare("local")
        self.rounds(self.kill_all_agents)

    def test_the_controller_of_a_target_over_ssh_is_killed(self):
        self.server("alpha")
        self.prepare("alpha")
        self.rounds(lambda run: run.kill())

    def test_the_agent_of_a_target_over_ssh_is_killed(self):
        self.server("alpha")
        self.prepare("alpha")
        self.rounds(self.kill_all_agents)


if __name__ == "__main__":
    unittest.main(verbosity=2)
