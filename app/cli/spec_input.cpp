// SPDX-License-Identifier: Apache-2.0
#include "spec_input.h"

#include <cstdio>
#include <filesystem>
#include <set>

#include "accrue/run/base/program.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/host/probe_plugins.h"
#include "accrue/run/host/rank_program.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/weights/start_weights.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

void print(const std::vector<Finding>& findings) {
  for (const auto& finding : findings) say("%s\n", finding.text().c_str());
}

/// Most specs need only this host's cores; the rank program reports LibTorch's devices and backends.
HostFacts facts_for(const RunSpec& given) {
  const RunSpec spec = lower_megatron(given, environment).spec;
  const bool needs_probe = spec.launch.device == DeviceKind::cuda || spec.parallel.backend == BackendKind::gloo ||
                           spec.parallel.backend == BackendKind::nccl;
  if (!needs_probe) return local_facts();
  auto probed = probe_host(default_rank_program());
  if (probed) return std::move(*probed);
  say("accrue-run: %s\n", probed.error().text().c_str());
  return local_facts();
}

std::vector<PluginFacts> facts_of(const std::vector<std::string>& plugins) {
  return describe_plugins(default_rank_program(), {plugins.begin(), plugins.end()});
}

SpecReading reading_of(const SpecInput& input, const std::vector<PluginFacts>& libraries) {
  SpecReading reading = read_spec(std::filesystem::path(input.file));
  apply_sets(reading, input.sets, environment, libraries);
  return reading;
}

std::filesystem::path base_dir(const SpecInput& input) {
  return std::filesystem::absolute(input.file).parent_path();
}

/// Adds a key's place: in the file, or in the --set that set it.
void locate(std::vector<Finding>& findings, const SpecReading& reading, const SpecInput& input) {
  locate_findings(findings, reading);
  for (Finding& finding : findings)
    for (const std::string& set : input.sets)
      if (!finding.key.empty() && set.starts_with(finding.key) && set.find('=') == finding.key.size()) {
        finding.file = "--set " + set;
        finding.line = finding.column = 0;
      }
}

/// The ordinary keys now have the fields' values. The hooks stay, which have no key, and the fields that their presence
/// would otherwise make the plug-in's defaults and variables override.
RunSpec with_hooks_alone(const RunSpec& lowered) {
  SpecReading reading;
  reading.spec = lowered;
  reading.spec.megatron = {};
  for (const MegatronField& field : megatron_fields())
    if (field.group == MegatronGroup::hooks) field.spec_field().set(reading.spec, field.spec_field().get(lowered));
  if (!has_megatron(reading.spec)) return reading.spec;
  for (const MegatronField& field : megatron_fields())
    if (!field.environment.empty()) field.spec_field().set(reading.spec, field.spec_field().get(lowered));
  for (const SpecField& field : spec_fields()) reading.keys.push_back({.key = std::string(field.key)});
  keep_set_keys(reading);
  return reading.spec;
}

std::string section_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

/// Returns further errors, beside those of reading. Sections with an unreadable key have their defaults, which must not
/// be blamed; neither must anything that depends on a kind.
std::vector<Finding> further_errors(const SpecInput& input, const SpecReading& reading,
                                    const std::vector<PluginFacts>& libraries) {
  std::set<std::string> unread;
  for (const Finding& finding : reading.findings) {
    if (finding.severity != Severity::error) continue;
    if (finding.key.empty() || finding.key.ends_with(".kind")) return {};
    unread.insert(section_of(finding.key));
  }
  Preflight checked = preflight_files(reading.spec, facts_for(reading.spec), base_dir(input), libraries);
  locate(checked.findings, reading, input);
  std::erase_if(checked.findings, [&](const Finding& finding) {
    return finding.severity != Severity::error || unread.contains(section_of(finding.key));
  });
  return std::move(checked.findings);
}

}  // namespace

std::optional<PlannedInput> plan_from(const SpecInput& input) {
  const std::vector<PluginFacts> libraries = facts_of(input.plugins);
  SpecReading reading = reading_of(input, libraries);
  if (!reading.ok()) {
    print(reading.findings);
    print(further_errors(input, reading, libraries));
    return std::nullopt;
  }
  Preflight checked = preflight_files(reading.spec, facts_for(reading.spec), base_dir(input), libraries);
  locate(checked.findings, reading, input);
  print(reading.findings);
  print(checked.findings);
  if (!checked.plan) return std::nullopt;
  return PlannedInput{std::move(*checked.plan), libraries};
}

std::optional<RunPlan> plan_of(const RunSpec& spec, const std::filesystem::path& base_dir) {
  Preflight checked = preflight_files(spec, facts_for(spec), base_dir);
  std::erase_if(checked.findings, [](const Finding& finding) { return finding.severity != Severity::error; });
  print(checked.findings);
  return std::move(checked.plan);
}

std::optional<PlannedInput> branch_plan(const BranchPoint& from, const std::vector<std::string>& sets,
                                        std::vector<std::string> plugins) {
  if (plugins.empty()) {
    if (const auto same = check_unchanged(from.plugins); !same) {
      report(same.error());
      return std::nullopt;
    }
    for (const PluginRecord& each : from.plugins) plugins.push_back(each.file);
  }
  const std::vector<PluginFacts> libraries = facts_of(plugins);
  const SpecInput input{.file = (from.run_dir / "spec.toml").string(), .sets = sets};
  SpecReading reading;
  reading.spec = from.spec;
  apply_sets(reading, sets, environment, libraries);
  std::vector<Finding> findings = reading.findings;
  if (!has_errors(findings))
    findings = check_branch(from.spec, lower_megatron(reading.spec, environment, libraries).spec);
  std::optional<PlannedInput> plan;
  if (!has_errors(findings)) {
    // It goes on from a checkpoint, which has the weights: the folder that the run started from is not read.
    const SpecWithWeights start{.spec = reading.spec, .findings = {}, .fingerprint = from.weights_fingerprint};
    Preflight checked = preflight_started(start, facts_for(reading.spec), from.run_dir, libraries);
    findings = std::move(checked.findings);
    if (checked.plan)
      for (Finding& finding : check_branch(from, *checked.plan)) findings.push_back(std::move(finding));
    if (!has_errors(findings)) plan = PlannedInput{std::move(*checked.plan), libraries};
  }
  locate(findings, reading, input);
  print(findings);
  return plan;
}

std::optional<RunPlan> plan_beyond_memory(const SpecInput& input) {
  const std::vector<PluginFacts> libraries = facts_of(input.plugins);
  const SpecReading reading = reading_of(input, libraries);
  if (!reading.ok()) return std::nullopt;
  constexpr std::int64_t no_limit = std::int64_t{1} << 60;
  HostFacts facts = facts_for(reading.spec);
  facts.memory_bytes = no_limit;
  for (DeviceFacts& device : facts.cuda_devices) device.memory_bytes = no_limit;
  return preflight_files(reading.spec, facts, base_dir(input), libraries).plan;
}

std::optional<PlannedInput> limited_plan(const PlannedInput& plan, std::int64_t updates) {
  if (updates >= plan.totals.updates) return plan;
  RunSpec spec = with_hooks_alone(plan.spec);
  // The warm-up of a schedule in samples must end before it does.
  if (spec.schedule.clock == RateClock::samples) spec.schedule.total = plan.curve.total;
  spec.run.epochs.reset();
  spec.run.samples.reset();
  spec.run.tokens.reset();
  spec.run.updates = updates;
  if (spec.accumulation.dialect == Dialect::mmengine && !spec.accumulation.max_iters)
    spec.accumulation.max_iters = plan.totals.micro_steps;
  Preflight checked = preflight_files(spec, facts_for(spec), plan.base_dir, plan.libraries);
  if (checked.plan) return PlannedInput{std::move(*checked.plan), plan.libraries};
  print(checked.findings);
  return std::nullopt;
}

std::optional<LoweredMegatron> megatron_from(const SpecInput& input) {
  const std::vector<PluginFacts> libraries = facts_of(input.plugins);
  const SpecReading reading = reading_of(input, libraries);
  print(reading.findings);
  if (!reading.ok()) return std::nullopt;
  LoweredMegatron lowered = lower_megatron(reading.spec, environment, libraries);
  const bool fields_fit = !has_errors(lowered.findings);
  Preflight checked = preflight_files(reading.spec, facts_for(reading.spec), base_dir(input), libraries);
  remark_effects(lowered, checked.findings);
  lowered.findings = std::move(checked.findings);
  locate(lowered.findings, reading, input);
  print(lowered.findings);
  if (!fields_fit) return std::nullopt;
  return lowered;
}

std::optional<DialectComparison> comparison_from(const SpecInput& input) {
  const std::vector<PluginFacts> libraries = facts_of(input.plugins);
  const SpecReading reading = reading_of(input, libraries);
  print(reading.findings);
  if (!reading.ok()) return std::nullopt;
  const RunSpec spec = with_weights(reading.spec, base_dir(input)).spec;
  const auto data = scan_data(lower_megatron(spec, environment, libraries).spec, base_dir(input));
  if (!data) {
    say("accrue-run: %s\n", data.error().text().c_str());
    return std::nullopt;
  }
  DialectComparison comparison =
      compare_dialects(spec, facts_for(spec), *data, base_dir(input), compared_steps, libraries);
  for (const DialectPlan& answer : comparison.dialects)
    if (answer.plan) return comparison;
  print(comparison.of(reading.spec.accumulation.dialect)->findings);
  return std::nullopt;
}

}  // namespace accrue::cli
