// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/export/code_export.h"
#include "script_template.h"

namespace accrue::export_detail {

/// Returns the blocks and values of a plan's script, for every tool.
ScriptText script_text(const RunPlan& plan);

}  // namespace accrue::export_detail
