// SPDX-License-Identifier: Apache-2.0
// What a collective or a message is for. Uses share axes and operations: gradients, the exactness check and what the
// ranks agree on all go along data. So each call says its purpose, and the record of a run keeps it.
#pragma once

#include <cstdint>
#include <string_view>

namespace accrue {

enum class CollectivePurpose : std::uint8_t {
  unknown,      ///< of a record that does not say
  gradients,    ///< sums or averages what backwards have left
  parameters,   ///< weights and buffers: from rank 0 at the start, of the ranks that updated them, for the final file
  activations,  ///< between ranks that compute one model together; their gradients as well
  agreement,    ///< counts, norms and flags by which all ranks decide alike, and whatever names none of the others
  check,        ///< what ranks compare to find a mistake: the exactness check, their schedules, their batches
  evaluation,
  checkpoint
};

/// "unknown", "gradients", "parameters", "activations", "agreement", "check", "evaluation", "checkpoint".
std::string_view to_string(CollectivePurpose purpose);

/// Whether a call reduces gradients over the replicas. In a record that does not say what calls are for, every sum
/// along data counts, that of an exactness check included.
bool reduces_gradients(CollectivePurpose purpose, std::string_view axis, std::string_view op);

}  // namespace accrue
