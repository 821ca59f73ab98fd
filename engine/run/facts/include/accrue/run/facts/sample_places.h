// SPDX-License-Identifier: Apache-2.0
// Division of the data into training and evaluation samples: evaluation takes the last ones, or with
// data.validation_shuffle a random selection. The planner counts by it, and the ranks' loaders read by it.
#pragma once

#include <cstdint>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/sample_order.h"

namespace accrue {

class SamplePlaces {
 public:
  explicit SamplePlaces(const DataFacts& facts)
      : training_(facts.samples),
        shuffled_(facts.validation_shuffled),
        drawn_(facts.samples + facts.validation_samples, split_seed, 0) {}

  /// Place in the data of the i-th sample of a split.
  std::int64_t training(std::int64_t i) const { return shuffled_ ? drawn_(i) : i; }
  std::int64_t validation(std::int64_t i) const { return training(training_ + i); }
  std::int64_t of(bool trained, std::int64_t i) const { return trained ? training(i) : validation(i); }

 private:
  /// Independent of the run's seed, so that runs with different seeds train on the same samples.
  static constexpr std::uint64_t split_seed = 0;
  std::int64_t training_;
  bool shuffled_;
  SamplePermutation drawn_;
};

}  // namespace accrue
