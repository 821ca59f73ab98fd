// SPDX-License-Identifier: Apache-2.0
// Which bucket is reduced when. A bucket is complete once every parameter that reaches into it has its gradient;
// complete buckets are launched in the layout's order, whatever the order in which backward delivers, because all ranks
// must issue the same collectives in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/shard_layout.h"

namespace accrue {

class BucketReducer {
 public:
  /// layouts: those of the arenas, in order; parameters and buckets are numbered across all of them.
  BucketReducer(const std::vector<FlatLayout>& layouts, std::function<void(std::size_t bucket)> launch);

  /// Parameter i's gradient of this window is complete. Launches the buckets that are due. Throws std::logic_error if
  /// the parameter's bucket was already launched.
  void arrived(std::size_t parameter);
  /// Launches the remaining buckets, in order, and begins the next window.
  void finish();
  /// Forgets what has arrived and begins the next window without launching anything; for a backward that threw.
  void restart();
  /// The parameter whose gradient arrived first in this window; none yet: empty.
  std::optional<std::size_t> first_arrived() const { return first_; }

 private:
  void launch_next();

  std::function<void(std::size_t)> launch_;
  std::vector<std::vector<std::size_t>> buckets_of_;  ///< by parameter: the buckets it reaches into
  std::vector<std::int64_t> members_;                 ///< by bucket: how many parameters reach into it
  std::vector<std::int64_t> pending_;
  std::vector<bool> seen_;
  std::optional<std::size_t> first_;
  std::size_t next_ = 0;
};

}  // namespace accrue
