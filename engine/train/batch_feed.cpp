// SPDX-License-Identifier: Apache-2.0
#include "train/batch_feed.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace accrue {

Batch BatchFeed::fetch(std::int64_t epoch, std::int64_t batch) {
  return data_.batch(Split::train, plan_.order.batch(epoch, batch, axis_.rank()));
}

void BatchFeed::look_ahead(AccumulationWindow& window) {
  if (!plan_.spec.data.stream) return;
  // An announced end may leave nothing to train on in its epoch: then the next one is looked at.
  while (window.settle() && window.position().epoch_length == 0) {
    AccumulationWindow next = window;
    const MicroPlan coming = next.next().value();
    const bool begins = coming.position == 0 || coming.batch == 0;
    if (!begins) return;
    // As many as the window takes, and one more, which tells whether it ends the epoch. A tail that is dropped ends it
    // earlier: where fewer are left than the N of the window after it.
    const std::int64_t rest = coming.window_size - coming.position;
    const std::int64_t wanted = rest + (drops_tail(plan_.knobs) ? steps_after(next, rest) : 1);
    const std::int64_t left = read_ahead(coming, wanted);
    if (left >= wanted) return;
    window.announce_end(left);
  }
}

std::int64_t BatchFeed::steps_after(AccumulationWindow window, std::int64_t rest) {
  for (std::int64_t passed = 1; passed < rest; ++passed) window.next();
  return window.next() ? window.position().steps : 1;
}

void BatchFeed::forget_before(std::int64_t epoch, std::int64_t batch) {
  if (epoch != epoch_) {
    ahead_.clear();
    at_end_ = false;
    epoch_ = epoch;
  }
  while (!ahead_.empty() && first_ < batch) {
    ahead_.pop_front();
    ++first_;
  }
  if (ahead_.empty()) first_ = batch;
}

std::int64_t BatchFeed::read_ahead(const MicroPlan& coming, std::int64_t wanted) {
  forget_before(coming.epoch, coming.batch);
  while (!at_end_ && std::ssize(ahead_) < wanted) {
    const std::int64_t next = coming.batch + std::ssize(ahead_);
    at_end_ = next >= plan_.window.batches_per_epoch;
    if (!at_end_) ahead_.push_back(fetch(epoch_, next));
  }
  at::Tensor mine = at::empty({1}, at::kLong);
  at::Tensor all = at::empty({axis_.size(), 1}, at::kLong);
  mine.fill_(std::ssize(ahead_));
  axis_.all_gather(all, mine);
  return all.max().item<std::int64_t>();  // a rank without a batch takes empty micro-steps
}

Batch BatchFeed::batch(const MicroPlan& micro) {
  // A window that is counted first and crosses epochs asks for batches of the next one, which nobody has read yet.
  if (!plan_.spec.data.stream || micro.epoch != epoch_) return fetch(micro.epoch, micro.batch);
  forget_before(micro.epoch, micro.batch);
  if (ahead_.empty()) return fetch(micro.epoch, micro.batch);
  Batch batch = std::move(ahead_.front());
  ahead_.pop_front();
  ++first_;
  return batch;
}

void BatchFeed::drain(const MicroPlan& last) {
  if (plan_.knobs.tail != EpochTail::drop_drain) return;
  const std::int64_t read = last.epoch == epoch_ ? first_ + std::ssize(ahead_) : 0;
  for (std::int64_t next = std::max(last.batch + 1, read); next < plan_.window.batches_per_epoch; ++next)
    fetch(last.epoch, next);
}

}  // namespace accrue
