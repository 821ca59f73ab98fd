// SPDX-License-Identifier: Apache-2.0
// Resources of the ranks of two runs that train on one host at the same time. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Returns the threads per rank, equal for both runs, so that both add floats in the same order and differ only by
/// their specs: an equal share of the cores, or fewer if a spec requests fewer. Empty if the host has fewer cores than
/// both runs have ranks, or too few CUDA devices: the runs then train one after another.
std::optional<std::int64_t> pair_threads(const RunSpec& first, const RunSpec& second, const HostFacts& host);

/// Returns the plan of one of the pair. Its spec stays as the user wrote it; only an explicit number of threads is
/// replaced.
RunPlan with_threads(RunPlan plan, std::int64_t threads);

}  // namespace accrue
