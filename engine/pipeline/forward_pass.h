// SPDX-License-Identifier: Apache-2.0
// Forward of one batch through all parts of a model, outside a window: for an evaluation, or for logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "accrue/comm/communicator.h"
#include "pipeline/window_executor.h"

namespace accrue {

/// Returns the output of the last part; undefined on other stages. Part i of p stages is chunk i / p of stage i mod p,
/// so a chunk receives from the stage before and sends to the one after, in a ring. Between parts, activations are
/// passed: [B, T, D], or rows [B T / t, D] under sequence parallelism.
/// `chunks`: parts of this stage. empty_input(chunk) returns memory to receive in, forward(chunk, received) the part's
/// output. The caller ends the list by link.finish(). Collective: the pipeline.
template <typename EmptyInput, typename Forward>
at::Tensor forward_pass(StageLink& link, const Communicator& pipeline, std::size_t chunks,
                        const EmptyInput& empty_input, const Forward& forward) {
  const std::int64_t stages = pipeline.size(), stage = pipeline.rank();
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const auto index = static_cast<std::int64_t>(chunk);
    at::Tensor received;
    if (chunk > 0 || stage > 0) {
      received = empty_input(chunk);
      link.receive({PipelineAction::receive_input, 0, index, (stage + stages - 1) % stages}, received);
    }
    link.push();
    const at::Tensor output = forward(chunk, received);
    if (chunk + 1 == chunks && stage + 1 == stages) return output;
    link.send({PipelineAction::send_output, 0, index, (stage + 1) % stages}, output);
  }
  return {};
}

}  // namespace accrue
