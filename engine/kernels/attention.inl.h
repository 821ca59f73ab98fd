// SPDX-License-Identifier: Apache-2.0
// Causal attention of one head, blocked so that a panel of scores stays in the cache and the upper triangle is never
// computed. Work: 2 products forward, 5 backward, each T * T / 2 * head size multiply-adds.
//
// The orientation of the scores lets every softmax run along the lanes of a vector, without transposing scores: forward
// makes panels [key][16 queries], backward panels [query][16 keys]. Only one number per query is stored for backward,
// the logarithm of its softmax sum; backward recomputes the probabilities.
// Source: the tiling idea of FlashAttention (Dao et al., 2022). Online rescaling is omitted, because a whole panel of
// scores fits the cache at training lengths.
#pragma once

#include "kernels/kernels.h"
#include "kernels/tile.inl.h"

namespace accrue {
namespace {

template <typename T>
struct HeadSizes {
  using Block = Tile<T>;
  // Whole tiles of positions whichever way the scores lie, so that no product needs a case for its edge: for
  // float32, multiples of 12 x 32 = 384 under AVX-512, of 6 x 16 = 96 under AVX2.
  explicit HeadSizes(const HeadShape& shape)
      : keys(round_up(shape.positions, Block::rows * Block::columns)), size(round_up(shape.size, Block::columns)) {}
  // Numbers of Q, K, V or dO. The transposed products take Block::rows columns at a time from column d on. The last of
  // them may run past a row's end: inside the matrix that is harmless, as surplus results are dropped, so only the last
  // row needs room behind it.
  std::int64_t rows_numbers() const { return keys * size + Block::rows; }
  std::int64_t keys;  // positions, padded to whole tiles and panels
  std::int64_t size;  // head size, padded to whole panels
};

/// Copies the rows of one head side by side, with zero padding: (from + bias) * factor.
template <typename T>
void copy_head(const T* from, std::int64_t stride, const T* bias, T factor, const HeadShape& shape,
               const HeadSizes<T>& padded, T* to) {
  for (std::int64_t row = 0; row < shape.positions; ++row, from += stride, to += padded.size) {
    along_row<T>(shape.size,
                 [&](auto get, auto put) { put(to, (bias != nullptr ? get(from) + get(bias) : get(from)) * factor); });
    for (std::int64_t i = shape.size; i < padded.size; ++i) to[i] = 0;
  }
  // Zero rows add nothing to a product.
  const std::int64_t rest = (padded.keys - shape.positions) * padded.size + Tile<T>::rows;
  for (std::int64_t i = 0; i < rest; ++i) to[i] = 0;
}

/// panel[i][j] = rows[j][i]: transposes Tile::columns rows of `size` numbers into columns.
template <typename T>
void transpose_panel(const T* rows, std::int64_t size, T* panel) {
  constexpr std::int64_t columns = Tile<T>::columns, n = lanes<T>;
  // Lanes x lanes numbers at a time, in registers.
  Vec<T> square[n];
  for (std::int64_t i = 0; i < size; i += n) {
    for (std::int64_t half = 0; half < columns; half += n) {
#pragma GCC unroll 16
      for (std::int64_t j = 0; j < n; ++j) square[j] = load(rows + (half + j) * size + i);
      transpose<T>(square);
#pragma GCC unroll 16
      for (std::int64_t j = 0; j < n; ++j) store(panel + (i + j) * columns + half, square[j]);
    }
  }
}

/// rows[j][i] = panel[i][j] for the first `size` numbers of the first `count` columns of the panel.
template <typename T>
void untranspose_panel(const T* panel, std::int64_t size, std::int64_t count, T* rows, std::int64_t stride) {
  constexpr std::int64_t columns = Tile<T>::columns, n = lanes<T>;
  Vec<T> square[n];
  for (std::int64_t half = 0; half < count; half += n) {
    const std::int64_t wanted = count - half < n ? count - half : n;
    for (std::int64_t i = 0; i < size; i += n) {
#pragma GCC unroll 16
      for (std::int64_t j = 0; j < n; ++j) square[j] = load(panel + (i + j) * columns + half);
      transpose<T>(square);
      if (wanted == n && i + n <= size) {
#pragma GCC unroll 16
        for (std::int64_t j = 0; j < n; ++j) store(rows + (half + j) * stride + i, square[j]);
      } else {
        const std::int64_t part = size - i < n ? size - i : n;
        for (std::int64_t j = 0; j < wanted; ++j) store_part<T>(rows + (half + j) * stride + i, square[j], part);
      }
    }
  }
}

template <typename T>
// Q, K, V and dO [keys][size]; the panels of keys and values [size][columns] and of results; probabilities
// [keys][columns]; gradients of scores [keys][keys]; log-sums and deltas [keys]. Forward needs less. The gradients are
// the largest part: 5 MiB of float32 for 1,024 positions under AVX-512, which pads them to 1,152.
std::int64_t attention_scratch(const HeadShape& shape) {
  const HeadSizes<T> padded(shape);
  constexpr std::int64_t columns = Tile<T>::columns;
  const std::int64_t panels = 2 * padded.size * columns + (padded.size + Tile<T>::rows) * columns;
  return 4 * padded.rows_numbers() + panels + padded.keys * columns + padded.keys * padded.keys + 2 * padded.keys;
}

/// Softmax along the keys of one panel of scores [keys][columns]; query j of the panel is at position first + j and
/// sees keys up to itself. Returns log-sum-exp per query, [columns], and leaves unnormalised probabilities; `inverse`
/// is 1 / their sum. One pass over the panel masks, one finds the largest scores, one takes the exponentials. Queries
/// lie along the lanes, so none of them adds across lanes.
template <typename T>
ACCRUE_INLINE void panel_softmax(T* scores, std::int64_t keys, std::int64_t first, T* log_sum, Vec<T> (&inverse)[2]) {
  constexpr std::int64_t columns = Tile<T>::columns;
  // Its exponential is 0, and unlike minus infinity it never makes a NaN.
  const Vec<T> unseen = splat(T(-1e30));
  // Keys up to the panel's first query are seen by all its queries.
  for (std::int64_t key = first + 1; key < keys; ++key) {
    for (int half = 0; half < 2; ++half) {
      T* const at = scores + key * columns + half * lanes<T>;
      const Lanes<T> queries = lane_numbers<T>() + static_cast<int>(first + half * lanes<T>);
      store<T>(at, queries < static_cast<int>(key) ? unseen : load(at));
    }
  }
  Vec<T> highest[2] = {load(scores), load(scores + lanes<T>)}, sum[2] = {};
  for (std::int64_t key = 1; key < keys; ++key) {
    for (int half = 0; half < 2; ++half) {
      const Vec<T> s = load(scores + key * columns + half * lanes<T>);
      highest[half] = highest[half] < s ? s : highest[half];
    }
  }
  for (std::int64_t key = 0; key < keys; ++key) {
    for (int half = 0; half < 2; ++half) {
      T* const at = scores + key * columns + half * lanes<T>;
      // Less the largest score, so that no exponential overflows.
      const Vec<T> e = exponential(load(at) - highest[half]);
      store<T>(at, e);
      sum[half] += e;
    }
  }
  for (int half = 0; half < 2; ++half) {
    inverse[half] = T(1) / sum[half];
    for (std::int64_t i = 0; i < lanes<T>; ++i) {
      log_sum[half * lanes<T> + i] = highest[half][i] + std::log(sum[half][i]);
    }
  }
}

/// out = softmax(Q K^T / sqrt(size)) V; Q, K and V include their biases. Shapes: q, k, v, out [T, size]; log_sums [T].
/// A panel of queries takes keys up to its own last one, so about half of the score matrix is computed. Padded queries
/// have scores of 0 and are dropped; padded keys are later than every other query and masked.
template <typename T>
void attention_forward(const HeadShape& shape, const HeadInputs<T>& in, T* out, T* log_sums, T* scratch) {
  using Block = Tile<T>;
  constexpr std::int64_t columns = Block::columns;
  const HeadSizes<T> padded(shape);
  const T scale = T(1) / std::sqrt(static_cast<T>(shape.size));
  T* const Q = scratch;
  T* const K = Q + padded.rows_numbers();
  T* const V = K + padded.rows_numbers();
  T* const query_panel = V + padded.rows_numbers();
  T* const out_panel = query_panel + padded.size * columns;
  T* const scores = out_panel + (padded.size + Block::rows) * columns;
  copy_head(in.q, shape.qkv_stride, in.q_bias, scale, shape, padded, Q);
  copy_head(in.k, shape.qkv_stride, in.k_bias, T(1), shape, padded, K);
  copy_head(in.v, shape.qkv_stride, in.v_bias, T(1), shape, padded, V);
  Block tile;
  for (std::int64_t first = 0; first < shape.positions; first += columns) {
    const std::int64_t keys = round_up(first + columns, Block::rows);
    transpose_panel(Q + first * padded.size, padded.size, query_panel);
    for (std::int64_t key = 0; key < keys; key += Block::rows) {
      tile.clear();
      // Scores [keys][queries] = K Q^T, of which Q includes 1 / sqrt(size).
      tile.multiply(shape.size, K + key * padded.size, padded.size, 1, query_panel, columns);
      tile.store_to(scores + key * columns, columns);
    }
    T log_sum[columns];
    Vec<T> inverse[2];
    panel_softmax(scores, keys, first, log_sum, inverse);
    for (std::int64_t d = 0; d < shape.size; d += Block::rows) {
      tile.clear();
      // V^T P [size][queries]. Dividing by the softmax's sums here takes size numbers per query, not one per key.
      tile.multiply(keys, V + d, 1, padded.size, scores, columns);
#pragma GCC unroll 12
      for (std::int64_t i = 0; i < Block::rows; ++i) {
        tile.sum[i][0] *= inverse[0];
        tile.sum[i][1] *= inverse[1];
      }
      tile.store_to(out_panel + d * columns, columns);
    }
    const std::int64_t count = shape.positions - first < columns ? shape.positions - first : columns;
    untranspose_panel(out_panel, shape.size, count, out + first * shape.out_stride, shape.out_stride);
    for (std::int64_t j = 0; j < count; ++j) log_sums[first + j] = log_sum[j];
  }
}

/// Probabilities and score gradients of Tile::rows queries against one panel of keys, [rows][columns] each:
/// P = exp(S - L) and dS = P (dP - delta), with L the log-sum of the query. `probabilities` holds S before and P after;
/// `tile` is dP. Masked keys get P = 0, and so dS = 0.
template <typename T>
ACCRUE_INLINE void score_gradients(const T* log_sums, const T* deltas, std::int64_t query, std::int64_t first_key,
                                   T* probabilities, Tile<T>& tile, T* gradients) {
  constexpr std::int64_t columns = Tile<T>::columns;
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < Tile<T>::rows; ++i) {
    for (int half = 0; half < 2; ++half) {
      T* const at = probabilities + i * columns + half * lanes<T>;
      // P is normalised at once: exp(S - log sum exp S).
      Vec<T> p = exponential(load(at) - log_sums[query + i]);
      const Lanes<T> keys = lane_numbers<T>() + static_cast<int>(first_key + half * lanes<T>);
      p = keys > static_cast<int>(query + i) ? Vec<T>{} : p;
      store<T>(at, p);
      store<T>(gradients + i * columns + half * lanes<T>, p * (tile.sum[i][half] - deltas[query + i]));
    }
  }
}

/// With P = exp(Q K^T - log_sums), dP = dout V^T and delta = sum of out * dout per query: dS = P (dP - delta),
/// dV = P^T dout, dK = dS^T Q, dQ = dS K / sqrt(size). Q here includes 1 / sqrt(size).
///
/// delta is the sum of P dP over the keys of a query; as out = P V and dP = dout V^T, it equals out . dout, which needs
/// no row of P. A padded query has P = 1, but its rows of Q, dout and delta are 0, so it adds nothing. Panels of
/// keys are visited in ascending order, each with the tiles of queries that see one of its keys: S and dP
/// [queries][keys], then dV and dK [keys][size] as transposed products. dQ comes last, from the panels of dS.
template <typename T>
void attention_backward(const HeadShape& shape, const HeadInputs<T>& in, const T* out, const T* log_sums, const T* dout,
                        T* dq, T* dk, T* dv, T* scratch) {
  using Block = Tile<T>;
  constexpr std::int64_t columns = Block::columns;
  const HeadSizes<T> padded(shape);
  const T scale = T(1) / std::sqrt(static_cast<T>(shape.size));
  T* const Q = scratch;
  T* const K = Q + padded.rows_numbers();
  T* const V = K + padded.rows_numbers();
  T* const G = V + padded.rows_numbers();
  T* const key_panel = G + padded.rows_numbers();
  T* const value_panel = key_panel + padded.size * columns;
  T* const out_panel = value_panel + padded.size * columns;
  T* const probabilities = out_panel + (padded.size + Block::rows) * columns;  // [queries][columns]
  T* const gradients = probabilities + padded.keys * columns;                  // a panel [queries][columns] per keys
  T* const logs = gradients + padded.keys * padded.keys;
  T* const deltas = logs + padded.keys;
  copy_head(in.q, shape.qkv_stride, in.q_bias, scale, shape, padded, Q);
  copy_head(in.k, shape.qkv_stride, in.k_bias, T(1), shape, padded, K);
  copy_head(in.v, shape.qkv_stride, in.v_bias, T(1), shape, padded, V);
  copy_head(dout, shape.out_stride, static_cast<const T*>(nullptr), T(1), shape, padded, G);
  for (std::int64_t row = 0; row < padded.keys; ++row) {
    Vec<T> sum{};
    if (row < shape.positions) {
      const T* const o = out + row * shape.out_stride;
      const T* const g = G + row * padded.size;
      along_row<T>(shape.size, [&](auto get, auto) { sum += get(o) * get(g); });
    }
    deltas[row] = lane_sum<T>(sum);
    logs[row] = row < shape.positions ? log_sums[row] : T(0);
  }
  const std::int64_t queries = round_up(shape.positions, Block::rows);
  Block tile;
  for (std::int64_t first = 0; first < shape.positions; first += columns) {
    const std::int64_t from = first / Block::rows * Block::rows, depth = queries - from;
    T* const panel = gradients + first * padded.keys;
    transpose_panel(K + first * padded.size, padded.size, key_panel);
    transpose_panel(V + first * padded.size, padded.size, value_panel);
    for (std::int64_t query = from; query < queries; query += Block::rows) {
      tile.clear();
      tile.multiply(shape.size, Q + query * padded.size, padded.size, 1, key_panel, columns);
      tile.store_to(probabilities + query * columns, columns);
      tile.clear();
      tile.multiply(shape.size, G + query * padded.size, padded.size, 1, value_panel, columns);
      score_gradients(logs, deltas, query, first, probabilities + query * columns, tile, panel + query * columns);
    }
    const std::int64_t count = shape.positions - first < columns ? shape.positions - first : columns;
    const auto gather = [&](const T* a, const T* b, T* to) {
      for (std::int64_t d = 0; d < shape.size; d += Block::rows) {
        tile.clear();
        tile.multiply(depth, a + from * padded.size + d, 1, padded.size, b + from * columns, columns);
        tile.store_to(out_panel + d * columns, columns);
      }
      untranspose_panel(out_panel, shape.size, count, to + first * shape.qkv_stride, shape.qkv_stride);
    };
    gather(G, probabilities, dv);
    gather(Q, panel, dk);  // Q includes the scale
  }
  for (std::int64_t query = 0; query < shape.positions; query += Block::rows) {
    const std::int64_t count = shape.positions - query < Block::rows ? shape.positions - query : Block::rows;
    for (std::int64_t d = 0; d < shape.size; d += columns) {
      tile.clear();
      for (std::int64_t first = 0; first < query + Block::rows && first < shape.positions; first += columns) {
        tile.multiply(columns, gradients + first * padded.keys + query * columns, columns, 1,
                      K + first * padded.size + d, padded.size);
      }
      tile.store_to(out_panel, columns);
      const std::int64_t width = shape.size - d < columns ? shape.size - d : columns;
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          dq[(query + i) * shape.qkv_stride + d + j] = out_panel[i * columns + j] * scale;
        }
      }
    }
  }
}

}  // namespace
}  // namespace accrue
