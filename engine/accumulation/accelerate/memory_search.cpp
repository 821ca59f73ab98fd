// SPDX-License-Identifier: Apache-2.0
// A smaller batch changes the training unless the number of micro-steps compensates exactly. So only batch sizes that
// divide the effective batch are tried: each time the largest that is at most half of the last. For a power of two that
// is halving. Compared with shrinking by a tenth, the batch may be up to half as large as memory allows.
#include "accrue/accumulation/accelerate/memory_search.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <array>
#include <exception>
#include <new>
#include <string>

namespace accrue::accelerate {
namespace {

std::int64_t next_divisor(std::int64_t effective, std::int64_t at_most) {
  while (at_most > 1 && effective % at_most != 0) --at_most;
  return at_most;
}

/// Whether the body ran out of memory on any rank.
bool any_rank(bool failed, Communicator* axis) {
  if (axis == nullptr || axis->size() == 1) return failed;
  at::Tensor flag = at::scalar_tensor(failed ? 1.0 : 0.0, at::kDouble).reshape({1});
  axis->all_reduce(flag, Reduce::max);
  return flag.item<double>() > 0;
}

/// On a device, on the host, or in cuDNN's message.
bool is_out_of_memory(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&failure) != nullptr) return true;
  constexpr std::array phrases = {" out of memory.", "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",
                                  "DefaultCPUAllocator: can't allocate memory"};
  const std::string text = failure.what();
  for (const char* phrase : phrases)
    if (text.find(phrase) != std::string::npos) return true;
  return false;
}

bool runs_out(const std::function<void(const BatchAttempt&)>& body, const BatchAttempt& attempt) {
  try {
    body(attempt);
  } catch (const std::exception& failure) {
    if (!is_out_of_memory(failure)) throw;
    return true;
  }
  return false;
}

}  // namespace

std::vector<BatchAttempt> batch_attempts(std::int64_t starting_batch_size, std::int64_t steps, ShrinkRule rule) {
  if (starting_batch_size < 1 || steps < 1)
    throw std::invalid_argument(
        "find_executable_batch_size: the starting batch size and the number of steps are 1 or "
        "more; they are " +
        std::to_string(starting_batch_size) + " and " + std::to_string(steps));
  const std::int64_t effective = starting_batch_size * steps;
  std::vector<BatchAttempt> attempts;
  for (std::int64_t size = starting_batch_size; size >= 1;) {
    const bool exact = rule == ShrinkRule::keep_effective_batch;
    // keep_effective_batch: b N stays constant, since b divides it. Otherwise, as in the original, N is
    // floor(b_0 / b) N_0.
    attempts.push_back({size, exact ? effective / size : starting_batch_size / size * steps});
    if (exact)
      size = size == 1 ? 0 : next_divisor(effective, size / 2);
    else
      size = static_cast<std::int64_t>(static_cast<double>(size) * 0.9);
  }
  return attempts;
}

BatchAttempt find_executable_batch_size(std::int64_t starting_batch_size, std::int64_t steps,
                                        const std::function<void(const BatchAttempt&)>& body, ShrinkRule rule,
                                        Communicator* axis, const std::function<void(const BatchAttempt&)>& before) {
  for (const BatchAttempt& attempt : batch_attempts(starting_batch_size, steps, rule)) {
    if (before) before(attempt);
    if (!any_rank(runs_out(body, attempt), axis)) return attempt;
  }
  throw NoExecutableBatchSize("find_executable_batch_size: memory does not suffice for a batch of one sample, from " +
                              std::to_string(starting_batch_size) + " downwards; use a smaller model or sample");
}

}  // namespace accrue::accelerate
