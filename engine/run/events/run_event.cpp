// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/run_event.h"

namespace accrue {
namespace {

struct KindName {
  std::string_view operator()(const RunStarted&) const { return "run_started"; }
  std::string_view operator()(const RankReady&) const { return "rank_ready"; }
  std::string_view operator()(const MicroSteps&) const { return "micro_steps"; }
  std::string_view operator()(const Operations&) const { return "operations"; }
  std::string_view operator()(const Sync&) const { return "sync"; }
  std::string_view operator()(const Update&) const { return "update"; }
  std::string_view operator()(const Evaluation&) const { return "evaluation"; }
  std::string_view operator()(const ExactnessCheck&) const { return "exactness"; }
  std::string_view operator()(const StepsChanged&) const { return "steps_changed"; }
  std::string_view operator()(const CheckpointDone&) const { return "checkpoint"; }
  std::string_view operator()(const Gauge&) const { return "gauge"; }
  std::string_view operator()(const Heartbeat&) const { return "heartbeat"; }
  std::string_view operator()(const Holding&) const { return "holding"; }
  std::string_view operator()(const StateChanged&) const { return "state"; }
  std::string_view operator()(const Warning&) const { return "warning"; }
  std::string_view operator()(const RankFailed&) const { return "rank_failed"; }
  std::string_view operator()(const RunFinished&) const { return "run_finished"; }
  std::string_view operator()(const UnknownEvent& unknown) const { return unknown.kind; }
};

}  // namespace

std::string_view to_string(ComputeKind kind) {
  switch (kind) {
    case ComputeKind::forward:
      return "forward";
    case ComputeKind::backward:
      return "backward";
    case ComputeKind::step:
      return "step";
  }
  return "forward";
}

std::string_view kind_of(const EventBody& body) {
  return std::visit(KindName{}, body);
}

bool is_stored(const EventBody& body) {
  return !std::holds_alternative<Heartbeat>(body) && !std::holds_alternative<Holding>(body);
}

}  // namespace accrue
