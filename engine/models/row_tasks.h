// SPDX-License-Identifier: Apache-2.0
// Distribution of rows over threads in the fused blocks. Sums over rows are computed in a fixed number of parts that
// are added in order. So a result does not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/lent_threads.h"

namespace accrue {

constexpr std::int64_t rows_per_task = 64;

/// Minimum steps of a kernel per task: waking threads costs some ten microseconds.
constexpr std::int64_t steps_per_task = 1 << 16;

/// Number of items of `steps` steps per task.
inline std::int64_t task_grain(std::int64_t steps) {
  return std::max<std::int64_t>(1, steps_per_task / std::max<std::int64_t>(steps, 1));
}

/// Runs task(begin, end) over [0, rows) of `width` numbers.
template <typename Task>
void over_rows(std::int64_t rows, std::int64_t width, const Task& task) {
  over_lent_threads(0, rows, task_grain(width), task);
}

/// Runs task(begin, end, sums) over [0, rows) with sums [width] private to a part; returns their total.
template <typename T, typename Task>
std::vector<T> summed_over_rows(std::int64_t rows, std::int64_t width, const Task& task) {
  constexpr std::int64_t most_parts = 16;
  const std::int64_t part_rows = std::max(rows_per_task, (rows + most_parts - 1) / most_parts);
  const std::int64_t parts = (rows + part_rows - 1) / part_rows;
  std::vector<T> sums(static_cast<std::size_t>(std::max<std::int64_t>(parts, 1) * width));
  over_lent_threads(0, parts, task_grain(part_rows * width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part) {
      task(part * part_rows, std::min(rows, (part + 1) * part_rows), sums.data() + part * width);
    }
  });
  for (std::int64_t part = 1; part < parts; ++part) {
    for (std::int64_t i = 0; i < width; ++i)
      sums[static_cast<std::size_t>(i)] += sums[static_cast<std::size_t>(part * width + i)];
  }
  sums.resize(static_cast<std::size_t>(width));
  return sums;
}

/// Copies numbers [begin, begin + count) into a tensor.
template <typename T>
at::Tensor tensor_of(const std::vector<T>& numbers, std::int64_t begin, std::int64_t count) {
  at::Tensor tensor = at::empty({count}, at::TensorOptions(c10::CppTypeToScalarType<T>::value));
  std::copy_n(numbers.data() + begin, count, tensor.template mutable_data_ptr<T>());
  return tensor;
}

}  // namespace accrue
