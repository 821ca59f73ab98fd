// SPDX-License-Identifier: Apache-2.0
// Bytes that the forwards of our models keep for their backwards, counted tensor by tensor. In doubles: a form may ask
// for any product of large numbers.
#pragma once

#include <cstdint>

#include "accrue/run/run_spec.h"

namespace accrue {

inline double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// What the counts are made of: one micro-batch on one rank of a divided model.
struct MicroBatchShape {
  explicit MicroBatchShape(const RunSpec& spec) : MicroBatchShape(spec, spec.model.context) {}
  /// Of sequences of that many positions.
  MicroBatchShape(const RunSpec& spec, std::int64_t context);
  double tensor;    ///< t
  double tokens;    ///< positions of all sequences
  double rows;      ///< of them between divided layers on this rank: all, or 1 / t under sequence parallelism
  double width;     ///< D
  double hidden;    ///< rows x D: what is exchanged between layers and stages
  double element;   ///< bytes of a number
  double sum;       ///< bytes of a number in which losses are summed
  double classes;   ///< that this rank computes logits of
  bool fused_head;  ///< the fused functions serve the head
  bool fused;       ///< and the blocks
};

/// Full recomputation: how many of a chunk's blocks run again in backward, and the inputs that are kept for it.
struct RecomputedBlocks {
  double blocks = 0;
  double inputs = 0;
  bool shared = false;  ///< tensor-parallel ranks keep equal parts of an input
};
RecomputedBlocks recomputed_of_chunk(const ParallelSpec& parallel, double blocks);

/// Of one micro-step on one chunk, between its forward and its backward; of a model that is not divided, between those
/// of the whole.
struct KeptByChunk {
  double blocks = 0;  ///< input, blocks and output
  double first = 0;   ///< more where the chunk has the embeddings
  double last = 0;    ///< more where it has the loss
};
KeptByChunk kept_by_chunk(const RunSpec& spec, std::int64_t blocks);
/// The same of a T5's stage, all that it has.
double kept_by_t5_stage(const RunSpec& spec, std::int64_t stage);
/// The part of a block's activations that the spec's recomputation spares, from 0 to 1.
double spared_of_a_block(RunSpec spec);
/// Numbers that a stage of a T5 hands to the next: the encoder's rows, after the split the decoder's as well.
double t5_message(const RunSpec& spec, std::int64_t stage);

/// Most working memory that one operation takes besides what is kept and what it makes for others to keep.
double working_bytes(const RunSpec& spec);

}  // namespace accrue
