// SPDX-License-Identifier: Apache-2.0
// Completion of gradients after the reduction over the replicas: the ranks of one replica add up gradients of which
// each has a part. First come gradients that tensor ranks computed on their own rows, then those of embeddings that
// several stages hold. Source: Megatron-LM's finalize_model_grads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "accrue/comm/mesh.h"

namespace accrue {

/// A range of a table's gradient and its start in the table.
struct TablePart {
  at::Tensor gradient;
  std::int64_t offset = 0;
};

/// Gradients of a rank that are parts of a sum: views, which are overwritten by the sums.
struct PartialGradients {
  /// Under sequence parallelism: gradients of parameters that each tensor rank uses on its own rows.
  std::vector<at::Tensor> on_rows;
  /// Gradients of a tied embedding. Under ZeRO only this rank's share: both stages divide it alike (FlatLayout's
  /// `alone`), so the ranks of a group own the same elements.
  std::vector<at::Tensor> tied;
  /// Gradients of a T5's positions; under ZeRO only this rank's share.
  std::vector<TablePart> positions;
  /// Zeros of the whole table of positions, flat, in its exchange type; undefined on a stage without positions.
  at::Tensor table;
};

/// Runs the part, and records its time under Megatron-LM's name.
using TimedPart = std::function<void(const char* timer, const std::function<void()>& part)>;

/// Completes the gradients. `sharded`: under ZeRO. Collective: the model axis, and for positions under ZeRO the data
/// axis.
void complete_gradients(const PartialGradients& partial, const Mesh& mesh, bool sharded, const TimedPart& timed);

}  // namespace accrue
