// SPDX-License-Identifier: Apache-2.0
// A part of a tensor, described independently of any parallel layout: the whole tensor's shape, a box within it, and a
// range of the box's elements in row-major order. A tensor-parallel rank holds a box; a shard of optimizer state is a
// range of one. Data is copied between two layouts in the runs of elements that their parts share. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"

namespace accrue {

struct TensorSlice {
  std::vector<std::int64_t> shape;   ///< of the whole tensor
  std::vector<std::int64_t> offset;  ///< of the box, one per dim
  std::vector<std::int64_t> extent;  ///< of the box, one per dim
  FlatRange range;                   ///< of the box's elements in row-major order; usually all of them

  bool is_whole() const;  ///< the whole tensor
  bool is_box() const;    ///< all elements of the box
  bool operator==(const TensorSlice&) const = default;
};

TensorSlice whole_slice(std::vector<std::int64_t> shape);
/// Returns part `index` of `parts` equal parts along a dim. The dim's size must be a multiple of `parts`.
TensorSlice split_slice(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t index, std::int64_t parts);

/// Returns a rank's part of a parameter as it is stored, without padding.
TensorSlice slice_of(const ParameterShare& share);

/// Whether both are shapes of one tensor: equal, or one merges the other's first two dims. Packed parameters are stored
/// this way: undivided in their own shape [3 D, D], divided in [3, D, D].
bool same_tensor(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);
/// Converts two slices of one tensor to a common shape. Returns false if that is impossible because both are divided.
bool bring_into_one_shape(TensorSlice& a, TensorSlice& b);

/// Number of elements of this shape. Errors (protocol): a negative size, or more elements than 64 bits can count.
Result<std::int64_t> element_count(const std::vector<std::int64_t>& shape);
/// Errors (protocol): the members contradict each other, or the box or the range is outside the tensor. The functions
/// below require checked slices.
Result<void> check_slice(const TensorSlice& slice);

/// Calls run(from, to, size) for every run of elements in both slices of one tensor: `from` and `to` are element
/// offsets within each slice's own values. Ascending in both.
void for_each_common_run(const TensorSlice& from, const TensorSlice& to,
                         const std::function<void(std::int64_t from, std::int64_t to, std::int64_t size)>& run);
/// Number of elements that two slices of one tensor share.
std::int64_t common_elements(const TensorSlice& a, const TensorSlice& b);

}  // namespace accrue
