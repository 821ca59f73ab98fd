// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/empty.h>

#include <cstdint>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue {

/// Returns the tensors of all ranks in rank order, [ranks, *own.shape]. Collective: the axis.
inline at::Tensor gathered(Communicator& axis, const at::Tensor& own,
                           CollectivePurpose purpose = Communicator::unsaid) {
  std::vector<std::int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), axis.size());
  at::Tensor all = at::empty(sizes, own.options());
  axis.all_gather(all, own, purpose);
  return all;
}

}  // namespace accrue
