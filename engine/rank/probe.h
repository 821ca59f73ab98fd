// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/host_facts.h"

namespace accrue {

/// This machine's facts and LibTorch's: version, backends, CUDA devices or the loader's words why there are none.
HostFacts probe_facts();

}  // namespace accrue
