// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/whatif/optimizer_comparison.h"

#include <utility>
#include <variant>

#include "accrue/run/fields/spec_fields.h"

namespace accrue {

RunSpec under_optimizer(const RunSpec& spec, OptimizerKind kind) {
  RunSpec other = spec;
  other.optimizer.kind = kind;
  for (const SpecField& field : spec_fields())
    if (field.section() == "optimizer" && field.applies(spec) && !field.applies(other))
      field.set(other, std::monostate{});
  return other;
}

std::vector<OptimizerPlan> compare_optimizers(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                              const std::filesystem::path& base_dir,
                                              std::span<const PluginFacts> libraries) {
  std::vector<OptimizerPlan> plans;
  for (const OptimizerKind kind : colossalai_optimizers) {
    RunSpec other = under_optimizer(spec, kind);
    other.run.update_norm = true;
    Preflight answer = preflight(other, host, data, base_dir, libraries);
    plans.push_back({kind, std::move(answer.findings), std::move(answer.plan)});
  }
  return plans;
}

}  // namespace accrue
