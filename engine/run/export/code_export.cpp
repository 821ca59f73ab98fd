// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/export/code_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/version.h"
#include "accrue/run/fields/choice_names.h"
#include "export_rules.h"
#include "json_text.h"
#include "other_formats.h"
#include "python_literal.h"
#include "script_text.h"

namespace accrue {

namespace {

using namespace export_detail;
using namespace std::string_view_literals;

constexpr std::string_view names[] = {"accelerate", "lightning", "deepspeed", "megatron", "pytorch"};
constexpr std::string_view titles[] = {"Hugging Face Accelerate", "Lightning", "DeepSpeed", "Megatron-LM", "PyTorch"};

/// Adds the blocks of the modules that a script uses.
void add_modules(ScriptText& text, CodeTarget target, std::string_view script) {
  for (const std::string_view module :
       {"contextlib", "csv", "functools", "itertools", "json", "math", "os", "re", "time"})
    if (script.find(fmt::format("{}.", module)) != std::string_view::npos)
      text.blocks.insert(fmt::format("uses={}", module));
  text.blocks.insert(fmt::format("tool={}", to_name(target)));
}

void add(std::string& text, std::string_view name, const std::string& value, std::string_view comment = {}) {
  const std::string line = fmt::format("{} = {}", name, value);
  text += comment.empty() ? line + "\n" : fmt::format("{:<32}  # {}\n", line, comment);
}

std::string whole(std::int64_t number) {
  return std::to_string(number);
}

/// Writes an integer without a fraction, as in the spec.
std::string position(double number) {
  const auto count = static_cast<std::int64_t>(number);
  return static_cast<double>(count) == number ? whole(count) : python(number);
}

std::string model_constants(const ModelSpec& model) {
  std::string text;
  if (model.kind == ModelKind::gpt) {
    for (const auto& [name, value] :
         {std::pair{"LAYERS", model.layers}, std::pair{"WIDTH", model.width}, std::pair{"HEADS", model.heads},
          std::pair{"CONTEXT", model.context}, std::pair{"VOCABULARY", model.vocabulary}})
      add(text, name, whole(value));
    add(text, "DROPOUT", python(model.dropout));
    return text;
  }
  add(text, "INPUTS", whole(model.inputs));
  add(text, "OUTPUTS", whole(model.outputs));
  if (model.kind == ModelKind::mlp) add(text, "HIDDEN", "[" + joined(model.hidden) + "]");
  return text;
}

std::string constants(const RunPlan& plan, CodeTarget target) {
  const RunSpec& spec = plan.spec;
  const ScriptWindows windows = script_windows(plan);
  std::string text;
  add(text, "RANKS", whole(plan.order.world), "processes that share the samples");
  add(text, "N", whole(windows.steps), "micro-steps of a full window");
  add(text, "MICRO_BATCH", whole(plan.order.micro_batch), "samples of a process and micro-step");
  add(text, "BATCHES", whole(windows.batches), "of an epoch, on each process");
  add(text, "MICRO_STEPS", whole(windows.micro_steps), "of the run");
  if (target == CodeTarget::lightning) add(text, "UPDATES", whole(plan.totals.updates));
  add(text, "SAMPLES", whole(plan.order.samples), "to train on");
  add(text, "SEED", whole(spec.run.seed));
  add(text, "THREADS", whole(plan.threads_per_rank));
  if (plan.order.shuffle || spec.data.kind == DataKind::synthetic) add(text, "MASK", "(1 << 64) - 1");
  text += "\n" + model_constants(spec.model) + "\n";
  if (!spec.data.path.empty()) add(text, "DATA", python(data_path(spec.data, plan.base_dir).string()));
  if (spec.data.kind == DataKind::csv) {
    add(text, "LABEL_COLUMNS", python_list(spec.data.label_columns));
    std::vector<std::string> classes;
    if (has_named_classes(plan.data))
      for (const ClassCount& each : plan.data.classes) classes.push_back(each.name);
    add(text, "CLASSES", python_list(classes), "labels that are words");
  }
  add(text, "LR", python(plan.curve.lr));
  if (has_lowest_rate(plan.curve.kind)) add(text, "MIN_LR", python(plan.curve.min_lr));
  if (plan.curve.warmup > 0.0 || plan.curve.kind != ScheduleKind::constant)
    add(text, "WARMUP", position(plan.curve.warmup), "schedule positions");
  if (has_end(plan.curve.kind)) add(text, "TOTAL", whole(plan.curve.total), "schedule positions");
  if (spec.optimizer.weight_decay > 0.0 || !spec.optimizer.scaled_lr.empty())  // groups of parameters name it
    add(text, "WEIGHT_DECAY", python(spec.optimizer.weight_decay));
  const bool clips = spec.optimizer.clip_norm > 0.0 && plan.knobs.clip_stage == ClipStage::in_update;
  if (clips || target == CodeTarget::lightning) add(text, "CLIP", clips ? python(spec.optimizer.clip_norm) : "None");
  return text;
}

std::string how_to_run(const RunPlan& plan, CodeTarget target) {
  if (plan.order.world == 1) return "python train.py";
  if (target == CodeTarget::accelerate)
    return fmt::format("accelerate launch {}--num_processes {} train.py",
                       plan.spec.launch.device == DeviceKind::cpu ? "--cpu " : "", plan.order.world);
  return fmt::format("torchrun --standalone --nproc-per-node {} train.py", plan.order.world);
}

Result<std::string> python_script(const RunPlan& plan, CodeTarget target, const std::vector<NotCarried>& missing) {
  if (auto possible = check_script(plan); !possible) return tl::unexpected(possible.error());
  std::string body;
  ScriptText script = script_text(plan);
  for (const std::string_view part :
       {"order"sv, "data"sv, "model"sv, "weights"sv, "windows"sv, "optimizer"sv, "report"sv, to_name(target)})
    body += rendered(part, script);
  add_modules(script, target, body);
  auto lines = head_lines(plan, target, missing);
  lines.insert(lines.begin() + 2, {"Run it:  " + how_to_run(plan, target),
                                   "It prints a line of JSON for each update, with the loss that Accrue reports.",
                                   "Its first weights are those of Accrue's run where PyTorch draws the random numbers "
                                   "of LibTorch 2.11, with which Accrue trains.",
                                   ""});
  // The second line says the encoding: Python would take a run's name there, such as "recoding: a", for one.
  return "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n" + commented(lines) + "\n" + rendered("imports", script) +
         constants(plan, target) + "\n" + body;
}

}  // namespace

namespace export_detail {

std::string commented(const std::vector<std::string>& lines) {
  constexpr std::size_t width = 100;
  std::string text;
  for (const std::string& line : lines) {
    // A continuation line is indented further.
    const std::string further(std::min(line.find_first_not_of(' '), line.size()) + 4, ' ');
    std::string rest = line;
    while (rest.size() > width) {
      const auto space = rest.rfind(' ', width);
      if (space == std::string::npos || space < further.size()) break;
      text += "# " + rest.substr(0, space) + "\n";
      rest = further + rest.substr(space + 1);
    }
    text += rest.empty() ? "#\n" : "# " + rest + "\n";
  }
  return text;
}

std::string one_line(std::string text) {
  for (char& each : text)
    if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f) each = ' ';
  return text;
}

std::vector<std::string> head_lines(const RunPlan& plan, CodeTarget target, const std::vector<NotCarried>& missing) {
  const std::string name = plan.spec.run.name.empty() ? "A run of Accrue" : plan.spec.run.name;
  std::vector<std::string> lines = {
      one_line(fmt::format("{}, for {}. Written by Accrue {}.", name, title(target), version())),
      one_line(plan.arithmetic())};
  lines.push_back(missing.empty() ? "Everything that the spec sets is carried over." : "Not carried over:");
  for (const NotCarried& each : missing) lines.push_back("  " + one_line(each.text()));
  return lines;
}

}  // namespace export_detail

std::span<const std::string_view> code_targets() {
  return names;
}

std::string_view to_name(CodeTarget target) {
  return names[static_cast<std::size_t>(target)];
}

std::string_view title(CodeTarget target) {
  return titles[static_cast<std::size_t>(target)];
}

Result<CodeExport> export_code(const RunPlan& plan, CodeTarget target) {
  CodeExport code{.target = target, .file_name = "train.py", .text = {}, .not_carried = not_carried(plan, target)};
  Result<std::string> text;
  switch (target) {
    case CodeTarget::deepspeed:
      code.file_name = "deepspeed.json";
      text = deepspeed_json(plan, code.not_carried);
      break;
    case CodeTarget::megatron:
      code.file_name = "pretrain.sh";
      text = megatron_script(plan, code.not_carried);
      break;
    default:
      text = python_script(plan, target, code.not_carried);
      break;
  }
  if (!text) return tl::unexpected(text.error());
  code.text = std::move(*text);
  return code;
}

Result<void> check_file_name(const CodeExport& code, const std::filesystem::path& file) {
  if (file.extension() != ".py") return {};
  const std::string module = file.stem().string();
  std::istringstream lines(code.text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string keyword, name;
    words >> keyword >> name;
    if ((keyword != "import" && keyword != "from") || name.substr(0, name.find('.')) != module) continue;
    return fail(ErrorCode::config,
                fmt::format("the script imports {0}, and a script named {0}.py would import itself", module),
                file.string(), "Choose another name, such as " + code.file_name);
  }
  return {};
}

std::string to_json(const CodeExport& code) {
  Json json;
  json["to"] = to_name(code.target);
  json["file_name"] = code.file_name;
  json["not_carried"] = Json::array();
  for (const NotCarried& each : code.not_carried)
    json["not_carried"].push_back({{"key", each.key}, {"value", each.value}, {"why", each.why}});
  json["text"] = code.text;
  return json_text(json, 2);
}

}  // namespace accrue
