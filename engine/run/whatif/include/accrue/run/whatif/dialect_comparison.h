// SPDX-License-Identifier: Apache-2.0
// "What would X do": one spec under the rules of each dialect, side by side. Every number comes from an
// AccumulationWindow and from preflight, so the comparison agrees with the run, "trace" and the form's arithmetic line.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/plan/last_batches.h"
#include "accrue/run/preflight/preflight.h"

namespace accrue {

/// In display order.
inline constexpr std::array<Dialect, 5> all_dialects = {Dialect::llm, Dialect::colossalai, Dialect::accelerate,
                                                        Dialect::mmengine, Dialect::accrue};

/// Returns the system's own name: "llm-pytorch", "Colossal-AI", "Accelerate", "MMEngine", "Accrue".
std::string_view system_name(Dialect dialect);

struct ComparedMicroStep {
  MicroPlan plan;
  std::string letters;  ///< operations in the dialect's own loop: "b", "BSLZ", ...
  double lr = 0.0;      ///< in force after it
};

struct ComparedUpdate {
  std::int64_t micro_step = 0;  ///< micro-step that it follows
  std::int64_t window_size = 0;
  BoundaryReason reason = BoundaryReason::none;
  std::int64_t lr_position = 0;  ///< schedule position of the rate that it uses
  double lr = 0.0;
};

/// One dialect's result.
struct DialectPlan {
  Dialect dialect = Dialect::accrue;
  bool chosen = false;             ///< the spec's own dialect
  RunSpec spec;                    ///< the spec under this dialect, as a run would train it
  std::vector<std::string> notes;  ///< parts of the spec that belong to its own dialect and were dropped
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty if the dialect refuses the spec; findings say why
  /// The first micro-steps, those around the end of the first epoch, and the last ones. A jump of micro_step marks
  /// omitted ones.
  std::vector<ComparedMicroStep> steps;
  std::vector<ComparedUpdate> updates;    ///< of the shown micro-steps
  std::string letters;                    ///< of the whole run or its first micro-steps, as from window_letters()
  std::vector<LastBatches> last_batches;  ///< of the first epoch, and of the run if that ends elsewhere

  /// Joins all sentences about last batches.
  std::string fate() const;
  /// Returns "every micro-step by 4", "by 4, then by 2" or "by the samples of its window".
  std::string divisors() const;
};

struct DialectComparison {
  std::vector<DialectPlan> dialects;  ///< in the order of all_dialects
  const DialectPlan* of(Dialect dialect) const;
};

/// Returns the spec as another dialect reads it. Overrides of its own dialect's preset (K2 to K17) and that system's
/// own keys are dropped, each with a note. Length, data, model, optimizer and schedule stay.
RunSpec under_dialect(const RunSpec& spec, Dialect dialect, std::vector<std::string>* notes = nullptr);

inline constexpr std::int64_t compared_steps = 64;

/// Pure, like preflight; a long plan takes the time of five preflights. Shows about most_steps micro-steps of each.
/// `libraries`: plug-in libraries whose names [megatron] can use.
DialectComparison compare_dialects(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::int64_t most_steps = compared_steps,
                                   std::span<const PluginFacts> libraries = {});

/// "3, after micro-steps 4, 8, 10"
std::string updates_text(const DialectPlan& answer);
/// "moves with each update; updates use position 0, 1, 2; 3 at the end"
std::string schedule_text(const DialectPlan& answer);
/// Returns a dialect's result as lines of text, without its name.
std::string dialect_text(const DialectPlan& plan);
/// Returns the output of "plan --dialects" for people.
std::string dialect_report(const DialectComparison& comparison);
/// Returns an object with an array "dialects".
std::string dialect_json(const DialectComparison& comparison);

}  // namespace accrue
