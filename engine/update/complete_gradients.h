// SPDX-License-Identifier: Apache-2.0
// After the reduction over the replicas: what the ranks of one replica add to each other's gradients, where each has a
// part of the sum. First what tensor ranks computed on their own rows, then the uses of embeddings that several stages
// hold. Source: Megatron-LM's finalize_model_grads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "accrue/comm/mesh.h"

namespace accrue {

/// A stretch of a table's gradient, and where in the table it begins.
struct TablePart {
  at::Tensor gradient;
  std::int64_t offset = 0;
};

/// The gradients of a rank that are parts of a sum: views, which become the sums.
struct PartialGradients {
  /// Under sequence parallelism: of parameters that each tensor rank uses on its own rows.
  std::vector<at::Tensor> on_rows;
  /// Of a tied embedding. Under ZeRO what this rank owns: both stages cut it alike (FlatLayout's `alone`), so the ranks
  /// of a group own the same elements.
  std::vector<at::Tensor> tied;
  /// Of a T5's positions; under ZeRO what this rank owns.
  std::vector<TablePart> positions;
  /// Zeros of the whole table of positions, flat, in the type it is exchanged in; undefined on a stage without them.
  at::Tensor table;
};

/// Does the part, and takes its time under Megatron-LM's name for it.
using TimedPart = std::function<void(const char* timer, const std::function<void()>& part)>;

/// Completes them. `sharded`: under ZeRO. Collective: the model axis, and for positions under ZeRO the data axis.
void complete_gradients(const PartialGradients& partial, const Mesh& mesh, bool sharded, const TimedPart& timed);

}  // namespace accrue
