// SPDX-License-Identifier: Apache-2.0
#include "bucket_reducer.h"

#include <stdexcept>
#include <utility>

namespace accrue {

BucketReducer::BucketReducer(const std::vector<FlatLayout>& layouts, std::function<void(std::size_t)> launch)
    : launch_(std::move(launch)) {
  for (const FlatLayout& layout : layouts) {
    const std::size_t first = members_.size();
    members_.resize(first + layout.buckets.size(), 0);
    for (const FlatRange& place : layout.parameters) {
      std::vector<std::size_t>& mine = buckets_of_.emplace_back();
      for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
        const FlatRange& bucket = layout.buckets[b];
        if (place.offset >= bucket.offset + bucket.size || bucket.offset >= place.offset + place.size) continue;
        mine.push_back(first + b);
        ++members_[first + b];
      }
    }
  }
  seen_.assign(buckets_of_.size(), false);
  restart();
}

void BucketReducer::restart() {
  pending_ = members_;
  seen_.assign(seen_.size(), false);
  first_.reset();
  next_ = 0;
}

void BucketReducer::launch_next() {
  launch_(next_++);
}

void BucketReducer::arrived(std::size_t parameter) {
  if (!first_) first_ = parameter;
  for (const std::size_t bucket : buckets_of_[parameter]) {
    if (bucket < next_) {
      throw std::logic_error(
          "a gradient arrived after its bucket was reduced: call finish() after each synchronised backward, or wrap "
          "all but the last in no_sync()");
    }
    if (!seen_[parameter]) --pending_[bucket];
  }
  seen_[parameter] = true;
  while (next_ < pending_.size() && pending_[next_] == 0) launch_next();
}

void BucketReducer::finish() {
  while (next_ < pending_.size()) launch_next();
  restart();
}

}  // namespace accrue
