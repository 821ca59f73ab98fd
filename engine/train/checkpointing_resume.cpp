// SPDX-License-Identifier: Apache-2.0
// Continuing a run: all ranks together find a checkpoint that fits; it is read, and the window is positioned. Until it
// is known to fit, nothing of the training changes.
#include <limits>
#include <string>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/record/leftovers.h"
#include "accrue/run/window/lr_curve.h"
#include "train/checkpointing.h"
#include "train/checkpointing_state.h"

namespace accrue {
namespace {

/// Checks that the run's own plan has such a place.
Result<void> check_place(const Training& training, const TrainingCursor& cursor) {
  const WindowShape& shape = training.window.shape();
  const WindowPosition& at = cursor.window;
  const std::int64_t planned_length = training.plan().window.batches_per_epoch;
  constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
  const auto beyond = [](const char* name, std::int64_t value, std::int64_t limit) -> Result<void> {
    if (value <= limit) return {};
    return fail(ErrorCode::protocol,
                std::string("\"window.") + name + "\" is " + std::to_string(value) + " in a run that ends at " +
                    std::to_string(limit),
                "manifest.json", "The checkpoint is damaged, or of a longer run.");
  };
  const std::int64_t length = planned_length > 0 ? planned_length : no_limit;
  if (auto fits = beyond("updates", at.updates(), shape.max_updates.value_or(no_limit)); !fits) return fits;
  if (auto fits = beyond("micro_step", at.micro_step(), shape.max_micro_steps.value_or(no_limit)); !fits) return fits;
  if (auto fits = beyond("epoch", at.epoch(), shape.max_epochs.value_or(no_limit)); !fits) return fits;
  // A window that is filled with the epoch's first batches passes the epoch's end by less than its length.
  const std::int64_t repeated = shape.knobs.tail == EpochTail::pad_repeat ? at.steps() : 0;
  if (auto fits = beyond("batch", at.batch() - repeated, length); !fits) return fits;
  if (auto fits = beyond("epoch_length", at.epoch_length(), length); !fits) return fits;
  const auto n = training.window.missed_end(at);
  if (!n) return {};
  return fail(ErrorCode::protocol,
              "\"window.counter\" is " + std::to_string(at.counter()) + " in an open window with \"window.steps\" " +
                  std::to_string(*n) + ", which could never close",
              "manifest.json", "The checkpoint is damaged.");
}

/// Returns the checkpoint's place. In a branch with micro-steps of another size it is the place after the same number
/// of updates, which have the same samples; the schedule's position is kept.
TrainingCursor cursor_of(const Training& training, const CheckpointReader& checkpoint) {
  TrainingCursor cursor = checkpoint.cursor();
  if (training.order.recounts_at != cursor.update() || cursor.window.position() > 0) return cursor;
  AccumulationWindow window(training.window.shape());
  window.pass_updates(cursor.update());
  cursor.window = window.position().with_schedule_of(cursor.window);
  return cursor;
}

/// Restores the window's position, as far as its dialect saves it (K15).
void restore_position(Training& training, const CheckpointReader& checkpoint, const WindowPosition& position) {
  const AccumulationKnobs& knobs = training.plan().knobs;
  AccumulationWindow& window = training.window;
  window.restore(position);
  const std::int64_t lost = window.open_micro_steps();
  const bool kept = lost == 0 || has_open_window(training, checkpoint);
  if (!kept && knobs.checkpoint_scope == CheckpointScope::nothing) {
    // MMEngine's count is the iteration, which the runner saves; the other counters restart.
    window.lose_open_window(knobs.boundary_compare != BoundaryCompare::modulo);
    if (training.spec().accumulation.dialect == Dialect::colossalai) window.forget_schedule_calls();
  }
  if (knobs.replays(Replay::restart_count)) window.lose_open_window(true);
  if (kept) return;
  training.report.warn_first(
      "protocol",
      "the gradients of " + counted(lost, "micro-step") + " of the open window are lost, as in the original" +
          (keeps_place_in_window(knobs) ? "" : ", and so is the place in the window"),
      "This dialect does not continue bit for bit from inside a window: accumulation.checkpoint_scope = \"anywhere\" "
      "does, and so does a checkpoint between two windows.");
}

Result<void> restore(Training& training, const CheckpointReader& checkpoint) {
  if (auto restored = restore_state(training, checkpoint); !restored) return restored;
  TrainingCursor cursor = cursor_of(training, checkpoint);
  if (training.order.branched_at == cursor.update()) cursor.evaluations = {};  // those of another run
  restore_position(training, checkpoint, cursor.window);
  if (training.loss_scale.enabled() && cursor.loss_scale > 0.0) {
    training.loss_scale.scale = cursor.loss_scale;
    training.loss_scale.growth = cursor.scale_growth;
    training.loss_scale.overflows = cursor.scale_overflows;
  }
  training.cursor = cursor;
  // The rate came with the optimizer's state, at which the first resume froze it.
  if (training.plan().knobs.replays(Replay::scheduler_state) && cursor.frozen_lr < 0.0)
    training.cursor.frozen_lr = lr_at(training.plan().curve, cursor.schedule_position());
  training.saved = cursor.mark();
  training.saved_micro_step = cursor.micro_step();
  training.report.resumed(cursor);
  training.scalars.resumes_after(cursor.seconds);
  return {};
}

tl::unexpected<Error> nothing_to_resume(const RunOrder& order, const OpenedCheckpoint& opened) {
  const char* const left = order.resume_from == "newest"
                               ? "The checkpoints are left as they are: put one back from a copy"
                               : "Later checkpoints are kept beside it as abandoned-step-N: give one its name back";
  return fail(ErrorCode::protocol, "no checkpoint can be used: " + joined(opened.refused, "; "),
              (order.run_dir / "checkpoints").string(),
              std::string(left) + ", or train in a new folder: accrue-run run " +
                  (order.run_dir / "spec.toml").string() + " --out NEW");
}

/// Renames refused checkpoints, so that later ones can use their names. Rank 0 only. Errors: disk.
Result<void> set_refused_aside(Training& training, const OpenedCheckpoint& opened) {
  if (opened.refused.empty() || !training.report.first()) return {};
  const auto names = set_aside_after(training.order.run_dir, opened.checkpoint->cursor().mark(), "refused");
  if (!names) return tl::unexpected(names.error());
  const std::string kept = joined(*names, ", ", [](const std::string& name) { return "checkpoints/" + name; });
  for (const std::string& refused : opened.refused)
    training.report.warn_first(
        "protocol", refused,
        "The run goes on from " + opened.checkpoint->name() + "; what was refused is kept as " + kept + ".");
  return {};
}

void report_resume(Training& training, const OpenedCheckpoint& opened) {
  if (!opened.checkpoint) {
    training.report.warn_first("protocol", "there is no checkpoint: training starts from the beginning", "");
    return;
  }
  if (opened.not_bit_exact.empty()) return;
  const std::vector<std::string>& keys = training.order.changed_keys;
  const std::string text = joined(opened.not_bit_exact, ", another ") + (keys.empty() ? "" : ": ") + joined(keys);
  training.report.warn_first(
      "protocol", "continuing from " + opened.checkpoint->name() + " is not bit-exact, because of another " + text,
      keys.empty() ? "The mathematics is the same; the last digits are not."
                   : "What these keys change, the branch does from here on; all else is the same but for last digits.");
}

}  // namespace

Result<void> resume(Training& training) {
  if (!training.order.run_dir.empty() && training.report.first()) tidy_checkpoints(training.order.run_dir);
  if (training.order.resume_from.empty()) return {};
  const auto fits = [&training](const CheckpointReader& checkpoint) -> Result<void> {
    if (auto place = check_place(training, cursor_of(training, checkpoint)); !place) return place;
    return check_state(training, checkpoint);
  };
  training.report.phase("checkpoint");
  const auto untimed = training.mesh.world().untimed();  // a slow disk is not a lost peer
  const auto opened = open_checkpoint(training.order.run_dir, training.order.resume_from, identity_of(training), fits,
                                      training.mesh.world());
  if (!opened) return tl::unexpected(opened.error());
  if (!opened->checkpoint && !opened->refused.empty()) return nothing_to_resume(training.order, *opened);
  if (opened->checkpoint) {
    if (auto restored = restore(training, *opened->checkpoint); !restored) return restored;
    if (auto kept = set_refused_aside(training, *opened); !kept) return kept;
  }
  training.mesh.world().barrier();  // every rank has read its part: no timed exchange may start earlier
  training.report.phase("data", training.cursor.update(), training.cursor.micro_step());
  report_resume(training, *opened);
  return {};
}

}  // namespace accrue
