// SPDX-License-Identifier: Apache-2.0
// Scalars of a run for TensorBoard's files, under Megatron-LM's tags: during training, and from its record.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "accrue/run/events/run_event.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/record/tensorboard_file.h"

namespace accrue {

/// Tag of the whole loss: "lm loss" for a text's single loss, as in Megatron-LM; otherwise "loss". Parts of a loss are
/// written beside it under their own names.
std::string loss_tag(const ModelSpec& model);

/// Facts about an update that its event lacks. A fact that is 0 is not written, except the batch size.
struct UpdateFacts {
  double batch_size = 0.0;  ///< samples of this update, over all ranks
  double world = 0.0;
  double seconds = 0.0;          ///< of this update
  double flops_of_sample = 0.0;  ///< 0: unknown, so no throughput is written
  MemoryUse memory = {};
  std::map<std::string, double> timers = {};  ///< seconds by name
  std::int64_t timer_level = 0;               ///< maximum level of the written timers
};
/// Returns 1 for timers of a few calls per update, 2 for timers of every micro-step, like Megatron-LM's
/// --timing-log-level.
std::int64_t timer_level_of(const std::string& timer);
/// `loss`: tag of the whole loss; empty if only its parts are written.
TensorboardScalars scalars_of(const std::string& loss, const Update& update, const UpdateFacts& facts);
TensorboardScalars scalars_of(const std::string& loss, const Evaluation& evaluation);
/// Returns the scalars under the tags whose step is the number of samples.
TensorboardScalars over_samples(const TensorboardScalars& scalars);

}  // namespace accrue
