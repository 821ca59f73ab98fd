// SPDX-License-Identifier: Apache-2.0
// Two runs that train on one host at the same time: what each of their ranks may use. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/host_facts.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// Threads per rank, the same for both, so that sums of floats are taken in the same order in either run and their
/// difference is the effect of their specs alone: an equal share of the cores, or fewer if a spec asks for fewer. Empty
/// where the host has fewer cores than the runs have ranks together, or fewer CUDA devices where they use these: then
/// they train one after another.
std::optional<std::int64_t> pair_threads(const RunSpec& first, const RunSpec& second, const HostFacts& host);

/// The plan of one of the pair. Its spec stays what the user asked for; only a number that it asks for gives way.
RunPlan with_threads(RunPlan plan, std::int64_t threads);

}  // namespace accrue
