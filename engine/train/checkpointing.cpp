// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/lr_curve.h"
#include "accrue/run/sha256.h"
#include "accrue/run/spec_io.h"

namespace accrue {
namespace {

constexpr const char* rng_name = "local.rng.cpu";
constexpr const char* gradients_name = "local.gradients";
constexpr const char* compensation_name = "local.compensation";
constexpr const char* tally_name = "local.tally";

CheckpointIdentity identity_of(const Training& training) {
  return {.spec_sha256 = sha256_hex(write_spec(training.spec())),
          .data_fingerprint = training.plan().data.fingerprint,
          .world = training.axis.size(),
          .threads_per_rank = at::get_num_threads(),
          .torch_version = TORCH_VERSION,
          .cpu_capability = at::get_cpu_capability()};
}

/// Every tensor that the ranks share, by name, as views of the live memory.
NamedTensors shared_tensors(Training& training) {
  NamedTensors tensors;
  for (auto& [name, parameter] : training.model.parameters()) tensors.emplace_back("parameters." + name, parameter);
  for (auto& [state, flat] : training.optimizer->state())
    for (std::size_t i = 0; i < training.model.names().size(); ++i)
      tensors.emplace_back("optimizer." + state + "." + training.model.names()[i], training.model.slice(flat, i));
  if (training.masters.defined())
    for (std::size_t i = 0; i < training.model.names().size(); ++i)
      tensors.emplace_back("optimizer.master." + training.model.names()[i], training.model.slice(training.masters, i));
  return tensors;
}

/// What an open window holds: its tally, then what the whole of it was counted to hold.
at::Tensor tally_tensor(const OpenWindow& open) {
  const TallyRow tally = row_of(open.tally);
  at::Tensor tensor = at::empty({std::ssize(tally) + 2}, at::kDouble);
  double* const counted = std::ranges::copy(tally, tensor.mutable_data_ptr<double>()).out;
  counted[0] = static_cast<double>(open.counted.items);
  counted[1] = static_cast<double>(open.counted.samples);
  return tensor;
}

OpenWindow open_window(const at::Tensor& tensor) {
  const double* const values = tensor.const_data_ptr<double>();
  TallyRow tally;
  std::copy_n(values, tally.size(), tally.begin());
  const double* const counted = values + tally.size();
  return {.tally = tally_of(tally),
          .counted = {static_cast<std::int64_t>(counted[0]), static_cast<std::int64_t>(counted[1])}};
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

/// Every rank reads the disk by itself; where they saw different newest checkpoints, all go back to the oldest of them.
Result<LoadedCheckpoint> load_together(Training& training) {
  training.report.phase("checkpoint");
  const auto untimed = training.axis.untimed();  // a slow disk is not a lost peer
  std::string name = training.order.resume_from;
  while (true) {
    auto loaded = load_checkpoint(training.order.run_dir, name, training.axis.rank(), identity_of(training));
    const std::int64_t mine = !loaded ? -2 : loaded->name.empty() ? -1 : loaded->content.cursor.micro_step;
    at::Tensor all = at::empty({training.axis.size(), 3}, at::kLong);
    at::Tensor row = at::zeros({3}, at::kLong);
    row[0].fill_(mine);
    if (mine >= 0) row[1].fill_(loaded->content.cursor.update);
    if (mine >= 0) row[2].fill_(loaded->content.cursor.window.position);
    training.axis.all_gather(all, row);
    const at::Tensor first = all.select(1, 0);
    const std::int64_t least = first.min().item<std::int64_t>();
    if (!loaded) return loaded;
    if (least == -2) return fail(ErrorCode::data, "another rank cannot continue from this run's checkpoints");
    if (first.max().item<std::int64_t>() == least) return loaded;
    if (least == -1) return LoadedCheckpoint{};
    const at::Tensor oldest = all[first.argmin().item<std::int64_t>()];
    name = checkpoint_name({oldest[1].item<std::int64_t>(), oldest[2].item<std::int64_t>()});
  }
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + " [";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

/// What differs between the checkpoint's tensors and the model's, all of it.
std::string mismatches(const NamedTensors& live, const std::map<std::string, at::Tensor>& saved) {
  std::string text;
  const auto note = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (const auto& [name, tensor] : live) {
    const auto found = saved.find(name);
    if (found == saved.end())
      note(name + " is not in the checkpoint");
    else if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type())
      note(name + " is " + shape_text(found->second) + " there and " + shape_text(tensor) + " here");
  }
  if (saved.size() > live.size() || text.empty())
    for (const auto& [name, tensor] : saved)
      if (std::none_of(live.begin(), live.end(), [&n = name](const auto& each) { return each.first == n; }))
        note(name + " is not in the model");
  return text;
}

const at::Tensor* local_tensor(const LoadedCheckpoint& loaded, const char* name) {
  for (const auto& [each, tensor] : loaded.content.local)
    if (each == name) return &tensor;
  return nullptr;
}

/// A checkpoint from inside a window belongs to the ranks that took it: each holds its part of the sum.
Result<void> check_open_window(const Training& training, const LoadedCheckpoint& loaded) {
  if (loaded.content.cursor.window.position == 0 || loaded.identity.world == training.axis.size()) return {};
  return fail(ErrorCode::config,
              "the checkpoint was taken inside a window by " + std::to_string(loaded.identity.world) +
                  " ranks, and there are " + std::to_string(training.axis.size()) + " now",
              loaded.name, "Resume with as many ranks, or from a checkpoint between two windows (step-N).");
}

/// The open window's gradients and tally, where the checkpoint has them. False: they are lost.
bool restore_open_window(Training& training, const LoadedCheckpoint& loaded) {
  const at::Tensor* const gradients = local_tensor(loaded, gradients_name);
  const at::Tensor* const tally = local_tensor(loaded, tally_name);
  at::Tensor flat = training.reducer.flat_gradients();
  if (!gradients || !tally || gradients->sizes() != flat.sizes()) return false;
  flat.copy_(*gradients);
  const at::Tensor* const compensation = local_tensor(loaded, compensation_name);
  at::Tensor lost = training.reducer.flat_compensation();
  if (compensation && lost.defined()) lost.copy_(*compensation);
  training.open = open_window(*tally);
  return true;
}

/// Where the window stands, by what its dialect keeps of it (K15).
void restore_position(Training& training, const LoadedCheckpoint& loaded) {
  const TrainingCursor& cursor = loaded.content.cursor;
  const AccumulationKnobs& knobs = training.plan().knobs;
  WindowPosition at = cursor.window;
  if (at.micro_step != cursor.micro_step) {  // a checkpoint from before positions were kept
    training.window.seek(cursor.micro_step, cursor.schedule_position);
    at = training.window.position();
  }
  const std::int64_t lost = at.position;
  const bool kept = lost == 0 || restore_open_window(training, loaded);
  if (!kept && knobs.checkpoint_scope == CheckpointScope::nothing) {
    at.position = 0;
    // MMEngine's count is the iteration, which the runner keeps; the others' counters begin anew.
    if (knobs.boundary_compare != BoundaryCompare::modulo) at.counter = 0;
    if (training.spec().accumulation.dialect == Dialect::colossalai) at.schedule_calls = 0;
  }
  if (knobs.replays(Replay::restart_count)) at.position = at.counter = 0;
  training.window.restore(at);
  if (kept) return;
  training.report.warn_first(
      "protocol",
      "the gradients of " + std::to_string(lost) + " micro-steps of the open window are lost, as in the original" +
          (keeps_place_in_window(knobs) ? "" : ", and so is the place in the window"),
      "This dialect does not continue bit for bit from inside a window: accumulation.checkpoint_scope = \"anywhere\" "
      "does, and so does a checkpoint between two windows.");
}

Result<void> restore(Training& training, const LoadedCheckpoint& loaded) {
  const NamedTensors live = shared_tensors(training);
  const std::map<std::string, at::Tensor> saved(loaded.content.replicated.begin(), loaded.content.replicated.end());
  if (const std::string differing = mismatches(live, saved); !differing.empty())
    return fail(ErrorCode::protocol, "the checkpoint is of another model: " + differing, loaded.name,
                "Resume with the spec that the run was started with.");
  if (auto fits = check_open_window(training, loaded); !fits) return fits;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : live) at::Tensor(tensor).copy_(saved.at(name));
  if (const at::Tensor* rng = local_tensor(loaded, rng_name)) set_generator_state(*rng);
  const TrainingCursor& cursor = loaded.content.cursor;
  training.optimizer->set_steps(cursor.optimizer_steps);
  restore_position(training, loaded);
  if (training.loss_scale.enabled() && cursor.loss_scale > 0.0)
    training.loss_scale = {cursor.loss_scale, cursor.scale_growth};
  training.cursor = cursor;
  // The rate came with the optimizer's state, where the first resume froze it.
  if (training.plan().knobs.replays(Replay::scheduler_state) && cursor.frozen_lr < 0.0)
    training.cursor.frozen_lr = lr_at(training.plan().curve, cursor.schedule_position);
  training.saved = cursor.mark();
  training.saved_micro_step = cursor.micro_step;
  training.report.resumed(cursor);
  return {};
}

void report_resume(Training& training, const LoadedCheckpoint& loaded) {
  for (const std::string& refused : loaded.refused)
    training.report.warn_first("protocol", refused,
                               "An earlier checkpoint is used; the refused folder is left as it is.");
  if (loaded.name.empty()) {
    training.report.warn_first("protocol", "no checkpoint could be used: training starts from the beginning", "");
    return;
  }
  if (loaded.not_bit_exact.empty()) return;
  std::string text;
  for (const std::string& difference : loaded.not_bit_exact) text += (text.empty() ? "" : "; ") + difference;
  training.report.warn_first("protocol", "continuing from " + loaded.name + " is not bit-exact: different are " + text,
                             "The mathematics is the same; the last digits are not.");
}

}  // namespace

Result<void> resume(Training& training) {
  if (training.order.resume_from.empty()) return {};
  const auto loaded = load_together(training);
  if (!loaded) return tl::unexpected(loaded.error());
  if (!loaded->name.empty())
    if (auto restored = restore(training, *loaded); !restored) return restored;
  training.report.phase("data", training.cursor.update, training.cursor.micro_step);
  report_resume(training, *loaded);
  return {};
}

bool checkpoint_due(const Training& training) {
  const CheckpointSpec& asked = training.spec().checkpoint;
  if (asked.every_updates > 0 && training.cursor.update % asked.every_updates == 0) return true;
  const std::int64_t every = asked.every_micro_steps;
  return every > 0 && training.cursor.micro_step / every > training.saved_micro_step / every;
}

bool checkpoint_due_inside(const Training& training, std::int64_t micro_step) {
  const std::int64_t every = training.spec().checkpoint.every_micro_steps;
  return every > 0 && micro_step % every == 0 && training.plan().knobs.checkpoint_scope != CheckpointScope::boundary;
}

namespace {

void commit(Training& training, CheckpointContent content) {
  TrainingCursor& cursor = content.cursor;
  training.report.phase("checkpoint");
  cursor.seconds = training.report.seconds();
  cursor.finite = at::isfinite(training.model.flat()).all().item<bool>();
  content.replicated = shared_tensors(training);
  content.local.emplace_back(rng_name, generator_state());
  const std::string where =
      "at update " + std::to_string(cursor.update) +
      (cursor.window.position > 0 ? " and " + std::to_string(cursor.window.position) + " micro-steps" : "");
  const auto saved = [&] {
    const auto untimed = training.axis.untimed();  // the ranks wait for each other's disks
    auto result = save_checkpoint(training.order.run_dir, content, identity_of(training),
                                  training.spec().checkpoint.keep, training.axis);
    training.axis.barrier();  // rank 0 removes old checkpoints last: nobody's next exchange is timed until it is back
    return result;
  }();
  if (!saved) {
    training.report.warn_first("disk", "the checkpoint " + where + " failed: " + saved.error().text(),
                               "The previous checkpoints are untouched, and the next one is tried as planned.");
    return;
  }
  training.saved = cursor.mark();
  training.saved_micro_step = cursor.micro_step;
  if (saved->retention)
    training.report.warn_first("disk", "older checkpoints were left in place: " + saved->retention->text(),
                               "The checkpoint itself is saved.");
  training.report.from_first(CheckpointDone{
      .update = cursor.update, .path = "checkpoints/" + saved->name, .bytes = saved->bytes, .seconds = saved->seconds});
}

}  // namespace

void save(Training& training) {
  if (training.order.run_dir.empty() || training.saved == training.cursor.mark()) return;
  commit(training, {.cursor = training.cursor, .replicated = {}, .local = {}});
}

void save_inside(Training& training, const MicroPlan& micro, const OpenWindow& open) {
  if (training.order.run_dir.empty()) return;
  CheckpointContent content{.cursor = training.cursor, .replicated = {}, .local = {}};
  content.cursor.micro_step = micro.micro_step;
  content.cursor.window = training.window.position();
  content.cursor.schedule_position = training.window.schedule_position();
  content.cursor.loss_scale = training.loss_scale.scale;
  content.cursor.scale_growth = training.loss_scale.growth;
  content.cursor.optimizer_steps = training.optimizer->steps();
  if (training.plan().knobs.checkpoint_scope == CheckpointScope::anywhere) {
    content.local = {{gradients_name, training.reducer.flat_gradients()}, {tally_name, tally_tensor(open)}};
    if (const at::Tensor lost = training.reducer.flat_compensation(); lost.defined())
      content.local.emplace_back(compensation_name, lost);
  }
  commit(training, std::move(content));
}

}  // namespace accrue
