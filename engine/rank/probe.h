// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/facts/host_facts.h"

namespace accrue {

/// Returns facts about this machine and LibTorch: version, backends, CUDA devices or the loader's message about their
/// absence.
HostFacts probe_facts();

}  // namespace accrue
