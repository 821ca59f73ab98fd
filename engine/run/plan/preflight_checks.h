// SPDX-License-Identifier: Apache-2.0
// The parts of preflight, each about one subject. A part adds findings and never stops the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/preflight.h"

namespace accrue::preflight_detail {

/// Collects findings of a spec as a whole.
class Findings {
 public:
  Finding& add(Severity severity, std::string_view key, std::string message, std::string found = {},
               std::string expected = {});
  Finding& error(std::string_view key, std::string message, std::string found = {}, std::string expected = {}) {
    return add(Severity::error, key, std::move(message), std::move(found), std::move(expected));
  }
  Finding& warn(std::string_view key, std::string message, std::string found = {}, std::string expected = {}) {
    return add(Severity::warning, key, std::move(message), std::move(found), std::move(expected));
  }
  Finding& note(std::string_view key, std::string message) { return add(Severity::note, key, std::move(message)); }

  std::vector<Finding> all;
};

// Beyond check_values every number is in the range of its field.
void check_values(const RunSpec& spec, Findings& findings);
void check_model(const RunSpec& spec, Findings& findings);
void check_optimizer(const RunSpec& spec, Findings& findings);
void check_run(const RunSpec& spec, Findings& findings);
void check_accumulation(const RunSpec& spec, Findings& findings);
void check_parallel(const RunSpec& spec, const HostFacts& host, Findings& findings);
/// Whether the data are of the kind that the model takes. Where not, nothing finer can be said of them.
bool check_kinds(const RunSpec& spec, Findings& findings);
void check_data(const RunSpec& spec, const DataFacts& data, Findings& findings);

// Called without errors so far; beyond it the run is short enough to be walked.
void check_length(const RunSpec& spec, const DataFacts& data, Findings& findings);
void check_plan(const RunPlan& plan, const HostFacts& host, Findings& findings);

/// Ranks of the whole run, saturating.
std::int64_t world_of(const RunSpec& spec);
/// Bytes that one rank may take of its host or device.
std::int64_t memory_of_rank(const RunSpec& spec, const HostFacts& host);
std::int64_t threads_of(const RunSpec& spec, const HostFacts& host);
BackendKind backend_of(const RunSpec& spec);
LossKind loss_of(const ModelSpec& model);

}  // namespace accrue::preflight_detail
