// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "accrue/run/sha256.h"
#include "accrue/run/spec_io.h"

namespace accrue {
namespace {

constexpr const char* rng_name = "local.rng.cpu";

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
  return tensors;
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
  std::string name = training.order.resume_from;
  while (true) {
    auto loaded = load_checkpoint(training.order.run_dir, name, training.axis.rank(), identity_of(training));
    const std::int64_t mine = !loaded ? -2 : loaded->name.empty() ? -1 : loaded->content.cursor.update;
    at::Tensor all = at::empty({training.axis.size(), 1}, at::kLong);
    at::Tensor one = at::empty({1}, at::kLong);
    one.fill_(mine);
    training.axis.all_gather(all, one);
    const std::int64_t least = all.min().item<std::int64_t>();
    if (!loaded) return loaded;
    if (least == -2) return fail(ErrorCode::data, "another rank cannot continue from this run's checkpoints");
    if (all.max().item<std::int64_t>() == least) return loaded;
    if (least == -1) return LoadedCheckpoint{};
    name = "step-" + std::to_string(least);
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

Result<void> restore(Training& training, const LoadedCheckpoint& loaded) {
  const NamedTensors live = shared_tensors(training);
  const std::map<std::string, at::Tensor> saved(loaded.content.replicated.begin(), loaded.content.replicated.end());
  if (const std::string differing = mismatches(live, saved); !differing.empty())
    return fail(ErrorCode::protocol, "the checkpoint is of another model: " + differing, loaded.name,
                "Resume with the spec that the run was started with.");
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : live) at::Tensor(tensor).copy_(saved.at(name));
  for (const auto& [name, tensor] : loaded.content.local)
    if (name == rng_name) set_generator_state(tensor);
  const TrainingCursor& cursor = loaded.content.cursor;
  training.optimizer->set_steps(cursor.optimizer_steps);
  training.window.seek(cursor.micro_step, cursor.schedule_position);
  training.cursor = cursor;
  training.saved_update = cursor.update;
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

bool checkpoint_due(const Training& training, std::int64_t update) {
  const std::int64_t every = training.spec().checkpoint.every_updates;
  return every > 0 && update % every == 0;
}

void save(Training& training) {
  TrainingCursor cursor = training.cursor;
  if (training.order.run_dir.empty() || training.saved_update == cursor.update) return;
  training.report.phase("checkpoint");
  cursor.seconds = training.report.seconds();
  cursor.finite = at::isfinite(training.model.flat()).all().item<bool>();
  CheckpointContent content{
      .cursor = cursor, .replicated = shared_tensors(training), .local = {{rng_name, generator_state()}}};
  const auto saved = save_checkpoint(training.order.run_dir, content, identity_of(training),
                                     training.spec().checkpoint.keep, training.axis);
  if (!saved) {
    training.report.warn_first(
        "disk", "the checkpoint at update " + std::to_string(cursor.update) + " failed: " + saved.error().text(),
        "Training goes on; the previous checkpoints are untouched and the next one is tried as "
        "planned.");
    return;
  }
  training.saved_update = cursor.update;
  if (saved->retention)
    training.report.warn_first("disk", "older checkpoints were left in place: " + saved->retention->text(),
                               "The checkpoint itself is saved.");
  training.report.from_first(CheckpointDone{
      .update = cursor.update, .path = "checkpoints/" + saved->name, .bytes = saved->bytes, .seconds = saved->seconds});
}

}  // namespace accrue
