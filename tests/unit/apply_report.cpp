// SPDX-License-Identifier: MIT
#include "apply/report.hpp"

#include <doctest/doctest.h>

#include "apply/dispatcher.hpp"
#include "apply/engine_impl.hpp"

using namespace envsync;

namespace {

Outcome failed(ErrorCode code) {
  Outcome outcome;
  outcome.kind = OutcomeKind::failed;
  outcome.error = Error{code, "x"};
  return outcome;
}
Outcome applied() {
  Outcome outcome;
  outcome.kind = OutcomeKind::applied;
  return outcome;
}

}  // namespace

TEST_CASE("hosts that fail alike give their code, a mixture 1, and any success beside a failure 3") {
  using apply::exit_code;
  CHECK(exit_code("apply", {}) == 0);
  CHECK(exit_code("apply", {applied(), applied()}) == 0);
  CHECK(exit_code("apply", {failed(ErrorCode::connect_failed), failed(ErrorCode::auth_failed)}) == 12);
  CHECK(exit_code("apply", {failed(ErrorCode::connect_failed), failed(ErrorCode::drift_refused)}) == 1);
  CHECK(exit_code("apply", {failed(ErrorCode::connect_failed), applied()}) == 3);
  CHECK(exit_code("apply", {failed(ErrorCode::interrupted)}) == 130);
}

TEST_CASE("verify gives 4 where a host differs") {
  Outcome differs = applied();
  differs.files = 2;
  CHECK(apply::exit_code("verify", {applied(), differs}) == 4);
  CHECK(apply::exit_code("apply", {differs}) == 0);
}

TEST_CASE("events of many threads reach the observer on the pumping thread, and questions get their answers") {
  struct Listener final : Observer {
    std::thread::id pumping = std::this_thread::get_id();
    std::size_t events = 0;
    bool is_elsewhere = false;
    void on(const Event&) override {
      ++events;
      is_elsewhere |= std::this_thread::get_id() != pumping;
    }
    Answer ask(const Question&) override {
      is_elsewhere |= std::this_thread::get_id() != pumping;
      return Answer::yes;
    }
  } listener;
  apply::Dispatcher dispatcher(listener);
  std::jthread work([&] {
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < 50; ++i) dispatcher.on(PhaseEvent{});
          CHECK(dispatcher.ask({}) == Answer::yes);
        });
    }
    dispatcher.finish();
  });
  dispatcher.pump();
  CHECK(listener.events == 200);
  CHECK_FALSE(listener.is_elsewhere);
}

TEST_CASE("a glob that names no target is an error that lists them") {
  manifest::Manifest manifest;
  for (const char* name : {"web-01", "web-02", "db"}) manifest.targets.emplace_back().name = name;
  auto chosen = apply::select_hosts(manifest, {"web-*"});
  REQUIRE(chosen);
  CHECK(chosen->size() == 2);
  auto none = apply::select_hosts(manifest, {"web-*", "gpu*"});
  REQUIRE_FALSE(none);
  CHECK(none.error().notes.front() == "the targets are web-01, web-02, db");
}
