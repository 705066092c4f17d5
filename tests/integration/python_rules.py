# SPDX-License-Identifier: MIT
"""Rules that make a tree an environment: bytecode, files of others, links, names, attributes."""
import compileall
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import trees


def compiled(module_path):
    """Where the interpreter keeps the bytecode of a module."""
    return module_path.parent / "__pycache__" / f"{module_path.stem}.{trees.TAG}.pyc"


class Rules(harness.Case):
    def setUp(self):
        super().setUp()
        self.make_source()
        self.manifest()
        self.alpha = self.src / trees.SITE / "alpha"
        self.there = self.dst / trees.SITE / "alpha"


class Bytecode(Rules):
    def setUp(self):
        super().setUp()
        compileall.compile_dir(self.src / trees.SITE, quiet=2)
        self.apply()

    def compile_target(self):
        compileall.compile_dir(self.dst / trees.SITE, quiet=2)
        self.assertTrue(compiled(self.there / "m1.py").exists())

    def test_the_sources_bytecode_stays_at_home(self):
        self.assertTrue(compiled(self.alpha / "m1.py").exists())
        self.assertEqual([p for p in self.dst.rglob("*.pyc")], [])

    def test_bytecode_on_the_target_is_no_drift(self):
        self.compile_target()
        self.assertEqual(self.apply().outcome()["result"], "unchanged")
        self.assertEqual(self.envsync("verify", self.manifest_file).of("difference"), [])

    def test_bytecode_of_a_changed_module_goes_and_that_of_others_stays_the_same_inode(self):
        self.compile_target()
        kept = os.stat(compiled(self.there / "m2.py")).st_ino
        # Same size and same whole second: the interpreter would believe the old bytecode.
        info = os.stat(self.there / "m1.py")
        trees.write(self.alpha / "m1.py", (self.alpha / "m1.py").read_text().replace("1", "7"))
        os.utime(self.alpha / "m1.py", ns=(info.st_mtime_ns, info.st_mtime_ns))
        self.apply()
        self.assertFalse(compiled(self.there / "m1.py").exists())
        self.assertEqual(os.stat(compiled(self.there / "m2.py")).st_ino, kept)
        self.assertEqual(trees.python(self.dst, "import alpha.m1; print(alpha.m1.answer())"), "7")

    def test_bytecode_of_a_removed_module_and_of_a_removed_package_goes(self):
        self.compile_target()
        (self.alpha / "m1.py").unlink()
        (self.alpha / "deep/er/still/__init__.py").unlink()
        compiled(self.alpha / "deep/er/still/__init__.py").unlink()
        for folder in ("deep/er/still/__pycache__", "deep/er/still", "deep/er", "deep"):
            (self.alpha / folder).rmdir()
        self.apply()
        self.assertFalse(compiled(self.there / "m1.py").exists())
        self.assertFalse((self.there / "deep").exists())
        self.assert_same_tree(self.src, self.dst)

    def test_a_rollback_drops_the_bytecode_of_what_it_takes_back(self):
        info = os.stat(self.there / "m1.py")
        trees.write(self.alpha / "m1.py", (self.alpha / "m1.py").read_text().replace("1", "7"))
        os.utime(self.alpha / "m1.py", ns=(info.st_mtime_ns, info.st_mtime_ns))
        self.apply()
        self.compile_target()
        self.envsync("rollback", self.manifest_file, "-y")
        self.assertEqual(trees.python(self.dst, "import alpha.m1; print(alpha.m1.answer())"), "1")

    def test_bytecode_without_its_source_is_a_file_like_others(self):
        code = compiled(self.alpha / "m1.py").read_bytes()
        trees.write(self.alpha / "only.pyc", code)
        trees.write(self.alpha / "m2.pyc", code)  # beside m2.py: the interpreter never reads it
        self.apply()
        self.assertEqual((self.there / "only.pyc").read_bytes(), code)
        self.assertFalse((self.there / "m2.pyc").exists())

    def test_shipped_bytecode_arrives_where_the_manifest_asks_for_it(self):
        path = self.root / "dst2/env"
        self.manifest(path=path, source=f"{{host: local, path: {self.src}, bytecode: ship}}")
        self.apply()
        self.assert_same_tree(trees.snapshot(self.src, mtime=True, bytecode=True), trees.snapshot(path, mtime=True, bytecode=True))
        os.utime(self.alpha / "m3.py", (1_700_000_000, 1_700_000_000))
        compileall.compile_file(self.alpha / "m3.py", quiet=2, force=True)
        self.apply()
        self.assert_same_tree(trees.snapshot(self.src, mtime=True, bytecode=True), trees.snapshot(path, mtime=True, bytecode=True))


class Unmanaged(Rules):
    """What the manifest excludes belongs to somebody else: neither sent nor deleted."""

    def setUp(self):
        super().setUp()
        self.manifest(source=f"{{host: local, path: {self.src}, exclude: ['*.log', '/var/', '!keep.log']}}")
        trees.write(self.src / "source.log", "not sent\n")
        trees.write(self.alpha / "keep.log", "sent\n")
        self.apply()

    def test_excluded_paths_are_not_sent_and_reincluded_ones_are(self):
        self.assertFalse((self.dst / "source.log").exists())
        self.assertEqual((self.there / "keep.log").read_text(), "sent\n")

    def test_excluded_files_of_the_target_stay_the_same_inode(self):
        trees.write(self.dst / "var/cache/big", "a model\n")
        trees.write(self.there / "service.log", "lines\n")
        inodes = {p: os.stat(p).st_ino for p in (self.dst / "var/cache/big", self.there / "service.log")}
        trees.patch_five(self.src, "patched")
        self.apply()
        self.assertEqual({p: os.stat(p).st_ino for p in inodes}, inodes)
        self.assert_same_tree(trees.snapshot(self.src, skip=["source.log"]),
                              trees.snapshot(self.dst, skip=["var", f"{trees.SITE}/alpha/service.log"]))

    def test_an_open_writer_that_appends_keeps_writing_the_live_file(self):
        log = self.dst / "service.log"
        with open(log, "a") as writer:
            writer.write("before\n")
            writer.flush()
            for word in ("one", "two"):
                trees.patch_five(self.src, word)
                self.apply()
                writer.write(word + "\n")
                writer.flush()
            self.envsync("rollback", self.manifest_file, "-y")
            writer.write("after\n")
        self.assertEqual(log.read_text(), "before\none\ntwo\nafter\n")

    def test_excluded_files_in_a_folder_that_goes_away_stay_with_a_warning(self):
        trees.write(self.there / "deep/er/still/notes.log", "notes\n")
        (self.alpha / "deep/er/still/__init__.py").unlink()
        for folder in ("deep/er/still", "deep/er", "deep"):
            (self.alpha / folder).rmdir()
        run = self.apply()
        self.assertEqual((self.there / "deep/er/still/notes.log").read_text(), "notes\n")
        self.assertFalse((self.there / "deep/er/still/__init__.py").exists())
        self.assertIn("notes.log", run.err + run.out)

    def test_a_file_that_somebody_added_elsewhere_is_drift_not_unmanaged(self):
        trees.write(self.there / "stray.py", "")
        trees.patch_five(self.src, "patched")
        self.apply(rc=14)


class Entries(Rules):
    def test_hard_links_are_grouped_as_at_the_source(self):
        for name in ("linked_a.so", "linked_b.so"):
            os.link(self.src / trees.SITE / "beta/native.so", self.alpha / name)
        os.link(self.alpha / "m1.py", self.root / "outside")  # a name beyond the tree makes no group
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        group = {trees.snapshot(self.dst)[f"{trees.SITE}/{n}"].group for n in ("alpha/linked_a.so", "alpha/linked_b.so", "beta/native.so")}
        self.assertEqual(len(group - {""}), 1)
        self.assertEqual(trees.snapshot(self.dst)[f"{trees.SITE}/alpha/m1.py"].group, "")
        # One name leaves the group, one joins.
        trees.write(self.alpha / "linked_a.so", "now alone\n")
        os.link(self.alpha / "linked_b.so", self.alpha / "linked_c.so")
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        self.envsync("rollback", self.manifest_file, "-y")
        self.assertEqual({trees.snapshot(self.dst)[f"{trees.SITE}/{n}"].group for n in ("alpha/linked_a.so", "alpha/linked_b.so", "beta/native.so")}, group)

    def test_names_are_bytes(self):
        odd = [b"with space", b"new\nline", b"-rf", b"\xff\xfe not utf-8", "ünïcode ☃".encode(), b"quote'\"$(x)`", b"a" * 255, b"back\\slash",
               b"*.glob[1]", b" lead", b"trail ", b".hidden", b"%s", b"\x01control"]
        base = os.fsencode(self.alpha / "odd")
        os.mkdir(base)
        for name in odd:
            with open(base + b"/" + name, "wb") as file:
                file.write(b"content of " + name)
        os.symlink(b"\xff\xfe not utf-8", base + b"/link to bytes")
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        with open(base + b"/\xff\xfe not utf-8", "wb") as file:
            file.write(b"patched")
        self.assertEqual(self.apply().outcome()["files"], 1)
        self.assert_same_tree(self.src, self.dst)

    def test_paths_longer_than_the_system_takes_at_once_arrive(self):
        here = os.open(self.alpha, os.O_RDONLY)
        for _ in range(24):  # 24 * 201 bytes: beyond 4,096
            os.mkdir("d" * 200, dir_fd=here)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        with open(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here), "w") as leaf:
            leaf.write("deep\n")
        os.close(here)
        self.addCleanup(self.remove_deep)
        self.apply()
        there = os.open(self.there, os.O_RDONLY)
        for _ in range(24):
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=there)
            os.close(there)
            there = below
        with open(os.open("leaf", os.O_RDONLY, dir_fd=there)) as leaf:
            self.assertEqual(leaf.read(), "deep\n")
        os.close(there)

    def remove_deep(self):
        for folder in (self.alpha, self.there):
            top = folder / ("d" * 200)
            while top.exists():  # lift what lies two levels down, until the path is short
                (top / ("d" * 200)).rename(folder / "lifted") if (top / ("d" * 200)).exists() else None
                for leaf in top.iterdir():
                    leaf.unlink()
                top.rmdir()
                if (folder / "lifted").exists():
                    (folder / "lifted").rename(top)

    def test_modes_and_user_attributes_arrive_and_their_change_is_a_change(self):
        try:
            os.setxattr(self.alpha / "m1.py", "user.origin", b"build 7\0\xff")
        except OSError as error:
            self.fail(f"{self.root} holds no user attributes ({error}); set TMPDIR to a filesystem that does")
        os.setxattr(self.alpha, "user.folder", b"yes")
        os.chmod(self.alpha / "m2.py", 0o400)
        os.chmod(self.alpha / "m3.py", 0o4755)
        os.chmod(self.alpha / "deep", 0o750)
        os.chmod(self.alpha / "deep/er", 0o500)
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        os.setxattr(self.alpha / "m1.py", "user.origin", b"build 8")
        os.chmod(self.alpha / "m2.py", 0o640)
        outcome = self.apply().outcome()
        self.assertEqual((outcome["result"], outcome["files"]), ("applied", 2))
        self.assert_same_tree(self.src, self.dst)

    def test_links_arrive_as_links_wherever_they_point(self):
        for name, target in (("up", "../../.."), ("dangling", "nowhere/at/all"), ("absolute", "/etc/hostname"), ("loop", "loop")):
            (self.alpha / name).symlink_to(target)
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        (self.alpha / "up").unlink()
        (self.alpha / "up").symlink_to("elsewhere")
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_empty_and_large_and_sparse_files_arrive(self):
        trees.write(self.alpha / "empty", b"")
        trees.write(self.alpha / "large", os.urandom(1 << 20) * 19 + b"tail")  # over two segments, not a multiple
        with open(self.alpha / "sparse", "wb") as file:
            file.truncate(20 << 20)
        self.apply()
        self.assert_same_tree(self.src, self.dst)
        with open(self.alpha / "large", "r+b") as file:
            file.seek(9 << 20)
            file.write(b"patched")
        self.apply()
        self.assert_same_tree(self.src, self.dst)

    def test_times_are_compared_only_where_the_manifest_says_so(self):
        self.manifest(extra="settings: {mtime: strict}\n")
        self.apply()
        os.utime(self.alpha / "m1.py", (1_600_000_000, 1_600_000_000))
        self.assertEqual(self.apply().outcome()["result"], "applied")
        self.assert_same_tree(trees.snapshot(self.src, mtime=True), trees.snapshot(self.dst, mtime=True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
