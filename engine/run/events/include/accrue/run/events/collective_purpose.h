// SPDX-License-Identifier: Apache-2.0
// Purpose of a collective or a message. Different uses share axes and operations: gradients, the exactness check and
// agreements of the ranks all use the data axis. So each call states its purpose, and the record of a run keeps it.
#pragma once

#include <cstdint>
#include <string_view>

namespace accrue {

enum class CollectivePurpose : std::uint8_t {
  unknown,      ///< of a record without purposes
  gradients,    ///< sums or averages the gradients of backwards
  parameters,   ///< weights and buffers: from rank 0 at the start, from the ranks that updated them, for the final file
  activations,  ///< between ranks that compute one model together, including their gradients
  agreement,    ///< counts, norms and flags for common decisions of all ranks, and everything else
  check,        ///< comparisons between ranks that reveal mistakes: the exactness check, schedules, batches
  evaluation,
  checkpoint
};

/// Returns "unknown", "gradients", "parameters", "activations", "agreement", "check", "evaluation" or "checkpoint".
std::string_view to_string(CollectivePurpose purpose);

/// Whether a call reduces gradients over the replicas. In a record without purposes every sum along the data axis
/// counts, including those of an exactness check.
bool reduces_gradients(CollectivePurpose purpose, std::string_view axis, std::string_view op);

}  // namespace accrue
