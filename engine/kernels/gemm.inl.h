// SPDX-License-Identifier: Apache-2.0
// Matrix product on register tiles with packed operands (the scheme of Goto and van de Geijn, 2008): panels of B stay
// in the first-level cache while panels of A stream from the second.
#pragma once

#include "kernels/kernels.h"
#include "kernels/tile.inl.h"

namespace accrue {
namespace {

/// Packs panels of `width` rows (or columns) of a matrix, [depth][width] each, zero beyond `count`. `across`: distance
/// between two rows, `along`: distance between two numbers of one.
template <typename T, std::int64_t width>
void pack_panels(const T* from, std::int64_t across, std::int64_t along, std::int64_t count, std::int64_t depth,
                 T* to) {
  constexpr std::int64_t n = lanes<T>;
  for (std::int64_t first = 0; first < count; first += width, from += width * across) {
    // Three cases: columns lie side by side (copy), rows do (transpose in registers), or neither (number by number).
    const bool whole = count - first >= width;
    if (whole && across == 1) {
      for (std::int64_t p = 0; p < depth; ++p, to += width) __builtin_memcpy(to, from + p * along, width * sizeof(T));
      continue;
    }
    std::int64_t p = 0;
    if constexpr (width % n == 0) {
      if (whole && along == 1) {
        for (; p + n <= depth; p += n, to += n * width) {
          for (std::int64_t part = 0; part < width; part += n) {
            Vec<T> square[n];
#pragma GCC unroll 16
            for (std::int64_t i = 0; i < n; ++i) square[i] = load(from + (part + i) * across + p);
            transpose<T>(square);
#pragma GCC unroll 16
            for (std::int64_t i = 0; i < n; ++i) store(to + i * width + part, square[i]);
          }
        }
      }
    } else if constexpr (width < n) {
      if (whole && along == 1) {
        for (; p + n <= depth; p += n, to += n * width) {
          Vec<T> square[n] = {};
#pragma GCC unroll 16
          for (std::int64_t i = 0; i < width; ++i) square[i] = load(from + i * across + p);
          transpose<T>(square);
          // Each store writes a whole vector; the next one overwrites what it writes beyond its row. The last may reach
          // n - width numbers beyond the panel: hence the 16 that a caller adds to packed_a.
#pragma GCC unroll 16
          for (std::int64_t i = 0; i < n; ++i) store(to + i * width, square[i]);
        }
      }
    }
    const std::int64_t wanted = whole ? width : count - first;
    for (; p < depth; ++p, to += width) {
      for (std::int64_t i = 0; i < wanted; ++i) to[i] = from[i * across + p * along];
      for (std::int64_t i = wanted; i < width; ++i) to[i] = 0;
    }
  }
}

/// Packs B [depth, columns] as [panels][depth][tile columns]: a tile reads two vectors per step of depth, without gaps.
/// A transposed matrix needs no copy of its own, since packing takes any strides.
template <typename T>
void gemm_pack(const GemmTask<T>& task, const GemmPart& part, T* packed) {
  pack_panels<T, Tile<T>::columns>(task.b + part.k * task.b_row + part.j * task.b_column, task.b_column, task.b_row,
                                   part.columns, part.depth, packed);
}

/// Writes or adds a tile to c, which a part of the depth touches only here. At an edge it goes through a whole tile in
/// memory, of which only [rows, columns] count.
template <typename T>
ACCRUE_INLINE void finish_tile(const Tile<T>& tile, std::int64_t rows, std::int64_t columns, bool add, T* c,
                               std::int64_t stride) {
  constexpr std::int64_t n = lanes<T>;
  if (rows == Tile<T>::rows && columns == Tile<T>::columns) {
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < Tile<T>::rows; ++i) {
      T* const at = c + i * stride;
      store<T>(at, add ? tile.sum[i][0] + load(at) : tile.sum[i][0]);
      store<T>(at + n, add ? tile.sum[i][1] + load(at + n) : tile.sum[i][1]);
    }
    return;
  }
  T whole[Tile<T>::rows * Tile<T>::columns];
  tile.store_to(whole, Tile<T>::columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      T& at = c[i * stride + j];
      at = (add ? at : T(0)) + whole[i * Tile<T>::columns + j];
    }
  }
}

/// c[i.., :] = or += a[i.., k..] b[k.., :]. Shapes: a's part [rows, depth], b's [depth, columns], c's [rows, columns];
/// the packed ones as panels, whose rows beyond the matrix are zero. A's panel [depth][tile rows] is read once per tile
/// of columns, from the second level; B's stays in the first.
template <typename T>
void gemm_rows(const GemmTask<T>& task, const GemmPart& part, const T* packed_b, T* packed_a) {
  constexpr std::int64_t rows = Tile<T>::rows, columns = Tile<T>::columns;
  pack_panels<T, rows>(task.a + part.i * task.a_row + part.k * task.a_column, task.a_row, task.a_column, part.rows,
                       part.depth, packed_a);
  // Later parts of the depth add to the first.
  const bool add = task.add || part.k > 0;
  Tile<T> tile;
  for (std::int64_t j = 0; j < part.columns; j += columns) {
    const std::int64_t width = part.columns - j < columns ? part.columns - j : columns;
    for (std::int64_t i = 0; i < part.rows; i += rows) {
      T* const c = task.c + (part.i + i) * task.c_stride + part.j + j;
      // c is not needed until the tile is done; fetch it meanwhile.
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < rows; ++row) __builtin_prefetch(c + row * task.c_stride, 1);
      tile.clear();
      tile.multiply(part.depth, packed_a + i * part.depth, 1, rows, packed_b + j * part.depth, columns);
      finish_tile(tile, part.rows - i < rows ? part.rows - i : rows, width, add, c, task.c_stride);
    }
  }
}

}  // namespace
}  // namespace accrue
