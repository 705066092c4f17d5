// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/store_env.hpp"

using namespace envsync;
using namespace envsync::testing;

TEST_CASE("transaction: the first apply makes the tree at a path that was absent, and generation 1") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("deep/er/env");
  const Desired to = desired({"0755 bin/tool=#!", "lib/a.py=one", "lib/b.py=two", "lib/empty=", "bin/python -> tool", "lib/d/"});
  const auto accepted = apply(files, env, to);
  CHECK(told(accepted) == "");
  CHECK(accepted->generation == 1);
  CHECK_FALSE(accepted->adopted.has_value());
  CHECK_FALSE(accepted->recovery_pending);
  CHECK(differences(to.tree, env) == "");
  CHECK(generations(files, env) == "1");
}

TEST_CASE("transaction: a change replaces what differs and keeps the inodes of what does not") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  CHECK(told(apply(files, env, desired({"lib/a.py=one", "lib/b.py=two", "lib/gone=x"}))) == "");
  const u64 kept = os::stat_at(folder.fd(), "env/lib/b.py")->ino;
  const Desired to = desired({"lib/a.py=1", "lib/b.py=two", "lib/new/c.py=three"});
  const auto accepted = apply(files, env, to, {.commit_root = "lib"});
  CHECK(told(accepted) == "");
  CHECK(accepted->generation == 2);
  CHECK(accepted->bytes_written == 6);
  CHECK(differences(to.tree, env) == "");
  CHECK(os::stat_at(folder.fd(), "env/lib/b.py")->ino == kept);
  CHECK(generations(files, env) == "1 2");
  CHECK(lost_contents(files, env) == "");
}
