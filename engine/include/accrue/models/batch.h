// SPDX-License-Identifier: Apache-2.0
// Values that pass between data, models and the trainer, without torch::nn: a micro-batch, and a loss as sum and count.
// Thread: values; those of a run belong to its training thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue {

/// A micro-batch as the data loaders make it.
/// Shapes: tokens: inputs [B, T] int64, targets [B, T] int64 (ignored if -100). x/y: inputs [B, I], targets [B, O].
/// Labels: inputs [B, T, I], targets [B, T] int64 (ragged sequences have I = 1, labelled tables T = 1).
/// BERT: as tokens, with types, padding and order. T5: inputs [B, S] of the encoder with their padding, and
/// decoder_inputs [B, T] with targets [B, T].
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
  std::int64_t samples = 0;  ///< rows that count (0 for an empty micro-step)
  /// Number of terms of the loss: targets that are not -100, or samples * outputs. Known on the CPU, so reading it does
  /// not wait for a device.
  std::int64_t items = 0;
  /// GPT whose documents restart positions: [B, T] int64, the position of each token. Undefined: 0 to T - 1.
  at::Tensor positions = {};
  /// GPT: [B, T] int64, the first token that each token sees. Undefined: it sees all before it.
  at::Tensor document_starts = {};
  at::Tensor types = {};           ///< BERT: [B, T] int64, the segment of each token, 0 or 1
  at::Tensor padding = {};         ///< BERT, T5: [B, T] int64 of the inputs, 1 for a token, 0 for padding
  at::Tensor order = {};           ///< BERT: [B] int64, 1 if the second segment comes before the first, else 0
  at::Tensor decoder_inputs = {};  ///< T5: [B, T] int64

  /// Whether nothing in it has a loss: no item, and no order of segments.
  bool empty() const { return items == 0 && !order.defined(); }
};

/// Sum and count of the same items. Shapes: sum [] in the accumulation dtype, with a graph. mean = sum / count.
/// `second`: for a model with two losses (BERT's binary head) the sum of the other, over samples; its loss is the sum
/// of both means.
struct LossSum {
  at::Tensor sum;
  std::int64_t count = 0;
  at::Tensor second = {};
  std::int64_t second_count = 0;
};

}  // namespace accrue
