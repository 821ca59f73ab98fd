// SPDX-License-Identifier: Apache-2.0
// A spec as code for another tool: a script that trains the same model on the same samples in the same order, or the
// part that the other tool's configuration can express. Settings that cannot be exported are listed in the text and in
// the result. If a script would train incorrectly, the export fails and names the key.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

enum class CodeTarget { accelerate, lightning, deepspeed, megatron, pytorch };
/// Returns "accelerate", "lightning", "deepspeed", "megatron", "pytorch", in the order of the enum.
std::span<const std::string_view> code_targets();
std::string_view to_name(CodeTarget target);
/// Returns a title such as "Hugging Face Accelerate".
std::string_view title(CodeTarget target);

/// A key of the spec that the target cannot express, or to which it gives another meaning.
struct NotCarried {
  std::string key;
  std::string value;  ///< as spelled in a spec
  std::string why;    ///< effect in the target instead
  std::string text() const { return key + (value.empty() ? "" : " = " + value) + ": " + why; }
  bool operator==(const NotCarried&) const = default;
};

struct CodeExport {
  CodeTarget target = CodeTarget::pytorch;
  std::string file_name;  ///< "train.py", "deepspeed.json", "pretrain.sh"
  std::string text;
  std::vector<NotCarried> not_carried;
};

/// Pure. Relative data paths become absolute with the plan's base_dir. Errors (config): settings that the target cannot
/// train.
Result<CodeExport> export_code(const RunPlan& plan, CodeTarget target);
/// Errors (config): a file name by which Python would import the script itself instead of a module that it needs, such
/// as lightning.py or json.py.
Result<void> check_file_name(const CodeExport& code, const std::filesystem::path& file);
/// Returns {"to": ..., "file_name": ..., "not_carried": [{"key", "value", "why"}], "text": ...}.
std::string to_json(const CodeExport& code);

}  // namespace accrue
