# SPDX-License-Identifier: MIT
"""Several connections to one host: opened where a way gives each of them little, refused by tight servers, lost on the way."""
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import sshd
import trees
from link import Link

BOTH = ("libssh", "openssh")
BYTES = 160 << 20
EACH = 12e6  # bytes a second of one connection


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.host = self.server("alpha")
        self.make_source()
        trees.write(self.src / trees.SITE / "alpha/big", os.urandom(BYTES))

    def reach_by(self, link):
        (self.root / "ssh_config").write_text(self.host.ssh_config(port=link.port))

    def limit(self, keyword, value):
        config = self.host.folder / "sshd_config"
        lines = [line for line in config.read_text().splitlines() if line.split(" ")[0] != keyword]
        config.write_text("\n".join([f"{keyword} {value}", *lines, ""]))
        self.host.restart()

    def run_over(self, link, transport="libssh", **manifest):
        self.reach_by(link)
        self.manifest(**manifest)
        run = self.apply("--transport", transport)
        self.assert_same_tree(self.src, self.dst)
        return {c["host"]: c for c in run.outcome().get("connections", [])}

    def wait_for_sessions(self, number):
        harness.wait_until(lambda: len(self.agents_of_host()) >= number, f"{number} connections")

    def agents_of_host(self):
        """[(process of the login, agent)]; the first agent first, by when each began: numbers of processes start anew."""
        up = sshd.parents()
        found = []
        for pid in self.host.sessions():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                began = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
            except (OSError, IndexError):
                continue
            if b"envsync-agent-" in words[0] and words[1:2] == [b"serve"]:
                found.append((began, up.get(pid), pid))
        return [(login, agent) for _, login, agent in sorted(found)]


class Growing(Case):
    def test_a_target_gets_more_connections_where_each_is_slow(self):
        for number, transport in enumerate(BOTH):
            with self.subTest(transport=transport), Link(self.host.port, rate_each=EACH) as link:
                trees.write(self.src / trees.SITE / "alpha/big", os.urandom(BYTES))
                seen = self.run_over(link, transport, targets=["alpha"])
                self.assertGreaterEqual(seen["alpha"]["most"], 2)
                self.assertEqual(link.connections, seen["alpha"]["most"])

    def test_a_source_gets_more_connections_too(self):
        for transport in BOTH:
            with self.subTest(transport=transport), Link(self.host.port, rate_each=EACH) as link:
                trees.write(self.src / trees.SITE / "alpha/big", os.urandom(BYTES))
                seen = self.run_over(link, transport, source=f"alpha:{self.src}")
                self.assertGreaterEqual(seen["alpha"]["most"], 2)

    def test_little_goes_over_one_connection(self):
        trees.write(self.src / trees.SITE / "alpha/big", os.urandom(8 << 20))
        with Link(self.host.port, rate_each=EACH) as link:
            self.assertEqual(self.run_over(link, targets=["alpha"]), {})
            self.assertEqual(link.connections, 1)

    def test_the_logins_of_further_connections_end_with_the_run(self):
        with Link(self.host.port, rate_each=EACH) as link:
            self.run_over(link, targets=["alpha"])
        harness.wait_until(lambda: not self.agents_of_host(), "no agent of the run")


class Tight(Case):
    def test_a_server_of_one_session_a_connection_still_gets_several(self):
        self.limit("MaxSessions", 1)
        with Link(self.host.port, rate_each=EACH) as link:
            self.assertGreaterEqual(self.run_over(link, targets=["alpha"])["alpha"]["most"], 2)

    def test_a_server_of_one_login_at_a_time_gets_them_one_after_the_other(self):
        self.limit("MaxStartups", 1)
        with Link(self.host.port, rate_each=EACH) as link:
            self.assertGreaterEqual(self.run_over(link, targets=["alpha"])["alpha"]["most"], 2)

    def test_a_server_that_takes_no_second_login_is_served_over_one_connection_and_why_is_told(self):
        for transport in BOTH:
            with self.subTest(transport=transport), Link(self.host.port, rate_each=EACH) as link:
                trees.write(self.src / trees.SITE / "alpha/big", os.urandom(BYTES))
                key = self.host.folder / "authorized"
                text = key.read_text()
                closing = threading.Thread(target=lambda: (self.wait_for_sessions(1), key.write_text("")), daemon=True)
                closing.start()
                try:
                    seen = self.run_over(link, transport, targets=["alpha"])
                finally:
                    closing.join(60)
                    key.write_text(text)
                self.assertEqual(seen["alpha"]["most"], 1)
                self.assertIn("refused the login", seen["alpha"]["why_no_more"])


class Lost(Case):
    def lose_one(self, victim, **manifest):
        """Kills what `victim` chooses of a further connection while all is on its way."""
        for transport in BOTH:
            with self.subTest(transport=transport), Link(self.host.port, rate_each=EACH) as link:
                trees.write(self.src / trees.SITE / "alpha/big", os.urandom(BYTES))
                self.reach_by(link)
                self.manifest(**manifest)
                killed = []

                def kill():
                    self.wait_for_sessions(2)
                    seen = link.up + link.down
                    harness.wait_until(lambda: link.up + link.down > seen + EACH, "both connections carry content")
                    login, agent = self.agents_of_host()[1]
                    killed.append(victim(login, agent))
                    os.kill(killed[0], signal.SIGKILL)

                killer = threading.Thread(target=kill, daemon=True)
                killer.start()
                run = self.apply("--transport", transport)
                killer.join(60)
                self.assertTrue(killed)
                self.assert_same_tree(self.src, self.dst)
                self.assertNotIn("trying again", run.err)

    def test_the_login_of_a_target_s_further_connection_is_killed(self):
        self.lose_one(lambda login, agent: login, targets=["alpha"])

    def test_the_login_of_a_source_s_further_connection_is_killed(self):
        self.lose_one(lambda login, agent: login, source=f"alpha:{self.src}")


if __name__ == "__main__":
    harness.main()
