# SPDX-License-Identifier: MIT
"""Ways to a host that are not straight: jump hosts, odd shells, tight servers, sudo, a person at a terminal; by libssh and by the
ssh program, which must do the same."""
import os
import select
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import sshd
import trees

BOTH = ("libssh", "openssh")


def may_unshare():
    probe = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True)
    return probe.returncode == 0


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.host = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])

    def reconfigure(self, text, **replacements):
        """More lines for the server; `replacements` are keywords that it has already."""
        config = self.host.folder / "sshd_config"
        lines = [line for line in config.read_text().splitlines() if line.split(" ")[0] not in replacements]
        config.write_text("\n".join(lines + [f"{key} {value}" for key, value in replacements.items()] + [text, ""]))
        self.host.restart()

    def applies_by_both(self):
        """A change goes over each of the two, the other's agent left in place."""
        for number, transport in enumerate(BOTH):
            with self.subTest(transport=transport):
                trees.write(self.src / trees.SITE / "alpha/big", os.urandom(3 << 20))
                run = self.apply("--transport", transport)
                self.assertEqual(run.plan()["route"]["transport"], transport)
                self.assertEqual(run.outcome()["generation"], number + 1)
                self.assert_same_tree(self.src, self.dst)

    def refuses_by_both(self, *words, seconds=30):
        for transport in BOTH:
            with self.subTest(transport=transport):
                began = time.monotonic()
                run = self.apply("--transport", transport, rc=12)
                self.assertLess(time.monotonic() - began, seconds)
                self.assertIn("[connect_failed]", run.err)
                self.assertIn("alpha", run.err)
                for word in words:
                    self.assertIn(word, run.err, str(run))
                self.assertFalse(self.dst.exists())


class Choice(Case):
    def test_auto_is_libssh_and_the_ssh_program_where_an_option_needs_it_and_the_plan_says_why(self):
        route = self.envsync("plan", self.manifest_file).plan()["route"]
        self.assertEqual(route["transport"], "libssh")
        self.write_ssh_config("Host *\n  RekeyLimit 1G\n")
        route = self.envsync("plan", self.manifest_file).plan()["route"]
        self.assertEqual(route["transport"], "openssh")
        self.assertIn("rekeylimit", route["transport_reason"])
        run = self.envsync("plan", self.manifest_file, "--transport", "libssh", rc=12)
        self.assertIn("rekeylimit", run.err)

    def test_a_host_says_how_it_is_reached_and_the_flag_has_the_last_word(self):
        self.manifest(targets=["{host: alpha, transport: openssh}"], extra="settings: {transport: libssh}\n")
        self.assertEqual(self.envsync("plan", self.manifest_file).plan()["route"]["transport"], "openssh")
        self.assertEqual(self.envsync("plan", self.manifest_file, "--transport", "libssh").plan()["route"]["transport"], "libssh")


    def test_a_machine_without_the_ssh_program_reaches_hosts_by_libssh_unless_an_ssh_config_is_there_that_nobody_can_read(self):
        keys = self.home / ".ssh"
        keys.mkdir(mode=0o700)
        shutil.copy(self.host.folder / "key", keys / "id_ed25519")
        shutil.copy(self.host.folder / "known_hosts", keys / "known_hosts")
        self.manifest(targets=[f"'{self.host.user}@127.0.0.1:{self.host.port}'"])
        self.servers.clear()  # no --ssh-config
        nowhere = {"PATH": str(self.root / "no programs")}
        self.assertEqual(self.envsync("plan", self.manifest_file, env=nowhere).plan()["route"]["transport"], "libssh")
        (keys / "config").write_text("")
        self.assertIn("ssh_config cannot be read", self.envsync("plan", self.manifest_file, env=nowhere, rc=12).err)


class Roads(Case):
    def test_two_jump_hosts_are_passed_in_their_order(self):
        beta, gamma = self.server("beta"), self.server("gamma")
        # Each lets itself be used only for the next one.
        for server, port in ((self.host, beta.port), (beta, gamma.port)):
            config = server.folder / "sshd_config"
            config.write_text(config.read_text() + f"PermitOpen 127.0.0.1:{port}\n")
            server.restart()
        (self.root / "ssh_config").write_text(self.host.ssh_config() + beta.ssh_config() + gamma.ssh_config() + "  ProxyJump alpha,beta\n")
        self.manifest(targets=["gamma"])
        self.applies_by_both()
        for server in (self.host, beta, gamma):
            self.assertIn("Accepted publickey", "".join(server.log))
        self.write_ssh_config()
        self.manifest(targets=["{host: gamma, jump: 'beta,alpha'}"])
        self.apply(rc=12)

    def test_a_block_for_the_name_as_it_was_written_holds(self):
        text = (self.root / "ssh_config").read_text()
        (self.root / "ssh_config").write_text(text.replace("Host alpha\n", "Match originalhost alpha\n"))
        self.applies_by_both()

    def test_a_command_within_a_shell_and_one_in_a_namespace_reach_a_host(self):
        commands = {"box": "[sh, -c, 'exec sh']"}
        if may_unshare():
            commands["island"] = "[unshare, -n, sh]"
        for name, command in commands.items():
            with self.subTest(command=command):
                self.manifest(targets=[f"{{host: {name}, transport: {{command: {command}}}}}"])
                trees.patch_five(self.src, name)
                run = self.apply()
                self.assertEqual(run.plan()["route"]["transport"], "command")
                self.assert_same_tree(self.src, self.dst)


class Servers(Case):
    def test_one_session_and_one_login_at_a_time_are_enough(self):
        self.reconfigure("", MaxSessions="1", MaxStartups="1")
        self.applies_by_both()

    def test_a_banner_and_a_start_up_file_that_talks_are_passed_over(self):
        banner = self.root / "banner"
        banner.write_text("Authorized use only\n" * 100)
        (self.host.home / ".bashrc").write_text("echo welcome to $HOSTNAME\necho and mind the step >&2\n")
        self.reconfigure(f"Banner {banner}")
        self.applies_by_both()

    @unittest.skipUnless(shutil.which("csh"), "csh is not installed")
    def test_csh_as_the_login_shell_starts_the_agent(self):
        self.reconfigure('ForceCommand exec csh -c "$SSH_ORIGINAL_COMMAND"')
        self.applies_by_both()

    def test_a_restricted_shell_is_told_with_its_own_words(self):
        self.reconfigure('ForceCommand exec bash --restricted -c "$SSH_ORIGINAL_COMMAND"')
        self.refuses_by_both("restricted")

    def test_a_server_that_drops_connections_is_told_at_once(self):
        self.reconfigure("", MaxStartups="1")
        with socket.create_connection(("127.0.0.1", self.host.port)) as holder:
            holder.recv(1)  # this one is the login that the server has room for
            self.refuses_by_both("no key exchange with the server")

    @unittest.skipUnless(may_unshare(), "this user cannot mount")
    def test_a_home_where_nothing_may_run_sends_the_agent_elsewhere(self):
        self.own_agent()
        script = self.root / "login"
        script.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount --make-rprivate / && mount -t tmpfs -o noexec none {self.host.home} && "
                          "mount -t tmpfs none /var/tmp && exec sh -c \"$SSH_ORIGINAL_COMMAND\"'\n")
        script.chmod(0o755)
        self.reconfigure(f"ForceCommand {script}")
        self.applies_by_both()
        self.assertEqual([p for p in self.host.home.rglob("envsync-agent-*")], [])


class Sudo(Case):
    def with_sudo(self, script):
        """A host whose `sudo` is this."""
        tools = self.root / "tools"
        tools.mkdir()
        (tools / "sudo").write_text("#!/bin/sh\n" + script)
        (tools / "sudo").chmod(0o755)
        self.reconfigure("", SetEnv=f"HOME={self.host.home} PATH={tools}:{os.environ['PATH']}")
        self.manifest(targets=["{host: alpha, sudo: true}"])

    def test_the_agent_is_started_by_sudo_which_must_ask_for_nothing(self):
        trace = self.root / "trace"
        self.with_sudo(f'[ "$1" = -n ] || exit 9\nshift\necho "$1 $2" >>{trace}\nexec "$@"\n')
        self.applies_by_both()
        self.assertEqual(trace.read_text(), "sh -c\n" * 2)

    def test_a_sudo_that_wants_a_password_is_told_with_what_to_do(self):
        self.with_sudo("echo 'sudo: a password is required' >&2\nexit 1\n")
        self.refuses_by_both("a password is required", "NOPASSWD")


class Person(Case):
    """At a terminal."""

    def converse(self, *arguments, answers):
        """Runs envsync on a terminal of its own; `answers`: what to type when a text has been shown. Gives status and screen."""
        ours, theirs = os.openpty()
        line = [harness.binary("ENVSYNC_BIN"), *map(str, arguments), "--ssh-config", str(self.root / "ssh_config")]
        process = subprocess.Popen(line, env={**self.env, "TERM": "dumb"}, stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.root, start_new_session=True)
        os.close(theirs)
        screen, waiting, deadline = "", list(answers), time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    piece = os.read(ours, 4096)
                except OSError:
                    break  # the other side is closed
                if not piece:
                    break
                screen += piece.decode(errors="replace")
            elif process.poll() is not None:
                break
            if waiting and waiting[0][0] in screen:
                os.write(ours, (waiting.pop(0)[1] + "\n").encode())
        os.close(ours)
        if process.poll() is None:
            process.kill()
        return process.wait(), screen

    def test_a_host_key_that_is_not_known_is_shown_and_asked_for_and_yes_to_all_is_no_answer(self):
        known = self.root / "known_hosts"
        (self.root / "ssh_config").write_text(self.host.ssh_config(known_hosts=known))
        status, screen = self.converse("apply", self.manifest_file, "-y", answers=[("Is it the right one?", "no")])
        self.assertEqual(status, 12, screen)
        self.assertIn("SHA256:", screen)
        self.assertFalse(known.exists())
        status, screen = self.converse("apply", self.manifest_file, answers=[("Is it the right one?", "yes")])
        self.assertEqual(status, 0, screen)
        self.assertIn((self.host.folder / "hostkey.pub").read_text().split()[1], known.read_text())

    def test_a_passphrase_is_asked_for_and_not_shown(self):
        subprocess.run([sshd.program("ssh-keygen"), "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(self.host.folder / "key")], check=True,
                       stdout=subprocess.DEVNULL)
        status, screen = self.converse("apply", self.manifest_file, answers=[("Passphrase of the key", "open sesame")])
        self.assertEqual(status, 0, screen)
        self.assertNotIn("sesame", screen)
        self.assert_same_tree(self.src, self.dst)

    def test_nobody_is_asked_where_nobody_is_there_and_the_answer_comes_at_once(self):
        subprocess.run([sshd.program("ssh-keygen"), "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(self.host.folder / "key")], check=True,
                       stdout=subprocess.DEVNULL)
        for transport in BOTH:
            run = self.apply("--transport", transport, rc=12, seconds=30)
            self.assertIn("[auth_failed]", run.err)
        self.assertFalse(self.dst.exists())


class Fleets(Case):
    def test_ranges_and_lists_of_hosts_become_targets(self):
        names = ["gpu-01", "gpu-02", "spare"]
        (self.root / "ssh_config").write_text("".join(self.host.ssh_config(name=name) for name in names))
        (self.root / "fleet.txt").write_text("# the fleet\nspare\n")
        text = self.manifest_file.read_text().replace("targets: [alpha]", "targets: {hosts: ['gpu-[01-02]'], hosts_from: fleet.txt}")
        self.manifest_file.write_text(text)
        run = self.envsync("plan", self.manifest_file)
        self.assertEqual(sorted(e["host"] for e in run.of("plan")), names)

    def test_hosts_come_from_standard_input(self):
        text = self.manifest_file.read_text().replace("targets: [alpha]", "targets: {hosts_from: '-'}")
        self.manifest_file.write_text(text)
        line = self.command("plan", str(self.manifest_file), "--json")
        done = subprocess.run(line, env=self.env, input="alpha\n", capture_output=True, timeout=60, cwd=self.root, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"host":"alpha"', done.stdout.replace(" ", ""))


if __name__ == "__main__":
    harness.main()
