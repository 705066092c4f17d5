// SPDX-License-Identifier: MIT
// Events of all host threads reach the observer on one thread, in order, under no lock: hosts put them into a queue, the
// caller's thread pumps it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <variant>

#include <envsync/event.hpp>

namespace envsync::apply {

class Dispatcher {
 public:
  explicit Dispatcher(Observer& observer) : observer_(&observer) {}

  /// From any thread.
  void on(Event event);
  /// These two from any thread but the pumping one; they wait for the answer.
  Answer ask(Question question);
  std::optional<std::string> secret(SecretQuestion question);
  /// On the caller's thread: hands events on until finish() was called and the queue is empty.
  void pump();
  /// No host thread will call again.
  void finish();

 private:
  struct Asked {
    Question question;
    std::promise<Answer> answer;
  };
  struct AskedSecret {
    SecretQuestion question;
    std::promise<std::optional<std::string>> answer;
  };
  using Item = std::variant<Event, std::shared_ptr<Asked>, std::shared_ptr<AskedSecret>>;
  Observer* observer_;  // outlives this
  std::mutex mutex_;    // all below
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool is_finished_ = false;
};

}  // namespace envsync::apply
