// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "accrue/comm/communicator.h"
#include "accrue/run/base/result.h"
#include "group.h"

namespace c10d {
class Store;
}

namespace accrue {

/// Makes a group over LibTorch's Gloo. store: with the group's own prefix. Collective: the group. Errors: rendezvous.
Result<std::unique_ptr<Communicator>> make_gloo_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store);

}  // namespace accrue
