// SPDX-License-Identifier: Apache-2.0
// The schedule of rates and weight decays: from the plug-in's fields, in a state, and whose goes on after a load. As in
// Megatron-LM, the run's own must be equal to the saved one, unless an argument says which of the two wins.
// Source: Megatron-LM's OptimizerParamScheduler.load_state_dict().
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "accrue/megatron/megatron_lm_plugin.h"
#include "accrue/run/megatron/megatron_fields.h"
#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/weight_decay.h"

namespace accrue::megatron {

struct Schedule {
  LrCurve curve;
  LrCurve decoupled;  ///< of the embeddings
  WeightDecayCurve decay;
};

/// `global_batch`: samples of an update. `lr`, `weight_decay`: the optimizer's. Errors: throws std::invalid_argument
/// where fields contradict each other, or the run's length is not known.
Schedule make_schedule(const ResolvedMegatron& resolved, const MegatronLMDummyScheduler& scheduler,
                       std::int64_t global_batch, double lr, double weight_decay);

/// Each value as "schedule.NAME", under the name by which it is set.
std::map<std::string, std::string> texts_of(const Schedule& schedule);

/// With use_checkpoint_opt_param_scheduler the saved one, with override_opt_param_scheduler the run's own. Errors:
/// throws std::invalid_argument; with neither also for a value that differs.
Schedule schedule_after_load(const Schedule& own, const std::map<std::string, std::string>& saved,
                             const ResolvedMegatron& resolved);

}  // namespace accrue::megatron
