// SPDX-License-Identifier: Apache-2.0
#include "call_queue.h"

#include <exception>
#include <utility>

#include "accrue/run/base/monotonic_clock.h"

namespace accrue {

struct CallQueue::Entry {
  std::function<void()> call;
  bool ended = false;
  std::exception_ptr failure;
  std::int64_t end_ns = 0;
};

class CallQueue::Pending final : public PendingCall {
 public:
  Pending(CallQueue& queue, std::shared_ptr<Entry> entry) : queue_(queue), entry_(std::move(entry)) {}

  std::int64_t wait() override {
    std::unique_lock lock(queue_.mutex_);
    queue_.changed_.wait(lock, [this] { return entry_->ended; });
    if (entry_->failure) std::rethrow_exception(entry_->failure);
    return entry_->end_ns;
  }

 private:
  CallQueue& queue_;
  std::shared_ptr<Entry> entry_;
};

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    waiting_.clear();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<PendingCall> CallQueue::put(std::function<void()> call) {
  auto entry = std::make_shared<Entry>();
  entry->call = std::move(call);
  const std::lock_guard lock(mutex_);
  waiting_.push_back(entry);
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return std::make_unique<Pending>(*this, std::move(entry));
}

bool CallQueue::idle() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_;
}

void CallQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const auto entry = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    try {
      entry->call();
    } catch (...) {
      entry->failure = std::current_exception();
    }
    entry->call = nullptr;  // its tensors belong to the caller again
    entry->end_ns = monotonic_ns();
    lock.lock();
    busy_ = false;
    entry->ended = true;
    changed_.notify_all();
  }
}

}  // namespace accrue
