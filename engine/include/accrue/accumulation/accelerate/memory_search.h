// SPDX-License-Identifier: Apache-2.0
// find_executable_batch_size: runs a body with decreasing batches until memory suffices, and compensates with more
// micro-steps. Accelerate shrinks by a tenth and rounds N down, so that a batch of 256 silently becomes 135. Here a
// batch is halved, or shrunk to the next divisor, and batch times N stays exact. Thread: the caller's, which runs the
// body; with an axis the training thread.
// Source: Hugging Face Accelerate 1.15, find_executable_batch_size and its guide to automatic accumulation.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue::accelerate {

enum class ShrinkRule { keep_effective_batch, by_a_tenth };

struct BatchAttempt {
  std::int64_t batch_size = 0;                   ///< samples per micro-step
  std::int64_t gradient_accumulation_steps = 1;  ///< N
  bool operator==(const BatchAttempt&) const = default;
};

/// Exception if no batch fits, not even one sample.
struct NoExecutableBatchSize : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the attempts in order: the starting batch first, with `steps` micro-steps. Errors: throws
/// std::invalid_argument if either is below 1.
std::vector<BatchAttempt> batch_attempts(std::int64_t starting_batch_size, std::int64_t steps, ShrinkRule rule);

/// Calls `body` with one attempt after another until it returns, and returns that attempt. Exceptions other than
/// exhausted memory pass through. With `axis` an attempt must fit on all ranks: collective after each attempt, so a
/// rank whose body runs out of memory must not leave another waiting in a collective of the body. `before` is called
/// before each attempt. Errors: throws NoExecutableBatchSize.
BatchAttempt find_executable_batch_size(std::int64_t starting_batch_size, std::int64_t steps,
                                        const std::function<void(const BatchAttempt&)>& body,
                                        ShrinkRule rule = ShrinkRule::keep_effective_batch,
                                        Communicator* axis = nullptr,
                                        const std::function<void(const BatchAttempt&)>& before = {});

}  // namespace accrue::accelerate
