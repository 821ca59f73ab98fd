// SPDX-License-Identifier: Apache-2.0
// Deliberate differences from the systems whose names Accrue uses, each because upstream's behaviour is a defect or a
// trap: both behaviours, whether a run can reproduce upstream's, and its effect on a plan. The texts are the table of
// the manual's page on differences (resources/manual/differences.md), which the build turns into a source.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

struct UpstreamDefect {
  std::string_view id;        ///< "U2"; for an accumulation system the name of its replay
  std::string_view system;    ///< "Accelerate 1.9"
  std::string_view title;     ///< "The schedule is too long"
  std::string_view upstream;  ///< behaviour of upstream
  std::string_view here;      ///< behaviour of Accrue
  std::string_view
      setting;  ///< makes a run behave like upstream: "model.vocabulary_padding=megatron"; empty if none does
};

/// Returns the defects in the order of the page.
std::span<const UpstreamDefect> upstream_defects();

/// Effect of a defect on a plan.
struct DefectEffect {
  bool concerns = false;    ///< upstream would train this plan differently, or fail
  bool replayed = false;    ///< the plan behaves like upstream
  bool can_replay = false;  ///< the spec's dialect has the switch
  std::string sentence;     ///< with the plan's numbers: "The horizon would be 400 updates in place of 200."
};
/// Pure.
DefectEffect effect_of(const UpstreamDefect& defect, const RunPlan& plan);
/// Returns the assignments that make a run behave like upstream, or that undo it: "accumulation.replay=[...]"; empty if
/// there are none.
std::string replay_setting(const UpstreamDefect& defect, const RunSpec& spec, bool on);

/// Returns the output of "accrue-run plan SPEC --differences".
std::string differences_report(const RunPlan& plan);
std::string differences_json(const RunPlan& plan);

}  // namespace accrue
