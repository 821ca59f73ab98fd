// SPDX-License-Identifier: Apache-2.0
#include "bucket_reducer.h"

#include <stdexcept>
#include <utility>

namespace accrue {

BucketReducer::BucketReducer(const FlatLayout& layout, std::function<void(std::size_t)> launch)
    : launch_(std::move(launch)),
      buckets_of_(layout.parameters.size()),
      members_(layout.buckets.size(), 0),
      seen_(layout.parameters.size(), false) {
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const FlatRange& place = layout.parameters[p];
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
      const FlatRange& bucket = layout.buckets[b];
      if (place.offset < bucket.offset + bucket.size && bucket.offset < place.offset + place.size) {
        buckets_of_[p].push_back(b);
        ++members_[b];
      }
    }
  }
  begin_window();
}

void BucketReducer::begin_window() {
  pending_ = members_;
  seen_.assign(seen_.size(), false);
  next_ = 0;
}

void BucketReducer::launch_next() {
  launch_(next_++);
}

void BucketReducer::arrived(std::size_t parameter) {
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
  begin_window();
}

}  // namespace accrue
