// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/export/code_export.h"
#include "script_template.h"

namespace accrue::export_detail {

/// Which blocks of the templates a plan's script has, and their values. Every tool's are in it.
ScriptText script_text(const RunPlan& plan);

}  // namespace accrue::export_detail
