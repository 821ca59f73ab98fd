// SPDX-License-Identifier: Apache-2.0
#include "models/product.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/row_tasks.h"
#include "parallel/direct_gradient.h"

namespace accrue {

namespace {

// A block of A (block_rows x block_depth) fills about half of a 512 KiB second-level cache. A panel of B fills most of
// a 32 KiB first-level one.
constexpr std::int64_t block_rows = 192;
constexpr std::int64_t block_depth = 384;

/// Multiplications below which a piece of a product is not worth a thread: about a millisecond.
constexpr std::int64_t steps_per_piece = std::int64_t{1} << 26;
/// Pieces have a multiple of this many rows, so each begins at a cache line if the whole does.
constexpr std::int64_t piece_edge = 64;

ProductPath path_of(const at::Tensor& into) {
  return product_path(into.size(0), tiles_pay());
}

template <typename T>
// c = a b or c += a b, with a [m, k], b [k, n], c [m, n]. Source of the blocking: Goto and van de Geijn, 2008.
void run(const GemmTask<T>& task) {
  const auto& kernels = block_kernels<T>();
  // Equal depths, so that the last part of k is not a sliver whose packing costs more than its product.
  const std::int64_t parts = (task.k + block_depth - 1) / block_depth, depth = (task.k + parts - 1) / parts;
  const std::int64_t panels = (task.n + kernels.tile_columns - 1) / kernels.tile_columns;
  const auto type = c10::CppTypeToScalarType<T>::value;
  // B's rows k to k + depth as panels [panels][depth][tile_columns].
  const at::Tensor packed = activation_pool().take({panels * kernels.tile_columns * depth}, type);
  T* const packed_b = packed.template mutable_data_ptr<T>();
  // C [m, n] gets one addition per part of k, in order of k. Threads share out rows of C, never k, so their number does
  // not change the order of additions.
  for (std::int64_t k = 0; k < task.k; k += depth) {
    const std::int64_t here = std::min(depth, task.k - k);
    over_lent_threads(0, panels, task_grain(kernels.tile_columns * here), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t j = begin * kernels.tile_columns, last = std::min(task.n, end * kernels.tile_columns);
      kernels.gemm_pack(task, {.j = j, .columns = last - j, .k = k, .depth = here}, packed_b + j * here);
    });
    const std::int64_t blocks = (task.m + block_rows - 1) / block_rows;
    over_lent_threads(
        0, blocks, task_grain(block_rows * task.n * here / 16), [&](std::int64_t begin, std::int64_t end) {
          // A's block, packed as [panels][depth][tile_rows].
          const at::Tensor scratch = activation_pool().take({(block_rows + kernels.tile_rows) * here + 16}, type);
          for (std::int64_t block = begin; block < end; ++block) {
            const std::int64_t i = block * block_rows;
            kernels.gemm_rows(
                task, {.i = i, .rows = std::min(block_rows, task.m - i), .columns = task.n, .k = k, .depth = here},
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

void multiply_by_library(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add) {
  const at::NoGradGuard no_grad;
  if (add)
    at::addmm_out(into, into, a, b);
  else
    at::mm_out(into, a, b);
}

/// Uses the threads of the loan, one per piece.
void multiply_in_pieces(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add, std::int64_t pieces) {
  const std::int64_t rows = into.size(0), edges = (rows + piece_edge - 1) / piece_edge;
  over_lent_threads(0, pieces, 1, [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_grad;  // threads of a pool have their own mode
    for (std::int64_t piece = first; piece < last; ++piece) {
      const std::int64_t begin = std::min(rows, edges * piece / pieces * piece_edge);
      const std::int64_t count = std::min(rows, edges * (piece + 1) / pieces * piece_edge) - begin;
      if (count == 0) continue;
      at::Tensor part = into.narrow(0, begin, count);
      multiply_by_library(part, a.narrow(0, begin, count), b, add);
    }
  });
}

/// Returns a tensor of the same shape, type and strides with the sines of 0, step, 2 step and so on: full mantissas, so
/// that another order of additions rounds differently.
at::Tensor made_like(const at::Tensor& like, double step) {
  at::Tensor made = at::empty_strided(like.sizes(), like.strides(), like.options());
  return made.copy_(at::arange(like.numel(), like.options()).mul_(step).sin_().view(like.sizes()));
}

/// Properties on which the routine's choice depends.
using ProductForm = std::tuple<at::ScalarType, bool, std::int64_t, std::vector<std::int64_t>>;

ProductForm form_of(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add, std::int64_t pieces) {
  std::vector<std::int64_t> numbers{into.size(0), into.size(1), a.size(1)};
  for (const at::Tensor& each : {into, a, b}) numbers.insert(numbers.end(), {each.stride(0), each.stride(1)});
  return {into.scalar_type(), add, pieces, std::move(numbers)};
}

/// Whether the routine rounds the pieces like the whole. This depends on shapes, not on values, so generated numbers
/// test it, once per form.
bool pieces_round_alike(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add,
                        std::int64_t pieces) {
  thread_local std::map<ProductForm, bool> known;  // loans belong to a thread, too
  const auto [found, is_new] = known.try_emplace(form_of(into, a, b, add, pieces), false);
  if (!is_new) return found->second;
  const at::NoGradGuard no_grad;
  const at::Tensor left = made_like(a, 0.7), right = made_like(b, 0.9);
  at::Tensor whole = made_like(into, 1.1), parts = made_like(into, 1.1);
  multiply_by_library(whole, left, right, add);
  multiply_in_pieces(parts, left, right, add, pieces);
  return found->second = at::equal(whole, parts);
}

/// The routine's choice also depends on where rows begin within a cache line.
bool begins_a_line(const at::Tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 64 == 0;
}

/// 1: the whole, on the rank's own threads.
std::int64_t pieces_on_loan(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add) {
  const std::int64_t pieces = std::min(lent_threads(), into.numel() * a.size(1) / steps_per_piece);
  const bool divides = pieces > 1 && begins_a_line(into) && begins_a_line(a) && begins_a_line(b) &&
                       pieces_round_alike(into, a, b, add, pieces);
  return divides ? pieces : 1;
}

void multiply_by_library_on_loan(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add) {
  const std::int64_t pieces = pieces_on_loan(into, a, b, add);
  if (pieces > 1)
    multiply_in_pieces(into, a, b, add, pieces);
  else
    multiply_by_library(into, a, b, add);
}

}  // namespace

bool library_divides(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add) {
  return pieces_on_loan(into, a, b, add) > 1;
}

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
  multiply_by_library_on_loan(into, a, b, false);
}

at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& x) {
  at::Tensor place = gradient_place(weight);
  if (!place.defined()) return product(dy.t(), x);
  // The tiles write row-major results only.
  if (place.stride(1) == 1) {
    add_product(place, dy.t(), x);
  } else {
    add_widened(place, dy.t(), x);
  }
  return {};
}

void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b) {
  add_product(into, a, b, path_of(into));
}

void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, ProductPath path) {
  if (path == ProductPath::tiles) return multiply(into, a, b, true);
  multiply_by_library_on_loan(into, a, b, true);
}

}  // namespace accrue
