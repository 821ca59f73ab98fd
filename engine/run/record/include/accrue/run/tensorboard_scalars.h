// SPDX-License-Identifier: Apache-2.0
// What of a run goes into TensorBoard's files, under Megatron-LM's tags: while it trains, and from its record.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "accrue/run/run_event.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/tensorboard_file.h"

namespace accrue {

/// Models of text have the loss that Megatron-LM calls so.
std::string loss_tag(ModelKind kind);

/// What an update's own event does not say.
struct UpdateFacts {
  double batch_size = 0.0;  ///< samples of this update, over all ranks
  double loss_scale = 0.0;  ///< 0: none
  double world = 1.0;
  double seconds = 0.0;                       ///< of this update
  double flops_of_sample = 0.0;               ///< 0: unknown, and no throughput is written
  std::int64_t device_bytes = 0;              ///< 0: none
  std::map<std::string, double> timers = {};  ///< seconds by name
};
TensorboardScalars scalars_of(const std::string& loss, const Update& update, const UpdateFacts& facts);
TensorboardScalars scalars_of(const std::string& loss, const Evaluation& evaluation);
/// The same under the tags whose step is the samples trained on.
TensorboardScalars over_samples(const TensorboardScalars& scalars);

}  // namespace accrue
