// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/collective_purpose.h"

#include "accrue/run/base/name_of.h"

namespace accrue {

std::string_view to_string(CollectivePurpose purpose) {
  return name_of<CollectivePurpose::checkpoint>(
      purpose, {"unknown", "gradients", "parameters", "activations", "agreement", "check", "evaluation", "checkpoint"});
}

bool reduces_gradients(CollectivePurpose purpose, std::string_view axis, std::string_view op) {
  const bool said = purpose == CollectivePurpose::gradients || purpose == CollectivePurpose::unknown;
  return said && axis == "data" && (op == "all_reduce" || op == "reduce_scatter");
}

}  // namespace accrue
