// SPDX-License-Identifier: MIT
#include "apply/dispatcher.hpp"

namespace envsync::apply {

void Dispatcher::on(Event event) {
  const std::lock_guard lock(mutex_);
  items_.emplace_back(std::move(event));
  changed_.notify_all();
}

Answer Dispatcher::ask(Question question) {
  auto asked = std::make_shared<Asked>();
  asked->question = std::move(question);
  auto answer = asked->answer.get_future();
  {
    const std::lock_guard lock(mutex_);
    items_.emplace_back(asked);
    changed_.notify_all();
  }
  return answer.get();
}

std::optional<std::string> Dispatcher::secret(SecretQuestion question) {
  auto asked = std::make_shared<AskedSecret>();
  asked->question = std::move(question);
  auto answer = asked->answer.get_future();
  {
    const std::lock_guard lock(mutex_);
    items_.emplace_back(asked);
    changed_.notify_all();
  }
  return answer.get();
}

void Dispatcher::pump() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_finished_ || !items_.empty(); });
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    if (auto* event = std::get_if<Event>(&item)) observer_->on(*event);
    else if (auto* asked = std::get_if<std::shared_ptr<Asked>>(&item)) (*asked)->answer.set_value(observer_->ask((*asked)->question));
    else {
      auto& secret = *std::get<std::shared_ptr<AskedSecret>>(item);
      secret.answer.set_value(observer_->secret(secret.question));
    }
  }
}

void Dispatcher::finish() {
  const std::lock_guard lock(mutex_);
  is_finished_ = true;
  changed_.notify_all();
}

}  // namespace envsync::apply
