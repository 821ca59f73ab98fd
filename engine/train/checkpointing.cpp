// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.h"

#include <string>
#include <utility>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/window/inside_windows.h"
#include "train/checkpointing_state.h"

namespace accrue {

CheckpointIdentity identity_of(const Training& training) {
  CheckpointIdentity identity = machine_identity(training.mesh);
  identity.spec_sha256 = sha256_hex(write_spec(training.spec()));
  identity.data_fingerprint = training.plan().data.fingerprint;
  return identity;
}

bool checkpoint_due(const Training& training) {
  const CheckpointSpec& asked = training.spec().checkpoint;
  if (asked.every_updates > 0 && training.cursor.update() % asked.every_updates == 0) return true;
  const std::int64_t every = asked.every_micro_steps;
  return every > 0 && training.cursor.micro_step() / every > training.saved_micro_step / every;
}

bool checkpoint_due_inside(const Training& training, const MicroPlan& plan) {
  return stops_inside_windows(training.spec()) && training.plan().knobs.checkpoint_scope != CheckpointScope::boundary &&
         due_after(training.spec(), plan, training.spec().checkpoint.every_micro_steps);
}

namespace {

std::string after_failed_save(const Training& training, bool last) {
  const std::string kept = training.saved ? "The newest checkpoint is still " + checkpoint_name(*training.saved)
                                          : "There is no checkpoint yet";
  return kept + (last ? "." : ", and the next one is tried as planned.");
}

/// Over all ranks that hold a part of the model. Collective: the model axis.
bool finite_model(Training& training) {
  const bool finite = training.model.first_non_finite(training.model.flat()).empty();
  Communicator& model = training.mesh.model();
  return model.size() == 1 ? finite : sum_over_ranks(model, finite ? 0.0 : 1.0) == 0.0;
}

/// Whether this state has the lowest loss so far, and is to be kept for it.
bool is_best(const Training& training, const TrainingCursor& at) {
  return training.spec().checkpoint.best != RunMeasure::none && at.window.position() == 0 &&
         at.evaluations.best_update == at.update() && at.update() > 0;
}

void commit(Training& training, CheckpointContent content, bool last) {
  TrainingCursor& cursor = content.cursor;
  training.report.phase("checkpoint");
  training.await_parameters();
  cursor.seconds = training.report.seconds();
  cursor.finite = finite_model(training);
  const bool best = is_best(training, cursor);
  if (best) cursor.evaluations.kept_update = cursor.update();
  for (PlacedTensor& tensor : shared_tensors(training, Purpose::write)) content.tensors.push_back(std::move(tensor));
  content.tensors.push_back(generator_tensor(training));
  const std::string where =
      "at update " + std::to_string(cursor.update()) +
      (cursor.window.position() > 0 ? " and " + counted(cursor.window.position(), "micro-step") : "");
  const auto saved = save_checkpoint(training.order.run_dir, content, identity_of(training),
                                     training.spec().checkpoint.keep, training.mesh.world());
  if (!saved) {
    training.report.warn_first("disk", "the checkpoint " + where + " failed: " + saved.error().text(),
                               after_failed_save(training, last));
    return;
  }
  training.saved = cursor.mark();
  training.cursor.evaluations = cursor.evaluations;
  training.saved_micro_step = cursor.micro_step();
  if (saved->retention)
    training.report.warn_first("disk", "older checkpoints were left in place: " + saved->retention->text(),
                               "The checkpoint itself is saved.");
  training.report.from_first(
      CheckpointDone{.update = cursor.update(),
                     .path = "checkpoints/" + saved->name,
                     .bytes = saved->bytes,
                     .seconds = saved->seconds,
                     .best_loss = best ? std::optional(cursor.evaluations.best_loss) : std::nullopt});
}

}  // namespace

void save(Training& training, bool last) {
  const TrainingCursor& at = training.cursor;
  const bool is_better = is_best(training, at) && at.evaluations.kept_update != at.update();
  if (training.order.run_dir.empty() || (training.saved == at.mark() && !is_better)) return;
  commit(training, {.cursor = training.cursor, .tensors = {}}, last);
}

void save_inside(Training& training, const OpenWindow& open) {
  if (training.order.run_dir.empty()) return;
  CheckpointContent content{.cursor = training.cursor, .tensors = {}};
  content.cursor.window = training.window.position();
  training.note_scale(content.cursor);
  content.cursor.optimizer_steps = training.optimizer->steps();
  if (training.plan().knobs.checkpoint_scope == CheckpointScope::anywhere) {
    content.tensors = window_tensors(training, Purpose::write);
    if (training.tensor.rank() == 0) content.tensors.push_back(tally_tensor(training, open));
    for (PlacedTensor& tensor : library_tensors(training)) content.tensors.push_back(std::move(tensor));
  }
  commit(training, std::move(content), false);
}

}  // namespace accrue
