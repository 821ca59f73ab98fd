// SPDX-License-Identifier: Apache-2.0
// Order of bucket reductions. A bucket is complete once every parameter in it has its gradient. Complete buckets are
// launched in the layout's order, whatever the order of backward, because all ranks must make the same collectives in
// the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/cost/shard_layout.h"

namespace accrue {

class BucketReducer {
 public:
  /// layouts: those of the arenas, in order; parameters and buckets are numbered across all of them.
  BucketReducer(const std::vector<FlatLayout>& layouts, std::function<void(std::size_t bucket)> launch);

  /// Marks parameter i's gradient of this window as complete, and launches the buckets that are due. Throws
  /// std::logic_error if the parameter's bucket was already launched.
  void arrived(std::size_t parameter);
  /// Launches the remaining buckets, in order, and begins the next window.
  void finish();
  /// Forgets the arrived gradients and begins the next window without launching anything; for a backward that threw.
  void restart();
  /// The first parameter of this window whose gradient arrived; empty: none yet.
  std::optional<std::size_t> first_arrived() const { return first_; }

 private:
  void launch_next();

  std::function<void(std::size_t)> launch_;
  std::vector<std::vector<std::size_t>> buckets_of_;  ///< by parameter: its buckets
  std::vector<std::int64_t> members_;                 ///< by bucket: its number of parameters
  std::vector<std::int64_t> pending_;
  std::vector<bool> seen_;
  std::optional<std::size_t> first_;
  std::size_t next_ = 0;
};

}  // namespace accrue
