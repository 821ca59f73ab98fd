// SPDX-License-Identifier: Apache-2.0
// Where Accrue differs from the systems whose names it has, because what they do is a defect or a trap: what each does,
// what Accrue does, whether a run can do as they do, and what that would mean for one plan. The texts are the table of
// the manual's page on differences (resources/manual/differences.md), which the build turns into a source.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "accrue/run/run_plan.h"

namespace accrue {

struct UpstreamDefect {
  std::string_view id;        ///< "U2"; of an accumulation system's the name of its replay
  std::string_view system;    ///< "Accelerate 1.9"
  std::string_view title;     ///< "The schedule is too long"
  std::string_view upstream;  ///< what it does there
  std::string_view here;      ///< what Accrue does
  std::string_view setting;  ///< makes a run do as upstream: "model.vocabulary_padding=megatron"; empty where none does
};

/// In the order of the page that lists them.
std::span<const UpstreamDefect> upstream_defects();

/// What a defect means for a plan.
struct DefectEffect {
  bool concerns = false;    ///< upstream would train this plan differently, or fail
  bool replayed = false;    ///< the plan does as upstream
  bool can_replay = false;  ///< the spec's dialect has the switch
  std::string sentence;     ///< with the plan's numbers: "The horizon would be 400 updates in place of 200."
};
/// Pure.
DefectEffect effect_of(const UpstreamDefect& defect, const RunPlan& plan);
/// The assignments that make a run do as upstream, or that undo it: "accumulation.replay=[...]"; empty where it has
/// none.
std::string replay_setting(const UpstreamDefect& defect, const RunSpec& spec, bool on);

/// What "accrue-run plan SPEC --differences" prints.
std::string differences_report(const RunPlan& plan);
std::string differences_json(const RunPlan& plan);

}  // namespace accrue
