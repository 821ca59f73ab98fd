// SPDX-License-Identifier: Apache-2.0
// Keys of other_megatron_args that apply to an Accelerator, named as in a spec. The other keys concern a whole run.
// Thread: any.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"
#include "accrue/run/megatron/megatron_fields.h"

namespace accrue::megatron {

/// Checks that an Accelerator uses every argument, and that each value is in its key's range. Errors, here and below:
/// throws std::invalid_argument.
void check_arguments(const ResolvedMegatron& resolved);

/// Sets recomputation from recompute_activations or the more detailed arguments.
void set_recompute(const ResolvedMegatron& resolved, ParallelSpec& parallel);
/// Sets the dropout from hidden_dropout and attention_dropout, which must be equal if both are set.
/// Returns whether either is.
bool set_dropout(const ResolvedMegatron& resolved, ModelSpec& model);
/// Sets the first rate of the warm-up, the tail of a WSD schedule and the rates of the embeddings. schedule.total must
/// be set, in samples. `global_batch`: samples of an update.
void set_rates(const ResolvedMegatron& resolved, std::int64_t global_batch, OptimizerSpec& optimizer,
               ScheduleSpec& schedule);

}  // namespace accrue::megatron
