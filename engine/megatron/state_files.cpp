// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(): an archive of named tensors for each rank. A rank's own part of model and optimizer is
// there, so a state is read on as many tensor, pipeline and data ranks as wrote it. A load checks everything on every
// rank before it changes anything.
#include <ATen/core/grad_mode.h>

#include <stdexcept>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/parallel/random_streams.h"
#include "accumulation/accelerate/state_folder.h"
#include "accumulation/optimizer_state.h"
#include "megatron/accelerator_impl.h"

namespace accrue::megatron {
namespace {

namespace fs = std::filesystem;
using accelerate::agreed;
using accelerate::guarded;
using accelerate::save_folder;
using accelerate::StateFolder;

constexpr const char* format = "accrue-megatron-state-2";

StateDict counters(const AcceleratorImpl& impl) {
  StateDict state;
  state["counters.iteration"] = state_number(impl.progress.iteration);
  state["counters.skipped"] = state_number(impl.progress.skipped);
  state["counters.nan"] = state_number(impl.progress.nan);
  state["counters.consumed_train_samples"] = state_number(impl.progress.consumed_train_samples);
  state["counters.consumed_valid_samples"] = state_number(impl.progress.consumed_valid_samples);
  state["counters.schedule_samples"] = state_number(impl.schedule_position());
  state["scaler.scale"] = state_number(impl.loss_scale.scale);
  state["scaler.growth"] = state_number(impl.loss_scale.growth);
  state["scaler.overflows"] = state_number(impl.loss_scale.overflows);
  return state;
}

/// What a state must have been saved under.
std::map<std::string, std::string> layout(const AcceleratorImpl& impl) {
  const RankGrid& grid = impl.mesh.grid();
  return {{"format", format},
          {"tensor", std::to_string(grid.tensor)},
          {"pipeline", std::to_string(grid.pipeline)},
          {"data", std::to_string(grid.data)},
          {"chunks", std::to_string(impl.chunks.size())},
          {"use_distributed_optimizer", *impl.plugin().use_distributed_optimizer ? "true" : "false"},
          {"global_batch_size", std::to_string(impl.global_batch)}};
}

/// Of each loader of indexed data: a run of another length has another index, and reads in another order.
std::map<std::string, std::string> sizes_of_data(const AcceleratorImpl& impl) {
  constexpr const char* names[] = {"training", "validation", "test"};
  std::map<std::string, std::string> sizes;
  for (const auto& [which, samples] : impl.indexed_samples)
    sizes[std::string("samples of the ") + names[which] + " data"] = std::to_string(samples);
  return sizes;
}

std::map<std::string, std::string> metadata_of(const AcceleratorImpl& impl) {
  std::map<std::string, std::string> all = layout(impl);
  all.merge(sizes_of_data(impl));
  all.merge(texts_of(impl.schedule));
  return all;
}

NamedTensors state_of(AcceleratorImpl& impl) {
  NamedTensors all;
  const auto put = [&](const std::string& name, const at::Tensor& tensor) {
    all.emplace_back(name, tensor.detach().cpu().contiguous());
  };
  for (const auto& each : impl.all_chunks->named_parameters()) put("model." + each.key(), each.value());
  for (const auto& each : impl.all_chunks->named_buffers()) put("buffer." + each.key(), each.value());
  const auto masters = impl.optimizer->masters();
  for (std::size_t i = 0; i < masters.size(); ++i) put("master." + std::to_string(i), masters[i]);
  for (const auto& [name, tensor] : optimizer_state(impl.optimizer->optimizer())) put("optimizer." + name, tensor);
  for (const auto& [name, tensor] : counters(impl)) put(name, tensor);
  const auto generators = random_streams().state(at::kCPU);
  for (std::size_t i = 0; i < generators.size(); ++i) put("random." + std::to_string(i), generators[i].second);
  return all;
}

StateDict under(const Archive& archive, const std::string& prefix) {
  StateDict state;
  for (const auto& [name, tensor] : archive.tensors)
    if (name.starts_with(prefix)) state[name.substr(prefix.size())] = tensor;
  return state;
}

void check(AcceleratorImpl& impl, const Archive& archive) {
  const auto saved_as = [&archive](const std::string& key) {
    const auto found = archive.metadata.find(key);
    return found == archive.metadata.end() ? "nothing" : found->second;
  };
  for (const auto& [key, value] : layout(impl))
    if (const std::string saved = saved_as(key); saved != value)
      throw std::invalid_argument(key + " is " + value + " here; the state was saved with " + saved);
  for (const auto& [key, value] : sizes_of_data(impl))
    if (const std::string saved = saved_as(key); saved != value)
      throw std::invalid_argument("the " + key + " are " + value + " here; the state was saved with " + saved +
                                  ": indexed data are shuffled for the length of a run, so train_iters or "
                                  "train_samples must be what it was");
  schedule_after_load(impl.schedule, archive.metadata, impl.resolved);
  for (const auto& [name, tensor] : state_of(impl)) {
    if (name.starts_with("optimizer.")) continue;
    const at::Tensor* saved = archive.find(name);
    if (saved == nullptr) throw std::invalid_argument("\"" + name + "\" is missing");
    if (saved->sizes() != tensor.sizes() || saved->scalar_type() != tensor.scalar_type())
      throw std::invalid_argument("\"" + name + "\" has another shape or type");
  }
  const StateDict counters = under(archive, "counters.");
  const std::int64_t consumed = count_of(counters, "consumed_train_samples");
  if (const auto& given = impl.plugin().consumed_samples; given && !given->empty() && given->front() != consumed)
    throw std::invalid_argument("consumed_samples begins with " + std::to_string(given->front()) +
                                " here; the state was saved after " + std::to_string(consumed) +
                                ": leave the field out, loaders go on where the state was saved");
  for (const char* each : {"skipped", "nan", "consumed_valid_samples", "schedule_samples"}) count_of(counters, each);
  if (count_of(counters, "iteration") > consumed / impl.global_batch)
    throw std::invalid_argument("counters.iteration is more than the consumed samples are enough for");
}

/// The optimizer was loaded already.
void take(AcceleratorImpl& impl, const Archive& archive) {
  const at::NoGradGuard no_grad;
  for (const auto& each : impl.all_chunks->named_parameters()) {
    at::Tensor parameter = each.value();
    parameter.copy_(*archive.find("model." + each.key()));
  }
  for (const auto& each : impl.all_chunks->named_buffers()) {
    at::Tensor buffer = each.value();
    buffer.copy_(*archive.find("buffer." + each.key()));
  }
  auto masters = impl.optimizer->masters();
  for (std::size_t i = 0; i < masters.size(); ++i) masters[i].copy_(*archive.find("master." + std::to_string(i)));
  impl.schedule = schedule_after_load(impl.schedule, archive.metadata, impl.resolved);
  if (impl.loss_scale.growth_factor > 1.0) {  // else loss_scale says what it is
    impl.loss_scale.scale = archive.find("scaler.scale")->item<double>();
    impl.loss_scale.growth = archive.find("scaler.growth")->item<std::int64_t>();
    impl.loss_scale.overflows = archive.find("scaler.overflows")->item<std::int64_t>();
  }
  const StateDict counters = under(archive, "counters.");
  const std::int64_t updates = count_of(counters, "iteration");
  impl.driver->window().seek(updates * impl.num_micro_batches, count_of(counters, "schedule_samples"));
  impl.samples_before = count_of(counters, "consumed_train_samples") - updates * impl.global_batch;
  impl.note_progress();
  impl.progress.skipped = count_of(counters, "skipped");
  impl.progress.nan = count_of(counters, "nan");
  impl.progress.consumed_valid_samples = count_of(counters, "consumed_valid_samples");
  auto generators = random_streams().state(at::kCPU);
  for (std::size_t i = 0; i < generators.size(); ++i)
    set_generator_state(generators[i].first, *archive.find("random." + std::to_string(i)));
  auto& loaders = impl.prepared->loaders;
  loaders[0].continue_after(impl.progress.consumed_train_samples);
  if (loaders.size() > 1) loaders[1].continue_after(impl.progress.consumed_valid_samples);
}

constexpr const char* hint = "Prepare the same model, optimizer and loaders on as many ranks before load_state().";

}  // namespace

Result<void> Accelerator::save_state(const fs::path& path) {
  AcceleratorImpl& impl = *impl_;
  if (!impl.prepared) return fail(ErrorCode::config, "nothing is prepared that could be saved", path.string());
  Communicator& world = impl.mesh.world();
  return save_folder(path, world, [&](const fs::path& part) {
    const fs::path file = StateFolder::rank_file(part, world.rank());
    return guarded(file, hint, [&]() -> Result<void> {
      const auto written = write_archive(file, state_of(impl), metadata_of(impl));
      if (!written) return tl::unexpected(written.error());
      return {};
    });
  });
}

Result<void> Accelerator::load_state(const fs::path& path) {
  AcceleratorImpl& impl = *impl_;
  if (!impl.prepared) return fail(ErrorCode::config, "prepare() comes before load_state()", path.string());
  Communicator& world = impl.mesh.world();
  StateFolder folder(path);
  if (auto done = agreed(world.rank() == 0 ? folder.settle() : Result<void>(), world, path); !done) return done;
  const fs::path file = StateFolder::rank_file(path, world.rank());
  const auto archive = read_archive(file);
  // What the optimizer can take only it knows: it is loaded first, and put back where any rank fails.
  const StateDict before = optimizer_state(impl.optimizer->optimizer());
  auto done = guarded(file, hint, [&]() -> Result<void> {
    if (!archive) return tl::unexpected(archive.error());
    check(impl, *archive);
    load_optimizer_state(impl.optimizer->optimizer(), under(*archive, "optimizer."));
    return {};
  });
  done = agreed(std::move(done), world, path);
  if (!done) {
    load_optimizer_state(impl.optimizer->optimizer(), before);
    return done;
  }
  impl.ddp->zero_grad();
  take(impl, *archive);
  return {};
}

}  // namespace accrue::megatron
