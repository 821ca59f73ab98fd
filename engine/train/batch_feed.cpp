// SPDX-License-Identifier: Apache-2.0
#include "train/batch_feed.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace accrue {

Batch BatchFeed::fetch(std::int64_t epoch, std::int64_t batch) {
  return data_.batch(Split::train, plan_.order.batch(epoch, batch, axis_.rank()));
}

void BatchFeed::look_ahead(AccumulationWindow& window) {
  const auto coming = window.peek();
  const WindowPosition& at = window.position();
  if (!plan_.spec.data.stream || !coming) return;
  const bool begins = coming->position == 0 || coming->batch == 0;
  if (!begins || at.epoch_length > 0) return;
  if (coming->epoch != epoch_) {
    ahead_.clear();
    at_end_ = false;
    epoch_ = coming->epoch;
  }
  const auto wanted = static_cast<std::size_t>(coming->window_size - coming->position + 1);
  while (!at_end_ && ahead_.size() < wanted) {
    const std::int64_t next = coming->batch + static_cast<std::int64_t>(ahead_.size());
    at_end_ = next >= plan_.order.batches_per_epoch();
    if (!at_end_) ahead_.push_back(fetch(epoch_, next));
  }
  at::Tensor mine = at::empty({1}, at::kLong);
  at::Tensor all = at::empty({axis_.size(), 1}, at::kLong);
  mine.fill_(static_cast<std::int64_t>(ahead_.size()));
  axis_.all_gather(all, mine);
  const std::int64_t left = all.max().item<std::int64_t>();  // a rank without a batch takes empty micro-steps
  if (left < static_cast<std::int64_t>(wanted)) window.announce_end(left);
}

Batch BatchFeed::batch(const MicroPlan& micro) {
  if (!plan_.spec.data.stream || ahead_.empty()) return fetch(micro.epoch, micro.batch);
  Batch batch = std::move(ahead_.front());
  ahead_.pop_front();
  return batch;
}

}  // namespace accrue
