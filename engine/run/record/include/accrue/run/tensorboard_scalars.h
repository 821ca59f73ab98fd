// SPDX-License-Identifier: Apache-2.0
// What of a run goes into TensorBoard's files, under Megatron-LM's tags: while it trains, and from its record.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "accrue/run/host_facts.h"
#include "accrue/run/run_event.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/tensorboard_file.h"

namespace accrue {

/// What the whole loss is called: of a text's one loss "lm loss", as in Megatron-LM; otherwise "loss". Where it has
/// parts, each is written under its own name beside it.
std::string loss_tag(const ModelSpec& model);

/// What an update's own event does not say. Of what is 0 nothing is written, but for the batch size.
struct UpdateFacts {
  double batch_size = 0.0;  ///< samples of this update, over all ranks
  double world = 0.0;
  double seconds = 0.0;          ///< of this update
  double flops_of_sample = 0.0;  ///< throughput needs it
  MemoryUse memory = {};
  std::map<std::string, double> timers = {};  ///< seconds by name
  std::int64_t timer_level = 0;               ///< which of them are written: those of this level or less
};
/// 1: a few times in an update; 2: in every micro-step. As Megatron-LM's --timing-log-level counts.
std::int64_t timer_level_of(const std::string& timer);
/// `loss`: the whole loss' tag; empty where there are only its parts.
TensorboardScalars scalars_of(const std::string& loss, const Update& update, const UpdateFacts& facts);
TensorboardScalars scalars_of(const std::string& loss, const Evaluation& evaluation);
/// The same under the tags whose step is the samples trained on.
TensorboardScalars over_samples(const TensorboardScalars& scalars);

}  // namespace accrue
