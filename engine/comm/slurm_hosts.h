// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace accrue {

/// Returns the first host of Slurm's compressed list: "node[003-017,20],login" -> "node003". Empty if the text is not
/// such a list. Source: the form that `scontrol show hostnames` expands.
std::optional<std::string> first_slurm_host(std::string_view nodelist);

}  // namespace accrue
