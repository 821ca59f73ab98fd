// SPDX-License-Identifier: Apache-2.0
#include "train/batch_feed.h"

namespace accrue {

std::vector<std::int64_t> BatchFeed::samples(std::int64_t epoch, std::int64_t batch) {
  const SampleOrder& order = plan_.order;
  if (!order.cyclic) return order.batch(epoch, batch, rank_);
  if (!cyclic_) cyclic_ = order.sampler(rank_);
  cyclic_->continue_after(order.consumed_before(epoch, batch));
  return cyclic_->next();
}

Batch BatchFeed::fetch(std::int64_t epoch, std::int64_t batch) {
  return data_.batch(Split::train, samples(epoch, batch));
}

void BatchFeed::drain(const MicroPlan& last) {
  if (!fetches_dropped(plan_.knobs)) return;
  for (std::int64_t next = last.batch + 1; next < plan_.window.batches_per_epoch; ++next) fetch(last.epoch, next);
}

}  // namespace accrue
