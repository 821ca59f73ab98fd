// SPDX-License-Identifier: Apache-2.0
// A list of checks: each covers one subject and adds its findings, so that one pass shows everything. There are three
// phases: single values, their combinations, and (only without errors) the plan itself.
#include "accrue/run/preflight/preflight.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/weights/start_weights.h"
#include "plan_derivation.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue {

namespace preflight_detail {

void Findings::add(Severity severity, std::string_view key, std::string message, const Text& found,
                   const Text& expected, const Text& fix) {
  all.push_back({.severity = severity,
                 .key = std::string(key),
                 .message = std::move(message),
                 .found = found.get().value_or(""),
                 .expected = expected.get().value_or(""),
                 .fix_value = fix.get()});
}

void check_values(const RunSpec& spec, Findings& findings) {
  for (const SpecField& field : spec_fields()) {
    if (field.section() == "megatron") continue;  // checked together with the environment and the arguments
    const SpecValue value = field.get(spec);
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (auto problem = spec_detail::check_value(field, value)) findings.all.push_back(std::move(*problem));
  }
}

std::int64_t world_of(const RunSpec& spec) {
  return spec.parallel.data * spec.parallel.tensor * spec.parallel.pipeline;
}

std::int64_t threads_of(const RunSpec& spec, const HostFacts& host) {
  const std::int64_t share = std::max<std::int64_t>(1, host.cores / std::max<std::int64_t>(1, world_of(spec)));
  return spec.launch.threads_per_rank.value_or(share);
}

// Ranks of one host share four fifths of its memory; each CUDA rank has its own device.
std::int64_t memory_of_rank(const RunSpec& spec, const HostFacts& host) {
  if (spec.launch.device == DeviceKind::cuda && !host.cuda_devices.empty())
    return std::ranges::min_element(host.cuda_devices, {}, &DeviceFacts::memory_bytes)->memory_bytes / 5 * 4;
  return host.memory_bytes / std::max<std::int64_t>(1, world_of(spec)) / 5 * 4;
}

BackendKind backend_of(const RunSpec& spec) {
  if (spec.parallel.backend != BackendKind::automatic) return spec.parallel.backend;
  return spec.launch.device == DeviceKind::cuda ? BackendKind::nccl : BackendKind::shm;
}

namespace {

std::filesystem::path absolute_dir(const std::filesystem::path& dir) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(dir.empty() ? "." : dir, error);
  return (error ? dir : absolute).lexically_normal();
}

void add_data_error(const DataSpec& data, const Error& error, Findings& findings) {
  const char* files = data.kind == DataKind::indexed ? "data.paths" : "data.path";
  const bool keyed = find_field(error.where) != nullptr;
  std::string hint = error.hint;
  if (hint.ends_with('.')) hint.pop_back();
  if (!hint.empty()) hint.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(hint.front())));
  findings.error(keyed ? error.where : files, error.message + (hint.empty() ? "" : "; ") + hint,
                 keyed ? "" : error.where);
}

// Attributes a finding about a key that the plug-in set to the field that set it.
void name_setters(const LoweredMegatron& lowered, Findings& findings) {
  std::vector<Finding> named = lowered.findings;
  for (Finding& finding : findings.all) {
    const LoweredKey* setter = lowered.setter_of(finding.key);
    if (setter != nullptr) {
      const SpecField* field = find_field("megatron." + setter->by);
      const std::string key(field == nullptr ? "megatron.other_megatron_args" : field->key);
      const auto known = [&](const Finding& other) { return other.key == key && other.severity == Severity::error; };
      if (finding.severity == Severity::error && std::ranges::any_of(lowered.findings, known)) continue;
      finding.message = "sets " + finding.key + ": " + finding.message;
      if (field == nullptr || field->get(lowered.spec) != setter->value) finding.fix_value.reset();
      finding.key = key;
    }
    named.push_back(std::move(finding));
  }
  findings.all = std::move(named);
}

// If the data cannot be read, the checks that do not need them still run.
Preflight check(const RunSpec& given, const HostFacts& host, const Result<DataFacts>& data,
                const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries) {
  Findings findings;
  check_values(given, findings);
  const bool in_range = !has_errors(findings.all);
  LoweredMegatron lowered =
      in_range ? lower_megatron(given, environment_of(host), libraries) : LoweredMegatron{.spec = given};
  for (Finding& finding : check_plugins(given.megatron, libraries)) lowered.findings.push_back(std::move(finding));
  const RunSpec& spec = lowered.spec;
  const bool fields_fit = !has_errors(lowered.findings);
  bool kinds_fit = false;
  if (in_range) {
    check_model(spec, findings);
    check_optimizer(spec, findings);
    check_run(spec, findings);
    check_accumulation(spec, findings);
    check_parallel(spec, host, findings);
    kinds_fit = check_kinds(spec, findings);
  }
  if (kinds_fit && data) check_data(spec, *data, findings);
  if (kinds_fit && !data) add_data_error(spec.data, data.error(), findings);
  // After this point the spec itself has no errors.
  if (fields_fit && !has_errors(findings.all)) check_length(spec, *data, findings);
  Preflight result;
  if (fields_fit && !has_errors(findings.all)) {
    RunPlan plan = derive_plan(
        {spec, absolute_dir(base_dir), *data, backend_of(spec), threads_of(spec, host), memory_of_rank(spec, host)});
    check_plan(plan, host, findings);
    if (!has_errors(findings.all)) result.plan = std::move(plan);
  }
  name_setters(lowered, findings);
  result.findings = std::move(findings.all);
  return result;
}

}  // namespace

}  // namespace preflight_detail

Preflight preflight(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                    const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries) {
  return preflight_detail::check(spec, host, data, base_dir, libraries);
}

Preflight preflight_files(const RunSpec& spec, const HostFacts& host, const std::filesystem::path& base_dir,
                          std::span<const PluginFacts> libraries) {
  preflight_detail::Findings values;
  preflight_detail::check_values(spec, values);
  if (has_errors(values.all)) return {std::nullopt, std::move(values.all)};
  return preflight_started(with_weights(spec, base_dir), host, base_dir, libraries);
}

Preflight preflight_started(const SpecWithWeights& start, const HostFacts& host, const std::filesystem::path& base_dir,
                            std::span<const PluginFacts> libraries) {
  preflight_detail::Findings values;
  preflight_detail::check_values(start.spec, values);
  if (has_errors(values.all)) return {std::nullopt, std::move(values.all)};
  const RunSpec lowered = lower_megatron(start.spec, environment_of(host), libraries).spec;
  Preflight result = preflight_detail::check(start.spec, host, scan_data(lowered, base_dir), base_dir, libraries);
  result.findings.insert(result.findings.begin(), start.findings.begin(), start.findings.end());
  if (has_errors(start.findings)) result.plan.reset();
  if (result.plan) result.plan->weights_fingerprint = start.fingerprint;
  return result;
}

}  // namespace accrue
