// SPDX-License-Identifier: Apache-2.0
#include "spec_input.h"

#include <cstdio>
#include <filesystem>

#include "accrue/run/engine_host.h"
#include "accrue/run/host_facts.h"
#include "accrue/run/preflight.h"
#include "accrue/run/spec_io.h"

namespace accrue::cli {
namespace {

void print(const std::vector<Finding>& findings) {
  for (const auto& finding : findings) std::fprintf(stderr, "%s\n", finding.text().c_str());
}

/// Most specs need no more than this host's cores; devices and backends of LibTorch are asked of the rank program.
HostFacts facts_for(const RunSpec& spec) {
  const bool needs_probe = spec.launch.device == DeviceKind::cuda || spec.parallel.backend == BackendKind::gloo ||
                           spec.parallel.backend == BackendKind::nccl;
  if (!needs_probe) return local_facts();
  auto probed = probe_host(default_rank_program());
  if (probed) return std::move(*probed);
  std::fprintf(stderr, "accrue-run: %s\n", probed.error().text().c_str());
  return local_facts();
}

}  // namespace

void add_spec_options(CLI::App& verb, SpecInput& input) {
  verb.add_option("SPEC", input.file, "The run spec (*.accrue)")->required();
  verb.add_option("--set", input.sets, "Change one key: --set accumulation.steps=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

std::optional<RunPlan> plan_from(const SpecInput& input) {
  const std::filesystem::path file = input.file;
  SpecReading reading = read_spec(file);
  for (const auto& assignment : input.sets) set_field(reading.spec, assignment, reading.findings);
  if (!reading.ok()) {
    print(reading.findings);
    return std::nullopt;
  }
  Preflight checked =
      preflight_files(reading.spec, facts_for(reading.spec), std::filesystem::absolute(file).parent_path());
  locate_findings(checked.findings, reading);
  print(reading.findings);
  print(checked.findings);
  return std::move(checked.plan);
}

std::optional<RunPlan> limited_plan(const RunPlan& plan, std::int64_t updates) {
  if (updates >= plan.totals.updates) return plan;
  RunSpec spec = plan.spec;
  spec.run.epochs.reset();
  spec.run.samples.reset();
  spec.run.tokens.reset();
  spec.run.updates = updates;
  if (spec.accumulation.dialect == Dialect::mmengine && !spec.accumulation.max_iters)
    spec.accumulation.max_iters = plan.totals.micro_steps;
  Preflight checked = preflight_files(spec, facts_for(spec), plan.base_dir);
  if (!checked.plan) print(checked.findings);
  return std::move(checked.plan);
}

}  // namespace accrue::cli
