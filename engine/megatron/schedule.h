// SPDX-License-Identifier: Apache-2.0
// The schedule of rates and weight decays: made from the plug-in's fields, saved in a state, and compared after a load.
// As in Megatron-LM, the current schedule must equal the saved one, unless an argument chooses one of the two.
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
/// if fields contradict each other or the run's length is unknown.
Schedule make_schedule(const ResolvedMegatron& resolved, const MegatronLMDummyScheduler& scheduler,
                       std::int64_t global_batch, double lr, double weight_decay);

/// Returns each value as "schedule.NAME", with the name of its setting.
std::map<std::string, std::string> texts_of(const Schedule& schedule);

/// Returns the saved schedule with use_checkpoint_opt_param_scheduler, otherwise the current one. Errors: throws
/// std::invalid_argument for an unreadable one and, unless override_opt_param_scheduler is set, for one that differs.
Schedule schedule_after_load(const Schedule& own, const std::map<std::string, std::string>& saved,
                             const ResolvedMegatron& resolved);

}  // namespace accrue::megatron
