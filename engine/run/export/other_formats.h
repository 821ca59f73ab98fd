// SPDX-License-Identifier: Apache-2.0
// What is no Python script.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/code_export.h"

namespace accrue::export_detail {

/// The arithmetic of an update, and what could not be carried over: for people, a line each.
std::vector<std::string> head_lines(const RunPlan& plan, CodeTarget target, const std::vector<NotCarried>& missing);
/// Lines as comments of Python and of a shell, the long ones broken.
std::string commented(const std::vector<std::string>& lines);
/// Text that stays on one line and within a comment.
std::string one_line(std::string text);

/// DeepSpeed's configuration. It has no comments: the list stands under "accrue", a key that DeepSpeed passes over.
std::string deepspeed_json(const RunPlan& plan, const std::vector<NotCarried>& missing);
/// A shell script that starts Megatron-LM's pretrain_gpt.py.
Result<std::string> megatron_script(const RunPlan& plan, const std::vector<NotCarried>& missing);

}  // namespace accrue::export_detail
