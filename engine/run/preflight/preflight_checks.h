// SPDX-License-Identifier: Apache-2.0
// Parts of preflight, one per subject. A part adds findings and never stops the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/preflight/preflight.h"

namespace accrue::preflight_detail {

/// An optional text of a finding; numbers are formatted.
class Text {
 public:
  Text() = default;
  Text(const char* text) : text_(text) {}
  Text(std::string text) : text_(std::move(text)) {}
  Text(std::int64_t number) : text_(std::to_string(number)) {}
  const std::optional<std::string>& get() const { return text_; }

 private:
  std::optional<std::string> text_;
};

/// Collection of findings about a spec as a whole: the problem, the found and the expected value, and a value that
/// fixes it ("" clears the key).
class Findings {
 public:
  void add(Severity severity, std::string_view key, std::string message, const Text& found = {},
           const Text& expected = {}, const Text& fix = {});
  void error(std::string_view key, std::string message, const Text& found = {}, const Text& expected = {},
             const Text& fix = {}) {
    add(Severity::error, key, std::move(message), found, expected, fix);
  }
  void warn(std::string_view key, std::string message, const Text& found = {}, const Text& expected = {},
            const Text& fix = {}) {
    add(Severity::warning, key, std::move(message), found, expected, fix);
  }
  void note(std::string_view key, std::string message) { add(Severity::note, key, std::move(message)); }

  std::vector<Finding> all;
};

/// Formats a choice as a spec does: "\"flush\"".
template <typename Choice>
std::string quoted(Choice choice) {
  return "\"" + std::string(to_name(choice)) + "\"";
}

// After check_values every number is in the range of its field.
void check_values(const RunSpec& spec, Findings& findings);
void check_model(const RunSpec& spec, Findings& findings);
void check_optimizer(const RunSpec& spec, Findings& findings);
void check_run(const RunSpec& spec, Findings& findings);
void check_accumulation(const RunSpec& spec, Findings& findings);
void check_rampup(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings);
void check_parallel(const RunSpec& spec, const HostFacts& host, Findings& findings);
/// Whether the model can use this kind of data. If not, no further check of them is possible.
bool check_kinds(const RunSpec& spec, Findings& findings);
void check_data(const RunSpec& spec, const DataFacts& data, Findings& findings);

// Called only without errors so far; after it the run is known to be short enough to be walked.
void check_length(const RunSpec& spec, const DataFacts& data, Findings& findings);
void check_plan(const RunPlan& plan, const HostFacts& host, Findings& findings);

/// Ranks of the whole run; saturates.
std::int64_t world_of(const RunSpec& spec);
/// Bytes that one rank may use of its host or device.
std::int64_t memory_of_rank(const RunSpec& spec, const HostFacts& host);
std::int64_t threads_of(const RunSpec& spec, const HostFacts& host);
BackendKind backend_of(const RunSpec& spec);

}  // namespace accrue::preflight_detail
