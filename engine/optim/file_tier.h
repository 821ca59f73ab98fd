// SPDX-License-Identifier: Apache-2.0
// Optimizer state in a file: a tensor whose first elements are pages of a file and the others memory, contiguous for
// its readers. The kernel writes pages back if memory is short. The file has no name, so it disappears with the process
// in any case. Its space is allocated at creation, so a full disk is reported then and never later.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Number of elements of each state in files: floor(fraction * numel), for CPUAdam and HybridAdam.
std::int64_t elements_in_files(const OptimizerSpec& spec, std::int64_t numel);

/// Makes zeros, [numel], on the CPU. The first `in_file` elements are in a file in `dir` (rounded up to whole pages).
/// Errors: throws ResultError (disk) with the folder and the reason; nothing is left behind.
at::Tensor tiered_zeros(std::int64_t numel, std::int64_t in_file, at::TensorOptions options, const std::string& dir);

/// Requests a range's pages before their use; the second function releases them. Advice only: never fails.
void will_need(const at::Tensor& tensor, const FlatRange& range);
void not_soon(const at::Tensor& tensor, const FlatRange& range);

/// Elements of a window: 32 MiB of a float32 state. With two moments, the window in use and the next one take 128 MiB
/// in for_tier_windows(), whatever the size of the files. step_with_files() does not cut parameters, so there a window
/// may be longer by one parameter.
inline constexpr std::int64_t elements_per_tier_window = 1 << 23;

/// Calls use(range) over [0, numel) in order, in windows within the file part: while one is in use, the next is read
/// ahead. The part in memory is one last range. An update of a window must be elementwise: parameters are cut.
template <typename Use>
void for_tier_windows(std::int64_t numel, std::int64_t in_files, const std::vector<at::Tensor>& states,
                      const Use& use) {
  const auto window_at = [&](std::int64_t begin) {
    return FlatRange{begin, std::min(elements_per_tier_window, in_files - begin)};
  };
  for (std::int64_t begin = 0; begin < in_files; begin += elements_per_tier_window) {
    const std::int64_t next = begin + elements_per_tier_window;
    for (const at::Tensor& state : states)
      if (next < in_files) will_need(state, window_at(next));
    use(window_at(begin));
    for (const at::Tensor& state : states) not_soon(state, window_at(begin));
  }
  if (in_files < numel) use(FlatRange{in_files, numel - in_files});
}

}  // namespace accrue
