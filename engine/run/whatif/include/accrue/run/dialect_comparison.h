// SPDX-License-Identifier: Apache-2.0
// "What would X do": one spec under the rules of each dialect, side by side. Every number is read from an
// AccumulationWindow and from preflight, so a comparison promises what the run, "trace" and the form's arithmetic line
// say.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/last_batches.h"
#include "accrue/run/preflight.h"

namespace accrue {

/// In the order in which they are shown.
inline constexpr std::array<Dialect, 5> all_dialects = {Dialect::llm, Dialect::colossalai, Dialect::accelerate,
                                                        Dialect::mmengine, Dialect::accrue};

/// The system's own name: "llm-pytorch", "Colossal-AI", "Accelerate", "MMEngine", "Accrue".
std::string_view system_name(Dialect dialect);

struct ComparedMicroStep {
  MicroPlan plan;
  std::string letters;  ///< "b", "BSLZ", ...: what happens in the dialect's own loop
  double lr = 0.0;      ///< in force after it
};

struct ComparedUpdate {
  std::int64_t micro_step = 0;  ///< that it follows
  std::int64_t window_size = 0;
  BoundaryReason reason = BoundaryReason::none;
  std::int64_t lr_position = 0;  ///< schedule position of the rate that it uses
  double lr = 0.0;
};

/// One dialect's answer.
struct DialectPlan {
  Dialect dialect = Dialect::accrue;
  bool chosen = false;             ///< the spec's own dialect
  RunSpec spec;                    ///< the spec under this dialect: what a run of it would train
  std::vector<std::string> notes;  ///< what of the spec belongs to its own dialect and was left out
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty where the dialect refuses the spec; findings say why
  /// The first micro-steps, those around the end of the first epoch and the last ones; where micro_step jumps, some in
  /// between are left out.
  std::vector<ComparedMicroStep> steps;
  std::vector<ComparedUpdate> updates;    ///< of the shown micro-steps
  std::string letters;                    ///< of the whole run, or of its first micro-steps; as window_letters has them
  std::vector<LastBatches> last_batches;  ///< of the first epoch, and of the run where that is another

  /// All sentences about last batches, one after another.
  std::string fate() const;
  /// "every micro-step by 4", "by 4, then by 2", "by the samples of its window"
  std::string divisors() const;
};

struct DialectComparison {
  std::vector<DialectPlan> dialects;  ///< in the order of all_dialects
  const DialectPlan* of(Dialect dialect) const;
};

/// The spec as another dialect would read it: the overrides of its own dialect's preset (K2 to K17) and that system's
/// own keys are left out, each with a note; length, data, model, optimizer and schedule stay.
RunSpec under_dialect(const RunSpec& spec, Dialect dialect, std::vector<std::string>* notes = nullptr);

inline constexpr std::int64_t compared_steps = 64;

/// Pure, as preflight is; a long plan takes as long as five preflights. Shows about most_steps micro-steps of each.
/// `libraries`: what [megatron] can name.
DialectComparison compare_dialects(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::int64_t most_steps = compared_steps,
                                   std::span<const PluginFacts> libraries = {});

/// "3, after micro-steps 4, 8, 10"
std::string updates_text(const DialectPlan& answer);
/// "moves with each update; updates use position 0, 1, 2; 3 at the end"
std::string schedule_text(const DialectPlan& answer);
/// A dialect's answer as lines of text, without its name.
std::string dialect_text(const DialectPlan& plan);
/// For people: what "plan --dialects" prints.
std::string dialect_report(const DialectComparison& comparison);
/// An object with an array "dialects".
std::string dialect_json(const DialectComparison& comparison);

}  // namespace accrue
