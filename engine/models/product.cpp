// SPDX-License-Identifier: Apache-2.0
#include "models/product.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/row_tasks.h"
#include "parallel/direct_gradient.h"

namespace accrue {

namespace {

// A block of A (block_rows x block_depth) fills about half of a 512 KiB second-level cache, a panel of B most of a
// 32 KiB first-level one.
constexpr std::int64_t block_rows = 192;
constexpr std::int64_t block_depth = 384;

ProductPath path_of(const at::Tensor& into) {
  return product_path(into.size(0), tiles_pay());
}

template <typename T>
void run(const GemmTask<T>& task) {
  const auto& kernels = block_kernels<T>();
  const std::int64_t parts = (task.k + block_depth - 1) / block_depth, depth = (task.k + parts - 1) / parts;
  const std::int64_t panels = (task.n + kernels.tile_columns - 1) / kernels.tile_columns;
  const auto type = c10::CppTypeToScalarType<T>::value;
  const at::Tensor packed = activation_pool().take({panels * kernels.tile_columns * depth}, type);
  T* const packed_b = packed.template mutable_data_ptr<T>();
  for (std::int64_t k = 0; k < task.k; k += depth) {
    const std::int64_t here = std::min(depth, task.k - k);
    at::parallel_for(0, panels, task_grain(kernels.tile_columns * here), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t j = begin * kernels.tile_columns, last = std::min(task.n, end * kernels.tile_columns);
      kernels.gemm_pack(task, {.j = j, .columns = last - j, .k = k, .depth = here}, packed_b + j * here);
    });
    const std::int64_t blocks = (task.m + block_rows - 1) / block_rows;
    at::parallel_for(0, blocks, task_grain(block_rows * task.n * here / 16), [&](std::int64_t begin, std::int64_t end) {
      const at::Tensor scratch = activation_pool().take({(block_rows + kernels.tile_rows) * here + 16}, type);
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t i = block * block_rows;
        kernels.gemm_rows(task,
                          {.i = i, .rows = std::min(block_rows, task.m - i), .columns = task.n, .k = k, .depth = here},
                          packed_b, scratch.template mutable_data_ptr<T>());
      }
    });
  }
}

void multiply(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add) {
  AT_DISPATCH_FLOATING_TYPES(into.scalar_type(), "product", [&] {
    run(GemmTask<scalar_t>{into.size(0), into.size(1), a.size(1), a.const_data_ptr<scalar_t>(), a.stride(0),
                           a.stride(1), b.const_data_ptr<scalar_t>(), b.stride(0), b.stride(1),
                           into.mutable_data_ptr<scalar_t>(), into.stride(0), add});
  });
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor result = activation_pool().take({a.size(0), b.size(1)}, a.scalar_type());
  product_into(result, a, b);
  return result;
}

void product_into(at::Tensor& into, const at::Tensor& a, const at::Tensor& b) {
  product_into(into, a, b, path_of(into));
}

void product_into(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, ProductPath path) {
  if (path == ProductPath::tiles) return multiply(into, a, b, false);
  at::mm_out(into, a, b);
}

at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& x) {
  at::Tensor place = gradient_place(weight);
  if (!place.defined()) return product(dy.t(), x);
  if (place.stride(1) == 1) {
    add_product(place, dy.t(), x);
  } else {
    add_widened(place, dy.t(), x);
  }
  return {};
}

void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b) {
  if (path_of(into) == ProductPath::tiles) return multiply(into, a, b, true);
  at::addmm_out(into, into, a, b);
}

}  // namespace accrue
