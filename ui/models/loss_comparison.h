// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the losses of two runs can be compared: they are of the same kind, on the same data.
#pragma once

#include <string>

#include "accrue/run/run_spec.h"

namespace accrue::ui {

/// The first key because of which the losses of two specs mean different things; empty if they can be compared.
std::string lossDifference(const accrue::RunSpec& one, const accrue::RunSpec& other);

}  // namespace accrue::ui
