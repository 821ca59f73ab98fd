// SPDX-License-Identifier: Apache-2.0
// Keys of other_megatron_args that an Accelerator obeys, named as in a spec. The other keys concern a whole run.
// Thread: any.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"
#include "accrue/run/megatron/megatron_fields.h"

namespace accrue::megatron {

/// Every argument is one that an Accelerator uses, and has a value of its key. Errors, of all: throws
/// std::invalid_argument.
void check_arguments(const ResolvedMegatron& resolved);

/// recompute_activations, or the arguments that say more.
void set_recompute(const ResolvedMegatron& resolved, ParallelSpec& parallel);
/// hidden_dropout and attention_dropout, which are one here. Returns whether they say anything.
bool set_dropout(const ResolvedMegatron& resolved, ModelSpec& model);
/// Where the warm-up starts, the tail of a WSD and the rates of the embeddings; schedule.total is known, in samples, of
/// which an update has `global_batch`.
void set_rates(const ResolvedMegatron& resolved, std::int64_t global_batch, OptimizerSpec& optimizer,
               ScheduleSpec& schedule);

}  // namespace accrue::megatron
