// SPDX-License-Identifier: Apache-2.0
// One rank's training as a list of passes. AccumulationWindow decides the contents, divisor, reductions and steps of a
// window; this file has only the order:
//
//   window:    (counts over the ranks, if a micro-step must divide by them) -> micro-steps
//   boundary:  agree -> check -> normalise and clip -> optimizer -> clear -> report -> change N
//   between:   evaluation on schedule, checkpoint on schedule or on request, the end on request. A stop comes first:
//              what it leaves to evaluate, the resumed run does
//
// Invariants. Between windows the gradients are zero, and a checkpoint there contains none. The window's pass takes a
// checkpoint that is due inside it, with the rank's gradients and sums if K15 says anywhere. All ranks reach every
// collective in the same order: conditions for one are agreed on, or equal on all ranks by construction.
#include "accrue/train/trainer.h"

#include <ATen/Parallel.h>

#include <utility>

#include "accrue/run/fields/choice_names.h"
#include "megatron/same_batch.h"
#include "optim/update_passes.h"
#include "train/boundary.h"
#include "train/checkpointing.h"
#include "train/compute_device.h"
#include "train/evaluate.h"
#include "train/finish.h"
#include "train/measurement.h"
#include "train/train_window.h"
#include "train/training.h"

namespace accrue {
namespace {

std::string teaching_text(const TeachingSpec& teaching) {
  if (teaching.bug != Bug::none) return "bug = " + std::string(to_name(teaching.bug));
  return "overflow_at";
}

/// Warns once, at the start, of deliberate faults of the spec.
void warn_at_start(Training& training) {
  const RunSpec& spec = training.spec();
  if (spec.teaching != TeachingSpec{})
    training.report.warn_first("teaching", "this run goes wrong on purpose: teaching." + teaching_text(spec.teaching),
                               "Its numbers are for learning from, not for reporting.");
  for (const std::string& defect : spec.accumulation.replay)
    training.report.warn_first("teaching", "this run reproduces a defect of the original: " + defect,
                               "Remove it from accumulation.replay for the run that was meant.");
}

/// Tensor-parallel ranks read data separately: the first batch shows whether they read the same. A plug-in library's
/// data sets give only sample numbers here, and are compared when read.
void compare_first_batch(Training& training) {
  const auto next = training.window.peek();
  if (!next || training.tensor.size() == 1) return;
  const Batch batch = training.feed.batch(*next);
  const bool own = batch.targets.defined();
  megatron::demand_same_batch(own ? megatron::named_batch(batch, training.spec().model.kind) : megatron::Batch(),
                              training.mesh);
}

/// Evaluates after an update. Returns whether that was the best so far, and its checkpoint is to be kept.
bool evaluate_between(Training& training) {
  training.cursor.evaluations.due = false;
  const std::optional<double> loss = evaluate(training);
  if (!loss || !counts_evaluations(training.spec())) return false;
  const bool is_best =
      training.cursor.evaluations.take(training.cursor.update(), *loss, training.spec().run.least_improvement);
  return is_best && training.spec().checkpoint.best != RunMeasure::none;
}

/// Does everything between two windows. Returns true if the ranks have agreed to end here.
bool between_windows(Training& training, const BoundaryRequests& requests) {
  const std::int64_t update = training.cursor.update();
  const bool due = evaluation_due(training, update);
  const bool is_best = due && !requests.stop && evaluate_between(training);
  training.cursor.evaluations.due = due && requests.stop && counts_evaluations(training.spec());
  if (requests.checkpoint || is_best || checkpoint_due(training)) save(training, requests.stop);
  return requests.stop;
}

TrainOutcome outcome_of(const Training& training, std::string outcome, std::string hash) {
  return {.outcome = std::move(outcome),
          .updates = training.cursor.update(),
          .loss = training.cursor.loss,
          .weights_sha256 = std::move(hash)};
}

/// Why the run ended before its planned end; empty at the planned end.
std::string reason_of(const Training& training, const TrainOutcome& outcome) {
  if (outcome.outcome == "stopped") return "stopped on request";
  const std::int64_t planned = training.plan().totals.updates;
  const RunSection& run = training.spec().run;
  if (outcome.updates >= planned || !ends_early(run, training.cursor.evaluations)) return {};
  return early_end_reason(run, training.cursor.evaluations, outcome.updates, planned);
}

void report_end(Training& training, const TrainOutcome& outcome) {
  training.report.from_first(RunFinished{.outcome = outcome.outcome,
                                         .updates = outcome.updates,
                                         .loss = outcome.loss,
                                         .weights_sha256 = outcome.weights_sha256,
                                         .reason = reason_of(training, outcome),
                                         .exit_status = 0,
                                         .seconds = training.report.seconds()});
}

/// Trains windows until the plan ends, the losses no longer improve (run.stop_when), a user stops the run, or an error
/// occurs.
Result<std::string> train_windows(Training& training) {
  if (training.cursor.evaluations.due && evaluate_between(training)) save(training, false);
  while (!ends_early(training.spec().run, training.cursor.evaluations)) {
    const WindowPass pass = train_window(training);
    if (pass.end == WindowEnd::stopped) return "stopped";
    if (pass.end == WindowEnd::run_over) return "finished";  // an open window, if any, is discarded (K3)
    const auto requests = pass_boundary(training, pass);
    if (!requests) return tl::unexpected(requests.error());
    measure_window(training);
    if (between_windows(training, *requests)) return "stopped";
  }
  return "finished";
}

}  // namespace

Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel,
                               const megatron::Registry& registry) {
  const auto device = open_compute_device(order.plan.spec.launch.device, local_rank);
  if (!device) return tl::unexpected(device.error());
  if (!device->is_cpu()) agree_on_device_kernels(mesh.world(), path_of(*device) != UpdatePath::operators);
  at::set_num_threads(static_cast<int>(order.plan.threads_per_rank));
  channel.progress("data", 0, 0);
  RunHooks hooks(order.plan, mesh, registry);
  Result<std::unique_ptr<DataSource>> data = hooks.data();
  if (*data == nullptr) data = open_data(order.plan.spec, order.plan.data, order.plan.base_dir);
  if (!data) return tl::unexpected(data.error());

  Training training(order, mesh, channel, *device, std::move(hooks), std::move(*data));
  training.report.ready();
  warn_at_start(training);
  if (auto resumed = resume(training); !resumed) return tl::unexpected(resumed.error());

  compare_first_batch(training);
  if (order.paused) channel.hold_here();
  const auto end = train_windows(training);
  if (!end) return tl::unexpected(end.error());
  report_measured(training);
  // From here on the parameters are final.
  training.await_parameters();
  std::string hash;
  if (*end == "finished") {
    save(training, true);
    auto written = write_final_weights(training);
    if (!written) return tl::unexpected(written.error());
    hash = std::move(*written);
  }
  TrainOutcome outcome = outcome_of(training, *end, std::move(hash));
  report_end(training, outcome);
  return outcome;
}

Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel) {
  return train_run(order, mesh, local_rank, channel, megatron::Registry());
}

}  // namespace accrue
