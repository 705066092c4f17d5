// SPDX-License-Identifier: MIT
#include "format/messages.hpp"

#include "support/message_samples.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace envsync;
using namespace envsync::format;
using namespace envsync::test;

TEST_CASE("every request arrives with every field as it was sent") {
  for (const Request& request : sample_requests()) {
    CAPTURE(request.index());
    const auto back = decode_request(encode(request));
    REQUIRE(back);
    CHECK(*back == request);
  }
}

TEST_CASE("every reply arrives with every field as it was sent") {
  for (const Reply& reply : sample_replies()) {
    CAPTURE(reply.index());
    const auto back = decode_reply(encode(reply));
    REQUIRE(back);
    CHECK(*back == reply);
  }
}

TEST_CASE("the samples hold each kind of request and reply") {
  std::set<std::size_t> requests, replies;
  for (const Request& request : sample_requests()) requests.insert(request.index());
  for (const Reply& reply : sample_replies()) replies.insert(reply.index());
  CHECK(requests.size() == std::variant_size_v<Request>);
  CHECK(replies.size() == std::variant_size_v<Reply>);
}

TEST_CASE("hello and progress arrive as they were sent") {
  const Hello hello{.build = "0.1.0", .exe_digest = "00ff", .pid = 4711};
  CHECK(decode_hello(encode(hello)).value() == hello);
  const Progress progress{.phase = Phase::seal, .files_done = 1, .files_total = 2, .bytes_done = 3, .bytes_total = 4};
  CHECK(decode_progress(encode(progress)).value() == progress);
}

TEST_CASE("an error arrives whole, and one that does not decode is told from one that the peer sent") {
  const Error sent = sample_error();
  const auto back = decode_error(encode(sent));
  REQUIRE(back.has_value());
  CHECK(back->code == sent.code);
  CHECK(back->what == sent.what);
  REQUIRE(back->where);
  CHECK(back->where->file == "fleet.yaml");
  CHECK(back->where->line == 3);
  CHECK(back->where->column == 4);
  CHECK(back->where->length == 5);
  CHECK(back->where->line_text == "path: /srv");
  CHECK(back->causes == sent.causes);
  CHECK(back->at_notes == sent.at_notes);
  CHECK(back->notes == sent.notes);
  CHECK(back->hints == sent.hints);
  CHECK(back->sys_errno == 28);

  const auto damaged = decode_error(as_bytes("\xff\xff"));
  REQUIRE_FALSE(damaged.has_value());
  CHECK(damaged.error().code == ErrorCode::protocol);
  CHECK(damaged.error().what == "the other side sent an error that cannot be read");
}

TEST_CASE("an error longer than its limit arrives cut rather than not at all") {
  Error error(ErrorCode::check_failed, std::string(100'000, 'x'));
  error.causes.assign(500, std::string(20'000, 'y'));
  const auto back = decode_error(encode(error));
  REQUIRE(back.has_value());
  CHECK(back->what.size() == 8192);
  CHECK(back->causes.size() == 100);
}

TEST_CASE("more problems than the limit are cut, their total is kept") {
  ScanReply reply = std::get<ScanReply>(sample_replies()[1]);
  reply.problems.assign(150, ProblemInfo{"p", "is a socket"});
  reply.problems_total = 150;
  const auto back = decode_reply(encode(Reply{reply}));
  REQUIRE(back);
  CHECK(std::get<ScanReply>(*back).problems.size() == 100);
  CHECK(std::get<ScanReply>(*back).problems_total == 150);
}

TEST_CASE("what arrives with a value out of range is refused by the field's name") {
  const auto refused = [](const Request& request, std::string_view field) {
    const auto back = decode_request(encode(request));
    REQUIRE_FALSE(back);
    CHECK(back.error().code == ErrorCode::protocol);
    CHECK(back.error().causes.at(0).find(fmt::format("'{}'", field)) != std::string::npos);
  };
  ScanRequest scan = std::get<ScanRequest>(sample_requests()[0]);
  const auto with = [&scan](auto change) {
    ScanRequest changed = scan;
    change(changed);
    return changed;
  };
  refused(with([](ScanRequest& r) { r.path = "venv"; }), "path");
  refused(with([](ScanRequest& r) { r.path = ""; }), "path");
  refused(with([](ScanRequest& r) { r.path = std::string("/a\0b", 4); }), "path");
  refused(with([](ScanRequest& r) { r.path = "/" + std::string(20'000, 'a'); }), "path");
  refused(with([](ScanRequest& r) { r.role = static_cast<Role>(2); }), "role");
  refused(with([](ScanRequest& r) { r.lock = static_cast<LockMode>(9); }), "lock");
  refused(with([](ScanRequest& r) { r.lock_wait_seconds = -1; }), "lock_wait_seconds");
  refused(with([](ScanRequest& r) { r.lock_wait_seconds = std::numeric_limits<double>::quiet_NaN(); }), "lock_wait_seconds");
  refused(with([](ScanRequest& r) { r.exclude.assign(10'001, "a"); }), "exclude");
  refused(with([](ScanRequest& r) { r.run = std::string(70'000, 'a'); }), "run");
  refused(TreeRequest{.kind = TreeKind::observed, .record = 0, .bases = std::vector<Digest>(9)}, "bases");
  refused(PullRequest{.force_level = 23}, "force_level");
  refused(FilesRequest{.paths = {"../etc/passwd"}}, "paths");
  refused(FilesRequest{.paths = {"/etc/passwd"}}, "paths");
  refused(FilesRequest{.paths = {""}}, "paths");
  StageRequest stage = std::get<StageRequest>(sample_requests()[4]);
  stage.drop_unmanaged = {""};  // would drop everything
  refused(stage, "drop_unmanaged");
}

TEST_CASE("records that are not ascending are refused") {
  for (const auto& numbers : {std::pair{2U, 1U}, std::pair{2U, 2U}}) {
    const auto back = decode_reply(encode(Reply{RecordsReply{.records = {sample_record(numbers.first), sample_record(numbers.second)}}}));
    REQUIRE_FALSE(back);
    CHECK(back.error().causes.at(0) == "its field 'records' is not ascending");
  }
}

TEST_CASE("a reply's path that leaves the root is refused") {
  CHECK_FALSE(decode_reply(encode(Reply{FilesReply{.files = {{"../x", ""}}}})));
  CHECK_FALSE(decode_reply(encode(Reply{FilesReply{.files = {{"", ""}}}})));
  CHECK_FALSE(decode_reply(encode(Reply{FilesReply{.files = {{"a", std::string((1 << 20) + 1, 'x')}}}})));
}

TEST_CASE("nothing at all is no request and no reply") {
  CHECK_FALSE(decode_request({}));
  CHECK_FALSE(decode_reply({}));
}

TEST_CASE("forty thousand prefixes of one stage request stay far below a control message") {
  StageRequest stage = std::get<StageRequest>(sample_requests()[4]);
  stage.drop_unmanaged.clear();
  for (int i = 0; i < 40'000; ++i) {
    stage.drop_unmanaged.push_back(fmt::format("lib/python3.12/site-packages/torch/_inductor/codegen/__pycache__/module_{:05}.", i));
  }
  const Bytes bytes = encode(Request{stage});
  CHECK(bytes.size() < 300'000);
  CHECK(std::get<StageRequest>(decode_request(bytes).value()) == stage);
}
