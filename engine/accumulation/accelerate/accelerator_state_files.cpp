// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(). What all ranks share (parameters, optimizers, schedules, scaler, step) rank 0 writes
// once; what is a rank's own (RNG, the gradients of an open group, where its loaders stand) each writes itself. Files
// are named-tensor archives: no code, no object graph. A file is written beside its name and then renamed, so a save
// that fails leaves the last one whole. The original keeps the step without the gradients; so does this by default, and
// then clears what load_state() finds, as a fresh process has none. N is not loaded: the program set it, perhaps anew
// for other hardware, and a group that was open goes on until its step divides by the N in force. With the N that was
// saved that is where it would have ended.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <mutex>
#include <system_error>

#include "accelerator_impl.h"
#include "accrue/checkpoint/tensor_archive.h"

namespace accrue::accelerate {

namespace fs = std::filesystem;

/// Collects and hands back an Accelerator's state.
struct StateFiles {
  static StateDict models(Accelerator::Impl& impl);
  static StateDict shared(Accelerator::Impl& impl);
  static StateDict own(Accelerator::Impl& impl, const SaveStateOptions& options);
  static void load_models(Accelerator::Impl& impl, const StateDict& state);
  static void load_shared(Accelerator::Impl& impl, const StateDict& state);
  static void load_own(Accelerator::Impl& impl, const StateDict& state);
  static Result<void> save(Accelerator::Impl& impl, const fs::path& folder, const SaveStateOptions& options);
  static Result<void> load(Accelerator::Impl& impl, const fs::path& folder);
};

namespace {

std::string numbered(const char* what, std::size_t i) {
  return std::string(what) + "." + std::to_string(i);
}

const at::Tensor& entry(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end()) return found->second;
  throw std::invalid_argument("there is no entry \"" + name + "\"");
}

void copy_into(at::Tensor target, const at::Tensor& saved, const std::string& name) {
  if (target.sizes() != saved.sizes())
    throw std::invalid_argument("the shape of \"" + name + "\" is not that of what was prepared");
  target.copy_(saved);
}

fs::path rank_file(const fs::path& folder, std::int64_t rank) {
  return folder / ("rank-" + std::to_string(rank) + ".safetensors");
}

Result<void> write(const fs::path& file, const StateDict& state) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : state) tensors.emplace_back(name, tensor.detach().cpu().contiguous());
  fs::path part = file;
  part += ".part";
  std::error_code failure;
  fs::remove(part, failure);
  if (const auto written = write_archive(part, tensors); !written) return tl::unexpected(written.error());
  fs::rename(part, file, failure);
  if (failure) return fail(ErrorCode::disk, "the state could not be put in place: " + failure.message(), file.string());
  return {};
}

Result<StateDict> read(const fs::path& file) {
  auto archive = read_archive(file);
  if (!archive) return tl::unexpected(archive.error());
  StateDict state;
  for (auto& [name, tensor] : archive->tensors) state.emplace(name, tensor);
  return state;
}

/// Runs `load`; what does not fit becomes an error that names the file.
Result<void> fitted(const fs::path& file, const std::function<void(const StateDict&)>& load) {
  const auto state = read(file);
  if (!state) return tl::unexpected(state.error());
  try {
    const at::NoGradGuard no_grad;
    load(*state);
  } catch (const std::exception& failure) {
    return fail(ErrorCode::protocol, failure.what(), file.string(),
                "prepare the same models, optimizers and schedulers in the same order before load_state()");
  }
  return {};
}

/// The first error of any rank: this rank's own, or a word about the others.
Result<void> agreed(Result<void> mine, Communicator& axis, const fs::path& folder) {
  at::Tensor failed = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  axis.all_reduce(failed);
  if (mine && failed.item<double>() > 0)
    return fail(ErrorCode::disk, "another rank failed on its part of the state", folder.string());
  return mine;
}

}  // namespace

StateDict StateFiles::models(Accelerator::Impl& impl) {
  StateDict state;
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    for (const auto& each : impl.models[i]->module->named_parameters())
      state[numbered("model", i) + "." + each.key()] = each.value();
    for (const auto& each : impl.models[i]->module->named_buffers())
      state[numbered("model", i) + "." + each.key()] = each.value();
  }
  return state;
}

StateDict StateFiles::shared(Accelerator::Impl& impl) {
  StateDict state;
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    put_under(state, numbered("optimizer", i), impl.optimizers[i]->state_dict());
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i)
    put_under(state, numbered("scheduler", i), impl.schedulers[i]->state_dict());
  if (impl.scaler) put_under(state, "scaler", impl.scaler->scaler.state_dict());
  put_under(state, "window", window_state(impl.state.window().position()));
  return state;
}

StateDict StateFiles::own(Accelerator::Impl& impl, const SaveStateOptions& options) {
  StateDict state;
  impl.look();
  {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::scoped_lock lock(generator.mutex());
    state["rng"] = generator.get_state();
  }
  for (std::size_t i = 0; options.gradients && i < impl.models.size(); ++i) {
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (parameters[p].grad().defined())
        state[numbered("gradient", i) + "." + std::to_string(p)] = parameters[p].grad();
    if (impl.models[i]->owed) state[numbered("owed", i)] = state_number(std::int64_t{1});
  }
  for (std::size_t i = 0; options.gradients && i < impl.optimizers.size(); ++i)
    state[numbered("gradients_of", i)] = state_number(static_cast<std::int64_t>(impl.optimizers[i]->gradients()));
  for (std::size_t i = 0; options.loaders && i < impl.state.loaders().size(); ++i) {
    const PreparedLoaderBase& loader = *impl.state.loaders()[i];
    state[numbered("loader", i) + ".epoch"] = state_number(loader.epoch());
    state[numbered("loader", i) + ".position"] = state_number(loader.position());
  }
  return state;
}

void StateFiles::load_models(Accelerator::Impl& impl, const StateDict& state) {
  for (auto& [name, tensor] : models(impl)) copy_into(tensor, entry(state, name), name);
}

void StateFiles::load_shared(Accelerator::Impl& impl, const StateDict& state) {
  WindowPosition position = window_position(take_under(state, "window"));
  position.next_steps = impl.state.window().position().next_steps;  // N is the program's
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    impl.optimizers[i]->load_state_dict(take_under(state, numbered("optimizer", i)));
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i)
    impl.schedulers[i]->load_state_dict(take_under(state, numbered("scheduler", i)));
  if (impl.scaler) impl.scaler->begin_anew();
  if (impl.scaler) impl.scaler->scaler.load_state_dict(take_under(state, "scaler"));
  impl.state.window().restore(position);
}

void StateFiles::load_own(Accelerator::Impl& impl, const StateDict& state) {
  using Gradients = AcceleratedOptimizer::Gradients;
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    impl.models[i]->ddp->zero_grad();
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string name = numbered("gradient", i) + "." + std::to_string(p);
      if (state.contains(name)) copy_into(parameters[p].grad(), state.at(name), name);
    }
    impl.models[i]->owed = state.contains(numbered("owed", i));
  }
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i) {
    const std::string name = numbered("gradients_of", i);
    impl.optimizers[i]->set_gradients(state.contains(name) ? static_cast<Gradients>(integer_of(state, name))
                                                           : Gradients::applied);
  }
  for (std::size_t i = 0; i < impl.state.loaders().size(); ++i) {
    const std::string name = numbered("loader", i);
    if (!state.contains(name + ".epoch")) continue;
    impl.state.loaders()[i]->set_epoch(integer_of(state, name + ".epoch"));
    impl.state.loaders()[i]->skip_first_batches(integer_of(state, name + ".position"));
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(entry(state, "rng"));
}

Result<void> StateFiles::save(Accelerator::Impl& impl, const fs::path& folder, const SaveStateOptions& options) {
  if (impl.scaler) impl.scaler->settle();  // before any rank writes gradients: they belong to the scale that is saved
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return fail(ErrorCode::disk, "the folder could not be made: " + failure.message(), folder.string());
  if (impl.axis.rank() == 0) {
    if (auto done = write(folder / "model.safetensors", models(impl)); !done) return done;
    if (auto done = write(folder / "state.safetensors", shared(impl)); !done) return done;
  }
  return write(rank_file(folder, impl.axis.rank()), own(impl, options));
}

Result<void> StateFiles::load(Accelerator::Impl& impl, const fs::path& folder) {
  auto done = fitted(folder / "model.safetensors", [&](const StateDict& state) { load_models(impl, state); });
  if (done) done = fitted(folder / "state.safetensors", [&](const StateDict& state) { load_shared(impl, state); });
  if (done) done = fitted(rank_file(folder, impl.axis.rank()), [&](const StateDict& state) { load_own(impl, state); });
  return done;
}

Result<void> Accelerator::save_state(const std::filesystem::path& folder, SaveStateOptions options) {
  check_known_to_all("save_state", false);
  return agreed(StateFiles::save(*impl_, folder, options), impl_->axis, folder);
}

Result<void> Accelerator::load_state(const std::filesystem::path& folder) {
  check_known_to_all("load_state", false);
  return agreed(StateFiles::load(*impl_, folder), impl_->axis, folder);
}

}  // namespace accrue::accelerate
