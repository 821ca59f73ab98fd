// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/host_facts.h"

namespace accrue {

/// Facts about this machine and LibTorch: version, backends, CUDA devices or the loader's message why there are none.
HostFacts probe_facts();

}  // namespace accrue
