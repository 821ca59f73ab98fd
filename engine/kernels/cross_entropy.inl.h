// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy that overwrites logits with their gradient: neither log-softmax nor one-hot is stored.
#pragma once

#include "kernels/vec.inl.h"

namespace accrue {
namespace {

/// Largest of [classes] numbers; exact in any order.
template <typename T>
T row_maximum(const T* row, std::int64_t classes) {
  T highest = row[0];
  std::int64_t at = 0;
  if (classes >= lanes<T>) {
    Vec<T> best = load(row);
    for (at = lanes<T>; at + lanes<T> <= classes; at += lanes<T>) {
      const Vec<T> next = load(row + at);
      best = best < next ? next : best;
    }
    for (std::int64_t i = 0; i < lanes<T>; ++i) highest = highest < best[i] ? best[i] : highest;
  }
  for (; at < classes; ++at) highest = highest < row[at] ? row[at] : highest;
  return highest;
}

/// Returns the sum over rows of log(sum exp(logits)) - logits[target]. Rows whose target is `ignored` count nothing and
/// get a zero gradient. logits become d loss / d logits = softmax(logits) - onehot(target). Shapes: logits
/// [rows, classes], targets [rows].
template <typename T>
double cross_entropy(T* logits, const std::int64_t* targets, std::int64_t rows, std::int64_t classes,
                     std::int64_t ignored) {
  double loss = 0.0;
  for (std::int64_t row = 0; row < rows; ++row, logits += classes) {
    if (targets[row] == ignored) {
      for (std::int64_t i = 0; i < classes; ++i) logits[i] = 0;
      continue;
    }
    // log sum exp(l) = m + log sum exp(l - m), with m the largest: no exponential overflows, and the sum is at least 1.
    const T highest = row_maximum(logits, classes), right = logits[targets[row]];
    Vec<T> sums{};
    T rest = 0;
    std::int64_t at = 0;
    for (; at + lanes<T> <= classes; at += lanes<T>) {
      const Vec<T> e = exponential(load(logits + at) - highest);
      store<T>(logits + at, e);
      sums += e;
    }
    for (; at < classes; ++at) rest += logits[at] = std::exp(logits[at] - highest);
    const T total = lane_sum<T>(sums) + rest, inverse = T(1) / total;
    // In double: the loss is a difference of numbers that may be large and close.
    loss += std::log(static_cast<double>(total)) + static_cast<double>(highest) - static_cast<double>(right);
    along_row<T>(classes, [&](auto get, auto put) { put(logits, get(logits) * inverse); });
    logits[targets[row]] -= T(1);
  }
  return loss;
}

}  // namespace
}  // namespace accrue
