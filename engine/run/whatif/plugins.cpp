// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/whatif/plugins.h"

#include <algorithm>
#include <numeric>

#include "accrue/run/base/name_of.h"
#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/plan/forecast.h"
#include "accrue/run/preflight/preflight.h"

namespace accrue {

namespace {

using enum Capability;
using enum Relation;

struct PluginRow {
  std::string_view help;
  std::vector<std::string_view> keys;
  std::vector<CapabilitySetting> off;
};

/// In the order of Capability.
const PluginRow& row_of(Capability plugin) {
  static const std::array<PluginRow, plugin_count> rows = {{
      {"Replicas of the model train on different samples and reduce their gradients.",
       {"parallel.data"},
       {{"parallel.data", "1"}, {"parallel.zero", "0"}, {"parallel.overlap_param_gather", "false"}}},
      {"Ranks share the matrices of every layer and exchange activations.",
       {"parallel.tensor"},
       {{"parallel.tensor", "1"}, {"parallel.sequence", "false"}, {"parallel.distribute_saved_activations", "false"}}},
      {"Tensor-parallel ranks also share the positions of a sequence between the matrices.",
       {"parallel.sequence"},
       {{"parallel.sequence", "false"}}},
      {"Each stage holds some of the blocks; micro-steps pass through the stages in turn.",
       {"parallel.pipeline", "parallel.virtual_pipeline", "parallel.pipeline_order"},
       {{"parallel.pipeline", "1"},
        {"parallel.virtual_pipeline", "1"},
        {"parallel.pipeline_order", "1f1b"},
        {"parallel.pipeline_group", ""}}},
      {"Replicas share the optimizer's state and its work.",
       {"parallel.zero"},
       {{"parallel.zero", "0"}, {"parallel.overlap_param_gather", "false"}}},
      {"The backward computes activations again in place of keeping them.",
       {"parallel.recompute", "parallel.recompute_method", "parallel.recompute_layers"},
       {{"parallel.recompute", "none"},
        {"parallel.recompute_method", "uniform"},
        {"parallel.recompute_layers", "1"},
        {"parallel.distribute_saved_activations", "false"}}},
      {"Parameters and activations take two bytes a number; the optimizer keeps a float32 copy.",
       {"model.dtype"},
       {{"model.dtype", "float32"}}},
  }};
  return rows[static_cast<std::size_t>(plugin)];
}

constexpr std::string_view undivided = "needs an undivided model: parallel.tensor and parallel.pipeline must be 1";
constexpr std::string_view unsharded = "needs the whole gradient on every rank: parallel.zero must be 0";
constexpr std::string_view transformers_only = "\"mlp\" is not divided: only models of tokens are";

constexpr CapabilityRule rules[] = {
    {sequence, needs, tensor, "parallel.sequence", "does nothing without tensor-parallel ranks"},
    {zero, needs, data, "parallel.zero", "does nothing without data-parallel ranks"},
    {tensor, excludes, dense_model, "model.kind", transformers_only},
    {tensor, excludes, exactness_checks, "evaluate.exactness_every", undivided},
    {tensor, excludes, bug, "teaching.bug", undivided},
    {tensor, excludes, recorded_weights, "run.record_weights", undivided},
    {tensor, excludes, early_clipping, "accumulation.clip_stage", undivided},
    {pipeline, excludes, dense_model, "model.kind", transformers_only},
    {recompute, excludes, dense_model, "parallel.recompute",
     "computes blocks of a transformer again, and this model has none"},
    {pipeline, excludes, exactness_checks, "evaluate.exactness_every", undivided},
    {pipeline, excludes, bug, "teaching.bug", undivided},
    {pipeline, excludes, recorded_weights, "run.record_weights", undivided},
    {pipeline, excludes, early_clipping, "accumulation.clip_stage", undivided},
    {zero, excludes, exactness_checks, "evaluate.exactness_every", unsharded},
    {zero, excludes, bug, "teaching.bug", unsharded},
    {zero, excludes, early_clipping, "accumulation.clip_stage", unsharded},
    {zero, excludes, early_reduction, "accumulation.reduce_when", unsharded},
};

template <typename Fits>
std::string smallest_degree(std::int64_t most, const Fits& fits) {
  for (std::int64_t degree = 2; degree <= most; ++degree)
    if (fits(degree)) return std::to_string(degree);
  return "2";
}

std::string sentence(const Finding& finding) {
  return finding.key + " " + finding.message;
}

/// Returns the first error of a spec that another does not have; empty if there is none.
std::string first_new_error(const std::vector<Finding>& findings, const std::vector<Finding>& known) {
  for (const Finding& finding : findings) {
    const auto same = [&finding](const Finding& other) {
      return other.key == finding.key && other.message == finding.message;
    };
    if (finding.severity == Severity::error && std::ranges::none_of(known, same)) return sentence(finding);
  }
  return {};
}

std::string unmet_need(Capability plugin, const RunSpec& spec) {
  for (const CapabilityRule& rule : rules)
    if (rule.plugin == plugin && rule.relation == needs && !is_on(rule.other, spec)) return rule.text();
  return {};
}

RankCost less(RankCost with, const RankCost& without) {
  for (const auto bytes : {&RankCost::parameters, &RankCost::gradients, &RankCost::optimizer, &RankCost::activations,
                           &RankCost::buffers, &RankCost::process, &RankCost::chunks_in_flight})
    with.*bytes -= without.*bytes;
  for (std::size_t axis = 0; axis < with.wire.size(); ++axis) with.wire[axis] -= without.wire[axis];
  return with;
}

}  // namespace

std::span<const Capability> all_plugins() {
  return std::span(all_capabilities).first(plugin_count);
}

std::string_view to_string(Capability capability) {
  return name_of<early_reduction>(
      capability, {"data", "tensor", "sequence", "pipeline", "zero", "recompute", "precision", "dense_model",
                   "exactness_checks", "bug", "recorded_weights", "early_clipping", "early_reduction"});
}

std::string_view title_of(Capability capability) {
  return name_of<early_reduction>(
      capability, {"Data parallelism", "Tensor parallelism", "Sequence parallelism", "Pipeline", "ZeRO",
                   "Recomputation", "Half precision", "Dense model", "Exactness checks", "Deliberate bug",
                   "Recorded weights", "Early clipping", "Early reduction"});
}

std::string_view help_of(Capability plugin) {
  return row_of(plugin).help;
}

std::span<const std::string_view> keys_of(Capability plugin) {
  return row_of(plugin).keys;
}

bool is_on(Capability capability, const RunSpec& spec) {
  const AccumulationKnobs knobs = resolve_knobs(spec);
  switch (capability) {
    case data:
      return spec.parallel.data > 1;
    case tensor:
      return spec.parallel.tensor > 1;
    case sequence:
      return spec.parallel.sequence;
    case pipeline:
      return spec.parallel.pipeline > 1;
    case zero:
      return spec.parallel.zero > 0;
    case recompute:
      return spec.parallel.recompute != RecomputeKind::none;
    case precision:
      return spec.model.dtype == Dtype::bfloat16 || spec.model.dtype == Dtype::float16;
    case dense_model:
      return !is_transformer(spec.model.kind);
    case exactness_checks:
      return spec.evaluate.exactness_every > 0;
    case bug:
      return spec.teaching.bug != Bug::none;
    case recorded_weights:
      return spec.run.record_weights;
    case early_clipping:
      return spec.optimizer.clip_norm > 0.0 && knobs.clip_stage == ClipStage::every_micro_step;
    case early_reduction:
      return knobs.reduce_when == ReduceWhen::every_micro_step;
  }
  return false;
}

std::vector<CapabilitySetting> settings_on(Capability capability, const RunSpec& spec) {
  const ModelSpec& model = spec.model;
  switch (capability) {
    case data:
      return {{"parallel.data", "2"}};
    case tensor:
      return {{"parallel.tensor", smallest_degree(model.heads, [&model](std::int64_t ranks) {
                 return check_share(model, ranks, 1).empty();
               })}};
    case sequence:
      return {{"parallel.sequence", "true"}};
    case pipeline:
      return {{"parallel.pipeline", smallest_degree(model.layers, [&model](std::int64_t stages) {
                 return check_share(model, 1, stages).empty();
               })}};
    case zero:
      return {{"parallel.zero", "1"}};
    case recompute:
      // Without dropout, attention keeps almost nothing that recomputation could save.
      return {{"parallel.recompute", model.dropout > 0 ? "selective" : "full"}};
    case precision:
      return {{"model.dtype", "bfloat16"}};
    case dense_model:
      return {{"model.kind", "mlp"}};
    case exactness_checks:
      return {{"evaluate.exactness_every", "1"}};
    case bug:
      return {{"teaching.bug", "no_division"}};
    case recorded_weights:
      return {{"run.record_weights", "true"}};
    case early_clipping:
      return {{"accumulation.clip_stage", "every_micro_step"}, {"optimizer.clip_norm", "1"}};
    case early_reduction:
      return {{"accumulation.reduce_when", "every_micro_step"}};
  }
  return {};
}

std::vector<CapabilitySetting> settings_off(Capability plugin) {
  return row_of(plugin).off;
}

RunSpec with_settings(RunSpec spec, std::span<const CapabilitySetting> settings) {
  std::vector<Finding> ignored;  // the tables above write valid values
  for (const CapabilitySetting& setting : settings)
    set_field(spec, std::string(setting.key) + "=" + setting.value, ignored);
  return spec;
}

RunSpec switched(const RunSpec& spec, Capability plugin) {
  return with_settings(spec, is_on(plugin, spec) ? settings_off(plugin) : settings_on(plugin, spec));
}

std::string CapabilityRule::text() const {
  return std::string(key) + " " + std::string(why);
}

std::span<const CapabilityRule> capability_rules() {
  return rules;
}

const CapabilityRule* rule_between(Capability one, Capability other) {
  for (const CapabilityRule& rule : rules)
    if ((rule.plugin == one && rule.other == other) || (rule.plugin == other && rule.other == one)) return &rule;
  for (const CapabilityRule& rule : rules) {
    if (rule.relation != needs || (rule.plugin != one && rule.plugin != other)) continue;
    const CapabilityRule* inherited = rule_between(rule.other, rule.plugin == one ? other : one);
    if (inherited && inherited->relation == excludes) return inherited;
  }
  return nullptr;
}

RankCost cost_of(const RunPlan& plan) {
  return *std::ranges::max_element(plan.stages, {}, &RankCost::total);
}

std::int64_t sent_bytes(const RankCost& cost) {
  return std::accumulate(cost.wire.begin(), cost.wire.end(), std::int64_t{0});
}

PluginComparison compare_plugins(const RunSpec& spec, const HostFacts& host, const DataFacts& facts,
                                 const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries) {
  const Preflight now = preflight(spec, host, facts, base_dir, libraries);
  PluginComparison comparison;
  const bool known = cost_is_known(spec);
  if (now.plan && known) comparison.now = cost_of(*now.plan);
  for (const Capability plugin : all_plugins()) {
    PluginState state{.plugin = plugin, .on = is_on(plugin, spec)};
    const Preflight other = preflight(switched(spec, plugin), host, facts, base_dir, libraries);
    if (state.on) state.fault = first_new_error(now.findings, other.findings);
    if (!state.on) state.locked = unmet_need(plugin, spec);
    if (!state.on && state.locked.empty()) state.locked = first_new_error(other.findings, now.findings);
    if (now.plan && other.plan && known) {
      const RankCost switched_cost = cost_of(*other.plan);
      state.difference = state.on ? less(*comparison.now, switched_cost) : less(switched_cost, *comparison.now);
    }
    comparison.plugins.push_back(std::move(state));
  }
  return comparison;
}

}  // namespace accrue
