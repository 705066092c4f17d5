# SPDX-License-Identifier: MIT
"""Other hosts over a real sshd: every way round, the agent's upload, keys, and several targets at once."""
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import link
import sshd
import trees


class Ways(harness.Case):
    """The same five steps, whatever lies between source and target."""

    def five_steps(self, target, source=None):
        self.make_source()
        self.manifest(targets=[target], source=source)
        self.assertEqual(self.apply().outcome()["generation"], 1)
        self.assert_same_tree(trees.snapshot(self.src, mtime=True), trees.snapshot(self.dst, mtime=True))
        first = trees.snapshot(self.dst, mtime=True)
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        trees.patch_five(self.src, "patched")
        trees.write(self.src / trees.SITE / "beta/native.so", os.urandom(9 << 20))
        outcome = self.apply().outcome()
        self.assertEqual((outcome["result"], outcome["files"]), ("applied", 6))
        self.assert_same_tree(self.src, self.dst)
        self.envsync("verify", self.manifest_file, "--full")
        self.envsync("rollback", self.manifest_file, "-y")
        self.assert_same_tree(trees.snapshot(self.dst, mtime=True), first)

    def test_from_here_to_a_host(self):
        self.server("alpha")
        self.five_steps("alpha")

    def test_from_a_host_to_here(self):
        self.server("alpha")
        self.five_steps("local", source=f"alpha:{self.src}")

    def test_from_one_host_to_another_relayed_here_and_stored_nowhere(self):
        self.server("alpha")
        self.server("beta")
        self.five_steps("beta", source=f"alpha:{self.src}")
        kept = [p for p in self.home.rglob("*") if p.is_file() and ".local/state" not in str(p) and p.stat().st_size > 100_000]
        self.assertEqual(kept, [])

    def test_from_a_host_to_itself_nothing_crosses_the_wire(self):
        self.server("alpha")
        self.make_source()
        trees.write(self.src / trees.SITE / "beta/native.so", os.urandom(9 << 20))
        self.manifest(targets=["alpha"], source=f"alpha:{self.src}")
        run = self.apply()
        self.assertTrue(run.plan()["route"]["same_host"])
        self.assertLess(run.outcome()["bytes_up"] + run.outcome()["bytes_down"], 1_000_000)
        self.assert_same_tree(self.src, self.dst)

    def test_a_limit_of_bandwidth_holds_on_the_wire_but_not_within_this_machine(self):
        self.server("alpha")
        self.make_source()
        trees.write(self.src / trees.SITE / "alpha/noise.bin", os.urandom(6 << 20))
        self.manifest(targets=["alpha"], extra="settings: {bandwidth: 2MB/s}\n")
        spent = self.apply().outcome()["seconds"]["transfer"]
        self.assertGreater(spent, 2.5)
        self.manifest(targets=["local"], path=self.root / "here" / "env", extra="settings: {bandwidth: 1kB/s}\n")
        self.apply()

    def test_by_any_command_that_reaches_a_shell(self):
        self.make_source()
        host = "{host: box, transport: {command: [sh]}}"
        self.manifest(targets=[host])
        self.assertEqual(self.apply().outcome("box")["generation"], 1)
        trees.patch_five(self.src, "patched")
        self.assertEqual(self.apply().outcome("box")["files"], 5)
        self.assert_same_tree(self.src, self.dst)

    def test_a_home_relative_path_is_the_hosts_home(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"], path="~/place/env")
        self.apply()
        self.assert_same_tree(self.src, server.home / "place/env")

    def test_a_wire_that_is_counted_carries_what_the_outcome_says(self):
        server = self.server("alpha")
        self.make_source()
        trees.write(self.src / trees.SITE / "beta/native.so", os.urandom(4 << 20))
        self.manifest(targets=["alpha"])
        with link.Link(server.port) as wire:
            (self.root / "ssh_config").write_text(server.ssh_config(port=wire.port))
            self.apply()  # brings the agent too
            trees.write(self.src / trees.SITE / "beta/native.so", os.urandom(4 << 20))
            before = wire.up
            outcome = self.apply().outcome()
            carried = wire.up - before
        self.assertGreater(outcome["bytes_up"], 4 << 20)
        self.assertEqual(outcome["bytes_written"], 4 << 20)
        self.assertLess(abs(carried - outcome["bytes_up"]), 0.05 * carried)


class Agents(harness.Case):
    def setUp(self):
        super().setUp()
        self.host = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.agent = self.own_agent()

    def uploaded(self):
        """Files of the host's home that hold the agent of this build."""
        size = self.agent.stat().st_size
        return [p for p in self.host.home.rglob("*") if p.is_file() and not p.is_symlink() and p.stat().st_size == size]

    def test_the_agent_is_uploaded_once_and_used_again(self):
        self.apply()
        files = self.uploaded()
        self.assertEqual(len(files), 1)
        self.assertEqual(files[0].read_bytes(), self.agent.read_bytes())
        self.assertEqual(files[0].stat().st_mode & 0o022, 0, "others must not be able to replace it")
        before = files[0].stat()
        outcome = self.apply().outcome()
        self.assertEqual((files[0].stat().st_ino, files[0].stat().st_mtime_ns), (before.st_ino, before.st_mtime_ns))
        self.assertLess(outcome["bytes_up"], before.st_size // 4)

    def test_a_file_that_somebody_planted_in_the_agents_place_is_not_run(self):
        self.apply()
        agent = self.uploaded()[0]
        marker = self.root / "planted-was-run"
        trap = f"#!/bin/sh\ntouch {marker}\nexit 1\n".encode()
        whole = trap + b"#" * (self.agent.stat().st_size - len(trap))
        # Of another size; of the right size, but writable by others, or somebody else's.
        plants = [(trap, 0o755, None), (whole, 0o777, None)]
        if os.getuid() == 0:
            plants.append((whole, 0o755, 65534))
        for number, (content, mode, owner) in enumerate(plants):
            with self.subTest(size=len(content), mode=oct(mode), owner=owner):
                agent.unlink(missing_ok=True)
                agent.write_bytes(content)
                agent.chmod(mode)
                if owner is not None:
                    os.chown(agent, owner, owner)
                trees.patch_five(self.src, f"patched {number}")
                run = self.apply(rc=None)
                self.assertFalse(marker.exists(), str(run))
                if run.rc == 0:
                    self.assert_same_tree(self.src, self.dst)

    def test_an_upload_that_was_cut_off_is_not_taken_for_an_agent(self):
        self.apply()
        agent = self.uploaded()[0]
        whole = agent.read_bytes()
        agent.unlink()
        agent.write_bytes(whole[:len(whole) // 2])
        agent.chmod(0o755)
        trees.patch_five(self.src, "patched")
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_an_upload_that_breaks_with_the_connection_is_done_anew(self):
        with link.Link(self.host.port, cut_after=self.agent.stat().st_size // 2) as wire:
            (self.root / "ssh_config").write_text(self.host.ssh_config(port=wire.port))
            self.apply(rc=12)
            wire.mend()
            self.apply()
        self.assert_same_tree(self.src, self.dst)
        self.assertEqual([p.read_bytes() for p in self.uploaded()], [self.agent.read_bytes()])


class Keys(harness.Case):
    """By libssh, which `auto` takes here; KeysByProgram has the same by the ssh program."""
    TRANSPORT = "libssh"

    def apply(self, *arguments, **options):
        return super().apply(*arguments, "--transport", self.TRANSPORT, **options)

    def setUp(self):
        super().setUp()
        self.host = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])

    def fails(self, code, *arguments):
        run = self.apply(*arguments, rc=12)
        self.assertIn(f"[{code}]", run.err, str(run))
        self.assertEqual(run.outcome()["result"], "failed")
        self.assertFalse(self.dst.exists())
        return run

    def configure(self, **options):
        (self.root / "ssh_config").write_text(self.host.ssh_config(**options))

    def test_a_host_that_nobody_listens_for_is_not_reached(self):
        self.configure(port=sshd.free_port())
        self.fails("connect_failed")

    def test_a_name_that_does_not_resolve_is_not_reached(self):
        self.manifest(targets=["no-such-host.invalid"])
        self.fails("connect_failed")

    def test_a_key_that_the_host_does_not_know_is_refused(self):
        self.configure(key=sshd.make_key(self.root / "other_key"))
        self.fails("auth_failed")

    def test_a_host_key_that_is_not_known_stops_unless_new_keys_are_accepted(self):
        known = self.root / "known_hosts"
        self.configure(known_hosts=known)
        run = self.fails("host_key_unknown")
        self.assertIn("--accept-new-host-keys", run.err)
        self.apply("--accept-new-host-keys")
        self.assertTrue(known.read_text())
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_a_changed_host_key_always_stops(self):
        self.host.replace_host_key()
        for arguments in ((), ("--accept-new-host-keys",), ("-y",)):
            self.fails("host_key_mismatch", *arguments)

    def test_a_revoked_host_key_always_stops(self):
        known = self.host.folder / "known_hosts"
        known.write_text(known.read_text() + "@revoked * " + " ".join((self.host.folder / "hostkey.pub").read_text().split()[:2]) + "\n")
        for arguments in ((), ("--accept-new-host-keys",), ("-y",)):
            self.fails("host_key_mismatch", *arguments)

    def test_an_unknown_host_key_is_accepted_where_ssh_config_says_so_and_written_down(self):
        known = self.root / "known_hosts"
        (self.root / "ssh_config").write_text(self.host.ssh_config(known_hosts=known) + "  StrictHostKeyChecking accept-new\n")
        self.apply()
        self.assertIn((self.host.folder / "hostkey.pub").read_text().split()[1], known.read_text())

    def test_an_identity_that_is_not_there_is_an_error_before_anything_is_sent(self):
        run = self.fails("connect_failed", "--identity", self.root / "no_such_key")
        self.assertIn("no_such_key", run.err)
        self.assertNotIn("Connection from", "".join(self.host.log))

    def test_errors_name_the_step_that_failed(self):
        self.configure(port=sshd.free_port())
        self.assertIn("no TCP connection", self.fails("connect_failed").err)
        self.manifest(targets=["no-such-host.invalid"])
        self.assertIn("its name does not resolve", self.fails("connect_failed").err)

    def test_a_host_whose_shell_says_nothing_is_named_with_what_it_wrote(self):
        config = self.host.folder / "sshd_config"
        config.write_text(config.read_text() + "ForceCommand echo no shell for you >&2; exit 1\n")
        self.host.restart()
        self.assertIn("no shell for you", self.fails("connect_failed").err)

    def test_a_name_that_begins_with_a_dash_is_no_option_of_ssh(self):
        marker = self.root / "marker"
        self.manifest(targets=[f"'-oProxyCommand=touch {marker}'"])
        run = self.apply(rc=None)
        self.assertIn(run.rc, (2, 10, 12), str(run))
        self.assertFalse(marker.exists())


class KeysByProgram(Keys):
    TRANSPORT = "openssh"


class Many(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        for name in ("alpha", "beta"):
            self.server(name)
        self.paths = {name: self.root / "many" / name / "env" for name in ("alpha", "beta", "gone")}

    def write_manifest(self, hosts, extra=""):
        self.manifest(targets=[f"{{host: {h}, path: {self.paths[h]}}}" for h in hosts], extra=extra)

    def test_one_target_of_three_that_fails_stops_no_other(self):
        self.write_ssh_config(f"Host gone\n  HostName 127.0.0.1\n  Port {sshd.free_port()}\n")
        self.write_manifest(["alpha", "gone", "beta"])
        run = self.apply(rc=3)
        self.assertEqual({h: run.outcome(h)["result"] for h in self.paths}, {"alpha": "applied", "beta": "applied", "gone": "failed"})
        for name in ("alpha", "beta"):
            self.assert_same_tree(self.src, self.paths[name])

    def test_after_a_failure_no_further_target_starts_where_the_manifest_says_stop(self):
        self.write_ssh_config(f"Host gone\n  HostName 127.0.0.1\n  Port {sshd.free_port()}\n")
        self.write_manifest(["gone", "alpha"], extra="settings: {on_failure: stop, hosts_at_once: 1}\n")
        run = self.apply(rc=None)
        self.assertEqual(run.outcome("alpha")["result"], "skipped")
        self.assertFalse(self.paths["alpha"].exists())

    def test_the_same_code_of_all_targets_is_the_exit_status(self):
        self.write_ssh_config(f"Host gone\n  HostName 127.0.0.1\n  Port {sshd.free_port()}\n")
        self.write_manifest(["gone"])
        self.apply(rc=12)

    def test_named_targets_only_and_globs(self):
        self.write_manifest(["alpha", "beta"])
        self.apply("--host", "alp*")
        self.assertTrue(self.paths["alpha"].exists())
        self.assertFalse(self.paths["beta"].exists())
        run = self.apply("--host", "nobody", rc=None)
        self.assertNotEqual(run.rc, 0)

    def test_targets_that_differ_end_equal(self):
        self.write_manifest(["alpha", "beta"])
        self.apply("--host", "alpha")
        trees.patch_five(self.src, "patched")
        run = self.apply()
        self.assertEqual({h: run.outcome(h)["generation"] for h in ("alpha", "beta")}, {"alpha": 2, "beta": 1})
        for name in ("alpha", "beta"):
            self.assert_same_tree(self.src, self.paths[name])
        # A rollback undoes the last run on the hosts that it changed: beta had nothing before.
        self.envsync("rollback", self.manifest_file, "--host", "alpha", "-y")
        self.assertNotEqual(trees.snapshot(self.paths["alpha"]), trees.snapshot(self.src))

    def test_all_or_nothing_swaps_no_host_where_one_cannot_be_made_ready(self):
        self.write_ssh_config(f"Host gone\n  HostName 127.0.0.1\n  Port {sshd.free_port()}\n")
        self.write_manifest(["alpha", "beta"])
        self.apply()
        before = trees.snapshot(self.paths["alpha"], mtime=True)
        trees.write(self.src / trees.SITE / "alpha/new.py", "new = 1\n")
        self.write_manifest(["alpha", "beta", "gone"], extra="settings: {on_failure: all-or-nothing}\n")
        run = self.apply(rc=None)
        self.assertNotEqual(run.rc, 0)
        self.assertNotIn("applied", [run.outcome(h)["result"] for h in ("alpha", "beta")])
        self.assert_same_tree(trees.snapshot(self.paths["alpha"], mtime=True), before)
        self.write_manifest(["alpha", "beta"], extra="settings: {on_failure: all-or-nothing, hosts_at_once: 1}\n")
        self.apply()
        for name in ("alpha", "beta"):
            self.assert_same_tree(self.src, self.paths[name])

    def test_after_a_canary_that_failed_no_other_host_is_touched(self):
        self.write_ssh_config(f"Host gone\n  HostName 127.0.0.1\n  Port {sshd.free_port()}\n")
        self.write_manifest(["gone", "beta"])
        run = self.apply("--canary", "1", rc=12)
        self.assertEqual(run.outcome("beta")["result"], "skipped")
        self.write_manifest(["beta", "gone"])
        run = self.apply("--canary", "1", rc=3)
        self.assertEqual(run.outcome("beta")["result"], "applied")


class Cuts(harness.Case):
    def test_a_connection_that_breaks_in_mid_transfer_leaves_the_old_tree_and_what_came_is_used_again(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.apply()
        before = trees.snapshot(self.dst, mtime=True)
        for i in range(12):
            trees.write(self.src / trees.SITE / f"alpha/big{i}", os.urandom(2 << 20))
        with link.Link(server.port, cut_after=20_000_000) as wire:
            (self.root / "ssh_config").write_text(server.ssh_config(port=wire.port))
            run = self.apply(rc=12)
            self.assertEqual(wire.cuts, 1)
            self.assertEqual(run.outcome()["result"], "failed")
            self.wait_for_quiet()
            self.assert_same_tree(trees.snapshot(self.dst, mtime=True), before)
            wire.mend()
            start = wire.up
            self.apply("--lock-wait", "30")
            self.assertLess(wire.up - start, 21_500_000, "what had arrived was sent again")
        self.assert_same_tree(self.src, self.dst)

    def test_a_link_that_breaks_and_comes_back_costs_what_was_on_its_way_and_nobodys_help(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.apply()
        trees.write(self.src / trees.SITE / "alpha/large.bin", os.urandom(60 << 20))  # one file: its segments are kept
        for cut_after in (1_000_000, 30_000_000, 58_000_000):
            with self.subTest(cut_after=cut_after), link.Link(server.port, rate=40e6, cut_after=cut_after) as wire:
                trees.write(self.src / trees.SITE / "alpha/large.bin", os.urandom(60 << 20))
                (self.root / "ssh_config").write_text(server.ssh_config(port=wire.port))
                process = self.start("apply", str(self.manifest_file), "--set", "settings.retry_for=1m")
                harness.wait_until(lambda: wire.cuts == 1, "the link is cut", 60)
                wire.mend()
                self.assertEqual(process.wait(timeout=90), 0)
                self.assertLess(wire.up, (60 << 20) + 3 * (9 << 20), "more was sent again than was on its way")
            self.assert_same_tree(self.src, self.dst)

    def test_an_agent_that_hears_nothing_of_a_cut_is_ended_by_the_one_that_comes_after_it(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.apply()
        trees.write(self.src / trees.SITE / "alpha/large.bin", os.urandom(30 << 20))
        with link.Link(server.port, rate=40e6, cut_after=10_000_000, quiet=True) as wire:
            (self.root / "ssh_config").write_text(server.ssh_config(port=wire.port))
            process = self.start("apply", str(self.manifest_file), "--set", "settings.retry_for=2m")
            harness.wait_until(lambda: wire.cuts == 1, "the link is cut", 60)
            holder = int((self.state_folder() / "lock").read_text().splitlines()[1].split()[1])
            os.kill(holder, signal.SIGSTOP)  # it will never hear of its silence either, nor of SIGTERM
            wire.mend()
            self.assertEqual(process.wait(timeout=90), 0)
            self.assertFalse(pathlib.Path(f"/proc/{holder}/exe").exists())
        self.assert_same_tree(self.src, self.dst)

    def test_the_agent_of_another_run_is_never_ended(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.apply()
        trees.write(self.src / trees.SITE / "alpha/large.bin", os.urandom(30 << 20))
        with link.Link(server.port, rate=4e6) as wire:
            (self.root / "ssh_config").write_text(server.ssh_config(port=wire.port))
            process = self.start("apply", str(self.manifest_file))
            harness.wait_until(lambda: wire.up > 2_000_000, "content is on its way", 60)
            other = self.apply(rc=11)
            self.assertEqual(other.outcome()["error"]["code"], "locked")
            self.assertEqual(process.wait(timeout=90), 0)
        self.assert_same_tree(self.src, self.dst)


if __name__ == "__main__":
    unittest.main(verbosity=2)
