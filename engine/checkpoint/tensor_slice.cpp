// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/tensor_slice.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace accrue {
namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes, std::size_t first = 0) {
  std::int64_t count = 1;
  for (std::size_t dim = first; dim < sizes.size(); ++dim) count *= sizes[dim];
  return count;
}

/// Intersection of two boxes of one tensor, cut into rows: runs that are contiguous in both boxes.
struct SharedBox {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  std::size_t outer = 0;  ///< outer dims, which are walked; the others are within a row
  std::int64_t row = 1;   ///< elements of a row
  bool empty = false;

  SharedBox(const TensorSlice& a, const TensorSlice& b) : outer(a.shape.size()) {
    for (std::size_t dim = 0; dim < a.shape.size(); ++dim) {
      low.push_back(std::max(a.offset[dim], b.offset[dim]));
      high.push_back(std::min(a.offset[dim] + a.extent[dim], b.offset[dim] + b.extent[dim]));
      empty = empty || low[dim] >= high[dim];
    }
    // A dim belongs to the row if both boxes hold all of the dims after it.
    bool whole = true;
    while (outer > 0 && whole && !empty) {
      --outer;
      const std::int64_t size = high[outer] - low[outer];
      row *= size;
      whole = size == a.extent[outer] && size == b.extent[outer];
    }
  }
};

/// Index of a tensor's element within a box, in row-major order.
std::int64_t place_in(const TensorSlice& slice, const std::vector<std::int64_t>& at) {
  std::int64_t place = 0;
  for (std::size_t dim = 0; dim < at.size(); ++dim) place = place * slice.extent[dim] + (at[dim] - slice.offset[dim]);
  return place;
}

/// Moves to the next row; false after the last.
bool next_row(const SharedBox& shared, std::vector<std::int64_t>& at) {
  for (std::size_t dim = shared.outer; dim-- > 0;) {
    if (++at[dim] < shared.high[dim]) return true;
    at[dim] = shared.low[dim];
  }
  return false;
}

}  // namespace

bool TensorSlice::is_box() const {
  return range.offset == 0 && range.size == product(extent);
}

bool TensorSlice::is_whole() const {
  return extent == shape && is_box();
}

TensorSlice whole_slice(std::vector<std::int64_t> shape) {
  TensorSlice slice{.shape = shape, .offset = std::vector<std::int64_t>(shape.size(), 0), .extent = shape, .range = {}};
  slice.range.size = product(shape);
  return slice;
}

TensorSlice split_slice(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t index, std::int64_t parts) {
  TensorSlice slice = whole_slice(std::move(shape));
  slice.extent[dim] = slice.shape[dim] / parts;
  slice.offset[dim] = index * slice.extent[dim];
  slice.range.size = product(slice.extent);
  return slice;
}

TensorSlice slice_of(const ParameterShare& share) {
  if (!share.divided) {
    std::vector<std::int64_t> shape = share.shape;
    if (share.padded) shape.front() = share.extent.front();
    return whole_slice(std::move(shape));
  }
  return {.shape = share.whole,
          .offset = share.offset,
          .extent = share.extent,
          .range = {.offset = 0, .size = product(share.extent)}};
}

bool same_tensor(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.size() > b.size()) return same_tensor(b, a);
  if (a.size() == b.size()) return a == b;
  return !a.empty() && a.size() + 1 == b.size() && a.front() == b[0] * b[1] &&
         std::equal(a.begin() + 1, a.end(), b.begin() + 2);
}

bool bring_into_one_shape(TensorSlice& a, TensorSlice& b) {
  if (a.shape == b.shape) return true;
  // In a box that is the whole tensor, elements have the same index in every shape.
  const auto reshape = [](TensorSlice& slice, const std::vector<std::int64_t>& shape) {
    const FlatRange range = slice.range;
    slice = whole_slice(shape);
    slice.range = range;
  };
  if (a.extent == a.shape) {
    reshape(a, b.shape);
  } else if (b.extent == b.shape) {
    reshape(b, a.shape);
  } else {
    return false;
  }
  return true;
}

Result<std::int64_t> element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return fail(ErrorCode::protocol, "a shape with a size of " + std::to_string(size) + " has no number of elements");
  return count;
}

Result<void> check_slice(const TensorSlice& slice) {
  const std::size_t dims = slice.shape.size();
  if (slice.offset.size() != dims || slice.extent.size() != dims)
    return fail(ErrorCode::protocol, "shape, offset and extent have different numbers of dims");
  if (auto count = element_count(slice.shape); !count) return tl::unexpected(count.error());
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const std::int64_t size = slice.shape[dim];
    const std::int64_t offset = slice.offset[dim];
    const std::int64_t extent = slice.extent[dim];
    if (offset < 0 || extent < 0 || offset > size || extent > size - offset)
      return fail(ErrorCode::protocol, "dim " + std::to_string(dim) + " of the part, from " + std::to_string(offset) +
                                           " for " + std::to_string(extent) + ", lies outside a size of " +
                                           std::to_string(size));
  }
  const std::int64_t elements = product(slice.extent);
  const auto [offset, size] = slice.range;
  if (offset < 0 || size < 0 || offset > elements || size > elements - offset)
    return fail(ErrorCode::protocol, "a range from " + std::to_string(offset) + " for " + std::to_string(size) +
                                         " lies outside the part's " + std::to_string(elements) + " elements");
  return {};
}

void for_each_common_run(const TensorSlice& from, const TensorSlice& to,
                         const std::function<void(std::int64_t from, std::int64_t to, std::int64_t size)>& run) {
  const SharedBox shared(from, to);
  if (shared.empty) return;
  std::vector<std::int64_t> at = shared.low;
  do {
    // The row's index in each slice's values; negative or past the end if a range excludes part of the row.
    const std::int64_t source = place_in(from, at) - from.range.offset;
    const std::int64_t target = place_in(to, at) - to.range.offset;
    const std::int64_t begin = std::max({std::int64_t{0}, -source, -target});
    const std::int64_t end = std::min({shared.row, from.range.size - source, to.range.size - target});
    if (begin < end) run(source + begin, target + begin, end - begin);
  } while (next_row(shared, at));
}

std::int64_t common_elements(const TensorSlice& a, const TensorSlice& b) {
  std::int64_t count = 0;
  for_each_common_run(a, b, [&count](std::int64_t, std::int64_t, std::int64_t size) { count += size; });
  return count;
}

}  // namespace accrue
