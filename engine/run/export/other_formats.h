// SPDX-License-Identifier: Apache-2.0
// Exports that are not Python scripts.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/export/code_export.h"

namespace accrue::export_detail {

/// Returns the arithmetic of an update and the settings that could not be exported, for people, one per line.
std::vector<std::string> head_lines(const RunPlan& plan, CodeTarget target, const std::vector<NotCarried>& missing);
/// Returns the lines as comments for Python and shell, with long ones wrapped.
std::string commented(const std::vector<std::string>& lines);
/// Makes text fit on one line and inside a comment.
std::string one_line(std::string text);

/// DeepSpeed's configuration. JSON has no comments, so the list is under "accrue", a key that DeepSpeed ignores.
std::string deepspeed_json(const RunPlan& plan, const std::vector<NotCarried>& missing);
/// A shell script that starts Megatron-LM's pretrain_gpt.py.
Result<std::string> megatron_script(const RunPlan& plan, const std::vector<NotCarried>& missing);

}  // namespace accrue::export_detail
