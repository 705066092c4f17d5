// SPDX-License-Identifier: MIT
#include "apply/feed.hpp"

#include <latch>

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::apply;

namespace {

constexpr std::size_t kPacks = 20;
const std::vector<format::PullItem> kItems{{1, *tree::RelPath::parse("a"), {{}, 1}, 0, 0}};

Buffer pack_of(std::size_t number) {
  Buffer pack(1);
  pack.data()[0] = static_cast<std::byte>(number);
  return pack;
}

/// A place with kPacks packs, which counts how often they were read.
struct Place {
  std::atomic<int> pulls = 0;
  std::function<void(std::size_t)> before = [](std::size_t) {};
  std::optional<Error> error;
  Feed::Pull pull = [this](const format::PullRequest&, const std::vector<format::PullItem>&, const Lanes::PackSink& sink, std::stop_token) -> Result<Arrived> {
    ++pulls;
    for (std::size_t i = 0; i < kPacks; ++i) {
      before(i);
      TRY_STATUS(sink(pack_of(i)));
    }
    if (error) return *error;
    return Arrived::all;
  };
};

struct Got {
  std::vector<std::size_t> packs;
  std::optional<Result<Arrived>> result;
};

const Feed::Patience kEndless{Seconds(3600), Seconds(3600), 0.05};

Got take(Feed& feed, Feed::Ticket ticket, const std::function<Result<void>(std::size_t)>& also = [](std::size_t) { return ok(); }) {
  Got got;
  got.result = feed.pull({}, kItems, [&](const std::shared_ptr<const Buffer>& pack) {
    got.packs.push_back(std::to_integer<std::size_t>(pack->data()[0]));
    return also(got.packs.back());
  }, std::move(ticket), {});
  return got;
}

bool has_all(const Got& got) { return got.result && *got.result && **got.result == Arrived::all && got.packs.size() == kPacks; }

}  // namespace

TEST_CASE("one target alone is served without a pass") {
  Place place;
  Feed feed(place.pull, kEndless);
  CHECK(has_all(take(feed, feed.announce())));
  CHECK(place.pulls == 1);
}

TEST_CASE("eight targets that begin together have one reader") {
  Place place;
  Feed feed(place.pull, kEndless);
  std::vector<Feed::Ticket> tickets;
  for (int i = 0; i < 8; ++i) tickets.push_back(feed.announce());
  std::vector<Got> got(8);
  {
    std::vector<std::jthread> targets;
    for (std::size_t i = 0; i < 8; ++i) targets.emplace_back([&, i] { got[i] = take(feed, std::move(tickets[i])); });
  }
  for (const Got& one : got) CHECK(has_all(one));
  CHECK(place.pulls == 1);
}

TEST_CASE("one that was announced and does not come holds nobody for longer than until it says so") {
  Place place;
  Feed feed(place.pull, kEndless);
  Feed::Ticket failing = feed.announce();
  Feed::Ticket ticket = feed.announce();
  Got got;
  std::jthread target([&] { got = take(feed, std::move(ticket)); });
  failing = {};
  target.join();
  CHECK(has_all(got));
}

TEST_CASE("who comes while a pass runs takes part from there on and hears that it lacks something") {
  Place place;
  std::latch is_running(1), has_joined(1);
  place.before = [&](std::size_t number) {
    if (number != 5) return;
    is_running.count_down();
    has_joined.wait();
  };
  Feed feed(place.pull, Feed::Patience{Seconds(0), Seconds(3600), 0.05});
  Feed::Ticket first = feed.announce(), late = feed.announce();
  Got one, other;
  std::jthread early([&] { one = take(feed, std::move(first)); });
  is_running.wait();
  std::jthread second([&] {
    other = take(feed, std::move(late), [](std::size_t) { return ok(); });
  });
  // It is in the pass once its ticket is gone; the next pack comes after that.
  while (feed.coming() > 0) std::this_thread::yield();
  has_joined.count_down();
  early.join();
  second.join();
  CHECK(has_all(one));
  CHECK(**other.result == Arrived::some);
  CHECK(other.packs.size() == kPacks - 5);
  CHECK(place.pulls == 1);
}

TEST_CASE("one that takes nothing for ever misses packs and holds nobody up") {
  Place place;
  Feed feed(place.pull, Feed::Patience{Seconds(3600), Seconds(0.01), 0});
  Feed::Ticket quick = feed.announce(), slow = feed.announce();
  std::latch quick_is_done(1);
  Got one, other;
  std::jthread lagging([&] {
    other = take(feed, std::move(slow), [&](std::size_t) -> Result<void> {
      quick_is_done.wait();
      return ok();
    });
  });
  one = take(feed, std::move(quick));
  quick_is_done.count_down();
  lagging.join();
  CHECK(has_all(one));
  CHECK(**other.result == Arrived::some);
  CHECK(other.packs.size() < kPacks);
  CHECK(other.packs.front() == 0);
}

TEST_CASE("a target that fails leaves the others alone") {
  Place place;
  Feed feed(place.pull, kEndless);
  Feed::Ticket good = feed.announce(), bad = feed.announce();
  Got one, other;
  std::jthread failing([&] { other = take(feed, std::move(bad), [](std::size_t number) -> Result<void> {
    if (number == 3) return Error{ErrorCode::no_space, "full"};
    return ok();
  }); });
  one = take(feed, std::move(good));
  failing.join();
  CHECK(has_all(one));
  CHECK(other.result->error().code == ErrorCode::no_space);
}

TEST_CASE("an error of the place is everybody's") {
  Place place;
  place.error = Error{ErrorCode::source_changed, "changed"};
  Feed feed(place.pull, kEndless);
  Feed::Ticket a = feed.announce(), b = feed.announce();
  Got one, other;
  std::jthread second([&] { other = take(feed, std::move(b)); });
  one = take(feed, std::move(a));
  second.join();
  CHECK(one.result->error().code == ErrorCode::source_changed);
  CHECK(other.result->error().code == ErrorCode::source_changed);
}

TEST_CASE("targets that want different things have readers of their own") {
  Place place;
  Feed feed(place.pull, Feed::Patience{Seconds(0), Seconds(3600), 0.05});
  Feed::Ticket a = feed.announce(), b = feed.announce();
  Got one;
  std::jthread first([&] { one = take(feed, std::move(a)); });
  format::PullRequest other;
  other.force_level = 3;
  const auto got = feed.pull(other, kItems, [](const std::shared_ptr<const Buffer>&) { return Result<void>(ok()); }, std::move(b), {});
  first.join();
  CHECK(got);
  CHECK(has_all(one));
  CHECK(place.pulls == 2);
}
