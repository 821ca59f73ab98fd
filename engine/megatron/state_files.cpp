// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(): an archive of named tensors for each rank. A rank's own part of model and optimizer is
// there, so a state is read on as many tensor, pipeline and data ranks as wrote it. A load checks everything on every
// rank before it changes anything.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <mutex>
#include <stdexcept>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/parallel/random_streams.h"
#include "accumulation/accelerate/state_folder.h"
#include "accumulation/optimizer_state.h"
#include "megatron/accelerator_impl.h"
#include "megatron/schedule_state.h"

namespace accrue::megatron {
namespace {

namespace fs = std::filesystem;
using accelerate::StateFolder;

constexpr const char* format = "accrue-megatron-state-2";

StateDict counters(const AcceleratorImpl& impl) {
  const auto number = [](std::int64_t value) { return at::full({}, value, at::kLong); };
  StateDict state;
  state["counters.iteration"] = number(impl.progress.iteration);
  state["counters.skipped"] = number(impl.progress.skipped);
  state["counters.nan"] = number(impl.progress.nan);
  state["counters.consumed_train_samples"] = number(impl.progress.consumed_train_samples);
  state["counters.consumed_valid_samples"] = number(impl.progress.consumed_valid_samples);
  state["counters.schedule_samples"] = number(impl.schedule_position());
  state["scaler.scale"] = at::full({}, impl.loss_scale.scale, at::kDouble);
  state["scaler.growth"] = number(impl.loss_scale.growth);
  state["scaler.overflows"] = number(impl.loss_scale.overflows);
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

Schedule schedule_of(const AcceleratorImpl& impl) {
  return {.curve = impl.curve, .decoupled = impl.decoupled, .decay = impl.decay};
}

std::map<std::string, std::string> metadata_of(const AcceleratorImpl& impl) {
  std::map<std::string, std::string> all = layout(impl);
  all.merge(sizes_of_data(impl));
  all.merge(texts_of(schedule_of(impl)));
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

std::int64_t counter(const Archive& archive, const std::string& name) {
  const at::Tensor* found = archive.find("counters." + name);
  if (found == nullptr) throw std::invalid_argument("\"counters." + name + "\" is missing");
  return found->item<std::int64_t>();
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
  schedule_after_load(schedule_of(impl), archive.metadata, impl.resolved);
  for (const auto& [name, tensor] : state_of(impl)) {
    if (name.starts_with("optimizer.")) continue;
    const at::Tensor* saved = archive.find(name);
    if (saved == nullptr) throw std::invalid_argument("\"" + name + "\" is missing");
    if (saved->sizes() != tensor.sizes() || saved->scalar_type() != tensor.scalar_type())
      throw std::invalid_argument("\"" + name + "\" has another shape or type");
  }
  if (const auto& given = impl.plugin().consumed_samples; given && !given->empty())
    if (const std::int64_t saved = counter(archive, "consumed_train_samples"); given->front() != saved)
      throw std::invalid_argument("consumed_samples begins with " + std::to_string(given->front()) +
                                  " here; the state was saved after " + std::to_string(saved) +
                                  ": leave the field out, loaders go on where the state was saved");
  for (const char* each :
       {"iteration", "skipped", "nan", "consumed_train_samples", "consumed_valid_samples", "schedule_samples"})
    if (counter(archive, each) < 0) throw std::invalid_argument(std::string("counters.") + each + " is below 0");
  if (counter(archive, "iteration") > counter(archive, "consumed_train_samples") / impl.global_batch)
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
  const Schedule schedule = schedule_after_load(schedule_of(impl), archive.metadata, impl.resolved);
  impl.curve = schedule.curve;
  impl.decoupled = schedule.decoupled;
  impl.decay = schedule.decay;
  if (impl.loss_scale.growth_factor > 1.0) {  // else loss_scale says what it is
    impl.loss_scale.scale = archive.find("scaler.scale")->item<double>();
    impl.loss_scale.growth = archive.find("scaler.growth")->item<std::int64_t>();
    impl.loss_scale.overflows = archive.find("scaler.overflows")->item<std::int64_t>();
  }
  const std::int64_t updates = counter(archive, "iteration");
  impl.driver->window().seek(updates * impl.num_micro_batches, counter(archive, "schedule_samples"));
  impl.samples_before = counter(archive, "consumed_train_samples") - updates * impl.global_batch;
  impl.note_progress();
  impl.progress.skipped = counter(archive, "skipped");
  impl.progress.nan = counter(archive, "nan");
  impl.progress.consumed_valid_samples = counter(archive, "consumed_valid_samples");
  auto generators = random_streams().state(at::kCPU);
  for (std::size_t i = 0; i < generators.size(); ++i) {
    const std::scoped_lock lock(generators[i].first.mutex());
    generators[i].first.set_state(*archive.find("random." + std::to_string(i)));
  }
  auto& loaders = impl.prepared->loaders;
  loaders[0].continue_after(impl.progress.consumed_train_samples);
  if (loaders.size() > 1) loaders[1].continue_after(impl.progress.consumed_valid_samples);
}

/// An error of any rank is one of all. Collective: the world.
Result<void> agreed(Result<void> mine, Communicator& world, const fs::path& folder) {
  at::Tensor failed = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  world.all_reduce(failed);
  if (mine && failed.item<double>() > 0.0)
    return fail(ErrorCode::disk, "another rank failed on its part of the state", folder.string());
  return mine;
}

template <typename Work>
Result<void> guarded(const fs::path& file, Work&& work) {
  try {
    return work();
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& failure) {
    return fail(ErrorCode::protocol, failure.what(), file.string(),
                "Prepare the same model, optimizer and loaders on as many ranks before load_state().");
  }
}

}  // namespace

Result<void> Accelerator::save_state(const fs::path& path) {
  AcceleratorImpl& impl = *impl_;
  if (!impl.prepared) return fail(ErrorCode::config, "nothing is prepared that could be saved", path.string());
  Communicator& world = impl.mesh.world();
  StateFolder folder(path);
  const bool first = world.rank() == 0;
  if (auto done = agreed(first ? folder.begin() : Result<void>(), world, path); !done) return done;
  const fs::path file = StateFolder::rank_file(folder.part(), world.rank());
  auto done = agreed(guarded(file,
                             [&]() -> Result<void> {
                               const auto written = write_archive(file, state_of(impl), metadata_of(impl));
                               if (!written) return tl::unexpected(written.error());
                               return {};
                             }),
                     world, path);
  if (!done) return done;
  return agreed(first ? folder.commit() : Result<void>(), world, path);
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
  auto done = guarded(file, [&]() -> Result<void> {
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
