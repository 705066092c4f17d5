# SPDX-License-Identifier: MIT
"""The command line: manifest errors with their places, exit codes, JSON that scripts can rely on, interruption."""
import json
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import link
import trees

RESULTS = {"applied", "unchanged", "failed", "refused", "rolled_back", "skipped"}
PHASES = {"connect", "scan", "plan", "stage", "transfer", "seal", "commit", "accept", "verify"}


class Manifests(harness.Case):
    def invalid(self, text, *words):
        self.manifest_file.write_text(text)
        run = self.envsync("validate", self.manifest_file, rc=10)
        for word in words:
            self.assertIn(word, run.err, str(run))
        self.assertEqual(self.apply(rc=10).of("plan"), [])
        return run

    def test_an_unknown_key_is_shown_at_its_place_with_the_nearest_valid_one(self):
        run = self.invalid("version: 1\npath: /x/env\nsuorce: local\nsource: /x\ntargets: [local]\n",
                           "error[manifest_invalid]", "envsync.yaml:3:1", "suorce: local", "^^^^^^", "source")
        self.assertIn("key", run.err)

    def test_all_errors_are_shown_together(self):
        self.invalid("version: 1\npath: relative\nsource: /x\ntargets: [local]\nsettings: {delete_limit: many, mtime: maybe}\n",
                     ":2:7", "delete_limit", "mtime", "maybe")

    def test_wrong_types_duplicates_documents_and_bad_yaml_are_errors(self):
        good = "version: 1\npath: /x/env\nsource: /x\ntargets: [local]\n"
        for text in (good + "targets: [a]\n", good + "---\n" + good, good + "settings: 3\n", good.replace("1", "2"), "a: [", "",
                     "- 1\n", "just words\n", good + "name: {a: 1}\n", good + "settings: {bandwidth: fast}\n"):
            with self.subTest(text=text):
                self.invalid(text)

    def test_a_missing_manifest_is_named(self):
        run = self.envsync("apply", self.root / "no.yaml", rc=None)
        self.assertNotEqual(run.rc, 0)
        self.assertIn("no.yaml", run.err)

    def test_overrides_change_one_value(self):
        self.make_source()
        self.manifest(path=self.root / "other/env")
        self.apply("--set", f"path={self.dst}")
        self.assert_same_tree(self.src, self.dst)

    def test_the_default_manifest_is_envsync_yaml_of_this_folder(self):
        self.make_source()
        self.manifest()
        self.envsync("apply")
        self.assert_same_tree(self.src, self.dst)

    def test_validate_touches_no_host(self):
        self.manifest_file.write_text("version: 1\npath: /x/env\nsource: nowhere.invalid\ntargets: [nobody.invalid]\n")
        self.envsync("validate", self.manifest_file)

    def test_init_writes_a_manifest_that_applies_and_never_overwrites_one(self):
        self.make_source()
        self.server("alpha")
        self.envsync("init", self.src, "alpha", json_events=False)
        text = self.manifest_file.read_text()
        self.assertIn("version: 1", text)
        self.envsync("validate", self.manifest_file)
        run = self.envsync("init", self.src, "alpha", json_events=False, rc=None)
        self.assertNotEqual(run.rc, 0)
        self.assertEqual(self.manifest_file.read_text(), text)

    def test_init_writes_only_what_can_be_applied(self):
        self.make_source()
        (self.root / "env").symlink_to(self.src)
        for words, said in (((self.src, "local"), "is the source itself"), ((self.src, f"local:{self.src}"), "is the source itself"),
                            ((self.src, "lo", "lo"), "named twice"), (("env", "lo"), "./env"), (("nohost", "lo"), "nohost:/path")):
            with self.subTest(words=words):
                run = self.envsync("init", *words, rc=2, json_events=False)
                self.assertIn(said, run.err)
                self.assertFalse(self.manifest_file.exists())
        self.envsync("init", "src/../src/env", "./dst/env", json_events=False)
        self.assertIn(f"local:{self.dst}", self.manifest_file.read_text())
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_one_run_has_one_id_everywhere(self):
        self.make_source()
        self.manifest()
        run = self.apply()
        ids = {e["run"] for e in run.events}
        self.assertEqual(ids, {self.generations()[1]["committed_run"]})
        self.assertEqual([p.stem for p in (self.home / ".local/state/envsync/runs").iterdir() if p.stem in ids], list(ids))
        self.assertIn(ids.pop(), (self.state_folder() / "lock").read_text())

    def test_a_quoted_number_is_told_to_lose_its_quotes(self):
        self.manifest_file.write_text("version: \"1\"\npath: /x/env\nsource: a\ntargets: [b]\nsettings: {hosts_at_once: \"8\"}\n")
        run = self.envsync("validate", self.manifest_file, rc=10)
        self.assertIn("the quoted text '8'", run.err)
        self.assertIn("write 8 without quotes", run.err)
        self.assertIn("write 1 without quotes", run.err)


class Usage(harness.Case):
    def test_wrong_usage_is_exit_2(self):
        for arguments in ((), ("aply",), ("apply", "--no-such-flag"), ("apply", "--bwlimit", "3"), ("apply", "--drift", "maybe")):
            with self.subTest(arguments=arguments):
                run = self.envsync(*arguments, rc=2, json_events=False)
                self.assertTrue(run.err or run.out)

    def test_words_that_are_nearly_right_are_corrected(self):
        self.assertIn("apply", self.envsync("aply", rc=2, json_events=False).err)
        self.assertIn("--allow-delete", self.envsync("apply", "--delete", rc=2, json_events=False).err)

    def test_help_version_schema_and_explain_work_without_a_manifest(self):
        for arguments in (("--help",), ("--version",), ("schema",), ("explain", "drift_refused"), ("apply", "--help")):
            with self.subTest(arguments=arguments):
                self.assertTrue(self.envsync(*arguments, json_events=False).out.strip())
        schema = json.loads(self.envsync("schema", json_events=False).out)
        self.assertIn("draft-07", schema["$schema"])
        file = pathlib.Path(__file__).parents[2] / "manifests/envsync.schema.json"
        self.assertEqual(schema, json.loads(file.read_text()))

    def test_every_verb_has_help_that_names_its_exit_status(self):
        for verb in ("apply", "plan", "verify", "status", "history", "rollback", "prune", "init", "validate"):
            with self.subTest(verb=verb):
                self.assertIn("xit", self.envsync(verb, "--help", json_events=False).out)


class Json(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()

    def check_common(self, run):
        self.assertTrue(run.events, str(run))
        self.assertEqual({e["v"] for e in run.events}, {1})
        self.assertEqual(len({e["run"] for e in run.events}), 1)
        for event in run.events:
            self.assertRegex(event["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
            self.assertIn("event", event)
        summary = run.events[-1]
        self.assertEqual((summary["event"], summary["exit_code"]), ("summary", run.rc))
        return summary

    def test_an_apply_tells_its_plan_phases_outcome_and_summary(self):
        run = self.apply()
        summary = self.check_common(run)
        self.assertEqual((summary["applied"], summary["failed"]), (1, 0))
        plan, outcome = run.plan(), run.outcome()
        for field in ("host", "path", "generation_next", "files_added", "bytes_total", "bytes_to_send", "packages", "digest", "guarantee"):
            self.assertIn(field, plan)
        self.assertEqual({p["name"] for p in plan["packages"]} - {""}, {"alpha", "beta"})
        self.assertLessEqual({p["phase"] for p in run.of("phase")}, PHASES)
        self.assertIn(outcome["result"], RESULTS)
        for field in ("host", "generation", "files", "bytes_up", "bytes_down", "bytes_read", "bytes_written", "seconds", "guarantee"):
            self.assertIn(field, outcome)
        self.assertEqual(outcome["guarantee"], "atomic")
        self.assertLessEqual(set(outcome["seconds"]), PHASES)

    def test_other_verbs_speak_the_same_way(self):
        self.apply()
        trees.patch_five(self.src, "patched")
        self.apply()
        for verb, event in (("status", "status"), ("history", "generation"), ("plan", "plan"), ("verify", None), ("rollback", "outcome"),
                            ("prune", None)):
            with self.subTest(verb=verb):
                run = self.envsync(verb, self.manifest_file, "-y")
                self.check_common(run)
                if event:
                    self.assertTrue(run.of(event), str(run))

    def test_a_failure_has_a_code_and_an_exit_status(self):
        self.manifest(source=self.root / "nothing")
        run = self.apply(rc=13)
        self.assertEqual(self.check_common(run)["exit_code"], 13)
        self.assertIn("source_missing", {e.get("code") for e in run.events})

    def test_names_that_are_not_utf8_travel_as_base64(self):
        name = os.fsencode(self.src) + b"/\xff\xfe"
        with open(name, "wb"):
            pass
        self.apply()
        os.unlink(os.fsencode(self.dst) + b"/\xff\xfe")
        run = self.envsync("verify", self.manifest_file, rc=4)
        self.assertEqual([d.get("path_b64") for d in run.of("difference")], ["//4="])

    def test_stdout_is_the_result_and_stderr_everything_else(self):
        run = self.apply("--quiet")
        self.check_common(run)
        self.assertEqual(run.err, "")
        run = self.envsync("plan", self.manifest_file, json_events=False)
        self.assertIn("up to date", (run.out + run.err).lower())
        self.assertNotIn("\x1b", run.out + run.err)

    def test_a_run_log_is_kept_and_named_on_failure(self):
        trees.make_env(self.dst)
        run = self.apply(rc=13, json_events=False)
        logs = list((self.home / ".local/state/envsync/runs").glob("*.ndjson"))
        self.assertEqual(len(logs), 1)
        self.assertIn(logs[0].name, run.err)
        self.assertTrue([json.loads(line) for line in logs[0].read_text().splitlines()])


class Interruption(harness.Case):
    def test_signals_end_a_transfer_with_their_exit_status_and_leave_the_old_tree(self):
        server = self.server("alpha")
        self.make_source()
        self.manifest(targets=["alpha"])
        self.apply()
        before = trees.snapshot(self.dst, mtime=True)
        with link.Link(server.port, rate=2e6) as slow:
            (self.root / "ssh_config").write_text(server.ssh_config(port=slow.port))
            for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                trees.write(self.src / trees.SITE / "alpha/large", os.urandom(8 << 20))
                start = slow.up
                run = self.start("apply", self.manifest_file)
                try:
                    harness.wait_until(lambda: slow.up > start + 1_000_000, "bytes are on the way")
                    run.send_signal(number)
                    self.assertEqual(run.wait(60), status)
                finally:
                    run.kill()
                    run.wait()
                self.wait_for_quiet()
                self.assert_same_tree(trees.snapshot(self.dst, mtime=True), before)
        self.write_ssh_config()
        self.apply("--lock-wait", "30")
        self.assert_same_tree(self.src, self.dst)


if __name__ == "__main__":
    unittest.main(verbosity=2)
