// SPDX-License-Identifier: MIT
// Where contents come from, what is kept of them, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/store_large.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

std::string name_of(std::string_view text) { return content::ContentId{content::digest_of(as_bytes(text)), text.size()}.name(); }

Desired of_record(store::State& state, u32 number) { return {state.load(number)->tree, {}}; }

}  // namespace

TEST_CASE("pool: contents that leave the live tree and that a kept record names are there, and no others") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two", "c=one"})) == "");
  CHECK(env.pool().empty());
  CHECK(env.apply(desired({"a=1", "b=two", "c=one"})) == "");
  CHECK(env.pool().empty());  // "one" still lies at c
  CHECK(env.apply(desired({"a=1", "b=two", "c=3"})) == "");
  CHECK(env.pool() == std::vector{name_of("one")});
  CHECK(env.apply(desired({"a=1", "b=2", "c=3"})) == "");
  CHECK(env.pool().size() == 2);
  CHECK(env.apply(desired({"a=1", "b=2", "c=4"})) == "");  // generation 1 and 2 go, but 3 and 4 name "two"
  CHECK(generations(env.files, env.path) == "3 4 5");
  CHECK(env.pool() == [&] { auto names = std::vector{name_of("two"), name_of("3")}; std::ranges::sort(names); return names; }());
}

TEST_CASE("pool: going back to a record needs nothing from the source and links the pool's inode") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two"})) == "");
  const u64 old = env.ino("env/a");
  CHECK(env.apply(desired({"a=1", "b=two"})) == "");
  CHECK(env.ino(".envsync/env/contents/" + name_of("one")) == old);
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  const Desired back = of_record(*run.state, 1);
  REQUIRE(run.begin(back.tree, env.settings));
  CHECK(run.transaction->needs().wanted.empty());
  CHECK(run.transaction->needs().bytes_written == 0);
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  run.transaction.reset();
  CHECK(env.ino("env/a") == old);
  CHECK(differences(back.tree, env.path) == "");
  CHECK(env.pool() == std::vector{name_of("1")});
  CHECK(generations(env.files, env.path) == "1 2 3");
}

TEST_CASE("pool: content whose bytes were damaged is not used but wanted from the source") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two"})) == "");
  CHECK(env.apply(desired({"a=1", "b=two"})) == "");
  env.folder.write(".envsync/env/contents/" + name_of("one"), "bad");
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(of_record(*run.state, 1).tree, env.settings));
  CHECK(run.transaction->needs().wanted.size() == 1);
}

TEST_CASE("pool: content with other metadata, or needed twice, is copied; the pool's inode is not altered") {
  Env env;
  CHECK(env.apply(desired({"0755 a=one", "b=two"})) == "");
  CHECK(env.apply(desired({"a=1", "b=two"})) == "");
  const std::string pooled = ".envsync/env/contents/" + name_of("one");
  const os::Fd held = os::open_file(env.folder.fd(), pooled).value();
  env.settings.keep = 5;
  CHECK(env.apply(desired({"0700 a=one", "b=two"})) == "");
  CHECK(os::stat_fd(held.get())->mode == 0755);
  CHECK(env.apply(desired({"a=1", "b=two"})) == "");
  CHECK(env.apply(desired({"0755 a=one", "0755 c=one", "b=two"})) == "");
  CHECK(env.ino("env/a") != env.ino("env/c"));
}

TEST_CASE("contents: one content at several paths is wanted once and lies in inodes of its own") {
  Env env;
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  const Desired to = desired({"a/x=same", "b/y=same", "c/z=same", "d=other", "e == c/z"});
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.size() == 2);
  CHECK(run.transaction->needs().wanted_bytes == 9);
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
  CHECK(env.ino("env/a/x") != env.ino("env/b/y"));
}

TEST_CASE("contents: what lies elsewhere in the live tree is copied from there, unless that is forbidden") {
  Env env;
  CHECK(env.apply(desired({"a/x=moved", "b=two"})) == "");
  const Desired to = desired({"c/x=moved", "b=two"});
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    CHECK(run.transaction->needs().wanted.empty());
    CHECK(run.transaction->needs().copied == 1);
    CHECK(run.transaction->needs().linked == 1);
  }
  env.settings.use_local = false;
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.size() == 1);
}

TEST_CASE("contents: wanted ones come folder by folder, large ones after all others") {
  Env env;
  Desired to = desired({"a-b/x=1", "a/z=2", "a/y=3", "a/sub/w=4", "b=5"});
  std::vector<tree::Entry> entries(to.tree.entries().begin(), to.tree.entries().end());
  entries.push_back(test::entry("a/large="));
  std::get<tree::File>(entries.back().body) = {content::kSegmentBytes + 1, content::digest_of(as_bytes("x")), 0};
  to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  std::string order;
  for (const u32 index : run.transaction->needs().wanted) order += to.tree.entries()[index].path.bytes() + " ";
  CHECK(order == "b a/y a/z a-b/x a/sub/w a/large ");
}

TEST_CASE("put: a large file comes in pieces of any cut and order, is verified, and is in place with its metadata") {
  Env env;
  const std::string text = large('a');
  const Desired to = with_large(text);
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  const u32 index = run.transaction->needs().wanted.at(0);
  const std::vector<std::pair<u64, u64>> cuts{{16'000'000, text.size()}, {0, 5}, {9'000'000, 16'000'000}, {5, 4'000'000}, {4'000'000, 9'000'000}};
  for (const auto& [begin, end] : cuts) {
    const ByteView part = as_bytes(text).subspan(begin, end - begin);
    REQUIRE(run.transaction->put({{index, begin, narrow<u32>(part.size())}}, Bytes(part.begin(), part.end())));
  }
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
  CHECK(os::stat_at(env.folder.fd(), "env/lib/large.so")->mtime_ns == test::kLiteralMtimeNs);
}

TEST_CASE("put: bytes that are not the planned ones are refused by path, small and large, and nothing is swapped") {
  Env env;
  const std::string text = large('a');
  Desired wrong = with_large(text);
  wrong.texts.begin()->second[9'000'000] ^= 1;
  CHECK(env.apply(wrong) == "source_changed: the content of '" + env.path + "/lib/large.so' is not the one that was planned: it changed at the source after it was scanned");
  CHECK_FALSE(env.folder.has("env"));
  Desired small = desired({"a=one"});
  small.texts.begin()->second = "eno";
  CHECK(env.apply(small).starts_with("source_changed: the content of '" + env.path + "/a'"));
  CHECK_FALSE(env.folder.has("env"));
  CHECK(env.apply(desired({"a=one"})) == "");
}

TEST_CASE("put: pieces that were not asked for, lie outside, overlap or come twice are errors of the protocol") {
  Env env;
  const std::string text = large('a');
  Desired to = with_large(text);
  std::vector<tree::Entry> entries(to.tree.entries().begin(), to.tree.entries().end());
  entries.push_back(test::entry("small=abc"));
  entries.push_back(test::entry("twin=abc"));
  to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  const auto index = [&](const char* path) { return static_cast<u32>(*to.tree.index_of(rel(path))); };
  const auto code = [](const Result<void>& result) { return result ? "" : std::string(info(result.error().code).name); };
  const auto bytes = [](std::size_t size) { return Bytes(size, std::byte{'a'}); };
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  store::Transaction& t = *run.transaction;
  const u32 big = index("lib/large.so"), small = index("small");
  CHECK(code(t.put({{999, 0, 3}}, bytes(3))) == "protocol");
  CHECK(code(t.put({{index("lib"), 0, 3}}, bytes(3))) == "protocol");
  CHECK(code(t.put({{index("twin"), 0, 3}}, bytes(3))) == "protocol");   // its content is wanted by another index
  CHECK(code(t.put({{small, 1, 3}}, bytes(3))) == "protocol");
  CHECK(code(t.put({{small, 0, 4}}, bytes(4))) == "protocol");
  CHECK(code(t.put({{small, 0, 3}}, bytes(2))) == "protocol");
  CHECK(code(t.put({{small, 0, 3}}, Bytes{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}, std::byte{'d'}})) == "protocol");
  CHECK(code(t.put({{small, 0, 3}}, bytes(3))) == "protocol");  // the one above has been taken before the pack was found too long
  CHECK(code(t.put({{big, 0, 0}}, {})) == "protocol");
  CHECK(code(t.put({{big, ~u64{0}, 2}}, bytes(2))) == "protocol");
  CHECK(code(t.put({{big, text.size() - 1, 2}}, bytes(2))) == "protocol");
  CHECK(code(t.put({{big, 100, 100}}, bytes(100))) == "");
  CHECK(code(t.put({{big, 100, 100}}, bytes(100))) == "protocol");
  CHECK(code(t.put({{big, 50, 51}}, bytes(51))) == "protocol");
  CHECK(code(t.put({{big, 199, 5}}, bytes(5))) == "protocol");
  CHECK(code(t.put({{big, 120, 5}}, bytes(5))) == "protocol");
  CHECK(code(t.put({{big, 0, 100}}, bytes(100))) == "");
  CHECK(code(t.put({{big, 200, 100}}, bytes(100))) == "");
  CHECK(code(t.put({{big, 0, 300}}, bytes(300))) == "protocol");
}

TEST_CASE("put: several threads fill one tree") {
  Env env;
  Desired to;
  std::vector<tree::Entry> entries{test::entry("")};
  for (int d = 0; d < 8; ++d) {
    entries.push_back(test::entry(fmt::format("d{}", d)));
    for (int f = 0; f < 40; ++f) {
      const std::string text = fmt::format("content {}", (d * 40 + f) % 200);
      entries.push_back(test::entry(fmt::format("d{}/f{}={}", d, f, text)));
      add_text(to, text);
    }
  }
  to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  const auto wanted = run.transaction->needs().wanted;
  CHECK(wanted.size() == 200);
  std::atomic<std::size_t> next{0}, failed{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (std::size_t k = next++; k < wanted.size(); k = next++) {
          const std::string& text = to.texts.at(to.tree.entries()[wanted[k]].file()->content());
          const ByteView bytes = as_bytes(text);
          if (!run.transaction->put({{wanted[k], 0, narrow<u32>(bytes.size())}}, Bytes(bytes.begin(), bytes.end()))) ++failed;
        }
      });
  }
  CHECK(failed == 0);
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
}

TEST_CASE("same host: contents are read from another folder of the machine, at paths of their own, and verified") {
  Env env;
  env.folder.write("source/lib/a.py", "one");
  env.folder.write("source/elsewhere", "two");
  Desired to = desired({"lib/a.py=one", "lib/b.py=two", "lib/c.py=two"});
  to.texts.clear();
  const std::string source = env.folder.path("source");
  env.settings.host_folders = {{source, {{static_cast<u32>(*to.tree.index_of(rel("lib/c.py"))), rel("elsewhere")}}}, {source, {}}};
  CHECK(env.apply(to) == "");
  Desired changed = desired({"lib/a.py=1"});
  env.settings.host_folders = {{source, {}}};
  CHECK(env.apply(changed) == "source_changed: '" + source + "/lib/a.py' is not what it was when it was scanned");
  CHECK(differences(to.tree, env.path) == "");
  CHECK(env.apply(desired({"lib/missing=1"})).starts_with("source_changed: '" + source + "/lib/missing'"));
}

TEST_CASE("leftovers: what an abandoned run received is used by rename and not sent again") {
  Env env;
  const std::string text = large('l');
  Desired to = with_large(text);
  std::vector<tree::Entry> entries(to.tree.entries().begin(), to.tree.entries().end());
  entries.push_back(test::entry("lib/small=abc"));
  entries.push_back(test::entry("lib/never=came"));
  to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  add_text(to, "abc");
  std::string big_ino, small_ino;
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    CHECK(told(run.put(to)).starts_with("content_gone"));  // the small files' pack was not sent
    CHECK(run.transaction->needs().wanted.size() == 3);
  }
  add_text(to, "came");
  {
    // The pack of small files and one large file arrive; the other never does.
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(to));
    REQUIRE(run.transaction->abandon());
  }
  CHECK(env.staging() == 1);
  CHECK_FALSE(env.folder.has("env"));
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  CHECK(run.state->usage()->leftover_bytes >= text.size());
  CHECK(run.state->usage()->journal_state == "clean");
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.empty());
  CHECK(run.transaction->needs().bytes_read == 0);  // the stat cache knows them
  CHECK(run.transaction->needs().bytes_written == 0);
  CHECK(env.staging() == 1);
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
  CHECK(env.staging() == 0);
}

TEST_CASE("leftovers: of a run over a live tree only what was received is left, with the metadata that is wanted now") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two", "c=three"})) == "");
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    const Desired to = altered(desired({"0711 a=new", "b=two", "c=three"}), "a", [](tree::Entry& e) { e.xattrs = {{"user.x", "1"}}; });
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(desired({"0711 a=new", "b=two", "c=three"})));
    REQUIRE(run.transaction->seal({}));
  }  // dropped
  CHECK(os::stat_at(env.folder.fd(), "env/b")->nlink == 1);
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  CHECK(run.counters.files_hashed == 0);
  const Desired to = desired({"a=one", "b=two", "c=new"});
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.empty());
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->accept({}));
  CHECK(differences(to.tree, env.path) == "");
  CHECK(os::xattrs(env.folder.fd(), "env/c")->empty());
}

TEST_CASE("leftovers: a file that was altered in staging is read, found wrong and not used") {
  Env env;
  const Desired to = desired({"a=one", "b=two"});
  std::string tx;
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(to));
  }
  for (const auto& entry : std::filesystem::directory_iterator(env.folder.path(".envsync/env/staging"))) tx = entry.path().filename();
  env.folder.write(".envsync/env/staging/" + tx + "/new/a", "eno");
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.size() == 1);
}

TEST_CASE("leftovers: of another boot nothing is believed unread, whatever the stat cache says") {
  Env env;
  const Desired to = desired({"a=one", "b=two"});
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(to));
  }
  age_staging(env);
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(run.transaction->needs().wanted.empty());
  CHECK(run.transaction->needs().bytes_read == 6);
}

TEST_CASE("space: a tree that cannot fit is refused with both numbers before anything is built") {
  Env env;
  Desired to = desired({"a=x"});
  std::vector<tree::Entry> entries(to.tree.entries().begin(), to.tree.entries().end());
  std::get<tree::File>(entries.back().body).size = u64{1} << 60;
  to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  const std::string text = env.apply(to);
  CHECK(text.starts_with("no_space: no space to stage generation 1 of '" + env.path + "': it needs 1"));
  CHECK(text.find(", free are ") != std::string::npos);
  CHECK_FALSE(env.folder.has("env"));
}
