// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(). Rank 0 writes shared state once (parameters, optimizers, schedules, scaler, step);
// each rank writes its own (RNG, the gradients of an open window, positions of its loaders). Files are named-tensor
// archives: no code, no object graph. The folder is always that of one save (state_folder.h). A load reads and checks
// everything on every rank before it changes anything.
//
// The original keeps the step without the gradients. So does this by default, and then clears existing gradients, as a
// fresh process has none. N is not loaded: the program set it, perhaps for other hardware, and an open window continues
// until its step is a multiple of the current N. With the saved N that is its original end.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <vector>

#include "accelerator_impl.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/parallel/random_streams.h"
#include "accumulation/accelerate/state_folder.h"

namespace accrue::accelerate {
namespace {

namespace fs = std::filesystem;

std::string numbered(const char* what, std::size_t i) {
  return std::string(what) + "." + std::to_string(i);
}

void check_fits(const at::Tensor& target, const at::Tensor& saved, const std::string& name) {
  if (target.sizes() != saved.sizes())
    throw std::invalid_argument("the shape of \"" + name + "\" is not that of what was prepared");
  if (target.is_floating_point() != saved.is_floating_point())
    throw std::invalid_argument("the type of \"" + name + "\" is not that of what was prepared");
}

/// Calls f(name, each) with every optimizer, then with every schedule.
template <typename F>
void each_of(AcceleratorImpl& impl, F&& f) {
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i) f(numbered("optimizer", i), *impl.optimizers[i]);
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i) f(numbered("scheduler", i), *impl.schedulers[i]);
}

/// Calls f(name, parameter) with every parameter, by the name of its gradient.
template <typename F>
void each_gradient(AcceleratorImpl& impl, F&& f) {
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      f(numbered("gradient", i) + "." + std::to_string(p), parameters[p]);
  }
}

StateDict state_of_models(AcceleratorImpl& impl) {
  StateDict state;
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    for (const auto& each : impl.models[i]->module->named_parameters())
      state[numbered("model", i) + "." + each.key()] = each.value();
    for (const auto& each : impl.models[i]->module->named_buffers())
      state[numbered("model", i) + "." + each.key()] = each.value();
  }
  return state;
}

StateDict shared_state(AcceleratorImpl& impl) {
  StateDict state;
  each_of(impl, [&](const std::string& name, auto& each) { put_under(state, name, each.state_dict()); });
  if (impl.scaler) put_under(state, "scaler", impl.scaler->scaler.state_dict());
  put_under(state, "window", window_state(impl.state.window().position()));
  return state;
}

StateDict own_state(AcceleratorImpl& impl, const SaveStateOptions& options) {
  StateDict state;
  impl.look();
  state["rng"] = generator_state(at::detail::getDefaultCPUGenerator());
  if (options.gradients) {
    each_gradient(impl, [&](const std::string& name, const at::Tensor& parameter) {
      if (parameter.grad().defined()) state[name] = parameter.grad();
    });
    for (std::size_t i = 0; i < impl.models.size(); ++i)
      if (impl.models[i]->unreduced) state[numbered("unreduced", i)] = state_number(std::int64_t{1});
    for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
      if (impl.optimizers[i]->waits()) state[numbered("waits", i)] = state_number(std::int64_t{1});
  }
  for (std::size_t i = 0; options.loaders && i < impl.state.loaders().size(); ++i) {
    const PreparedLoaderBase& loader = *impl.state.loaders()[i];
    state[numbered("loader", i) + ".epoch"] = state_number(loader.epoch());
    state[numbered("loader", i) + ".position"] = state_number(loader.position());
  }
  return state;
}

void check_own(AcceleratorImpl& impl, const StateDict& state) {
  each_gradient(impl, [&](const std::string& name, const at::Tensor& parameter) {
    if (state.contains(name)) check_fits(parameter, state.at(name), name);
  });
  for (std::size_t i = 0; i < impl.state.loaders().size(); ++i) {
    const std::string name = numbered("loader", i);
    if (!state.contains(name + ".epoch")) continue;
    static_cast<void>(count_of(state, name + ".epoch") + count_of(state, name + ".position"));
  }
  at::Generator probe = at::detail::getDefaultCPUGenerator().clone();
  probe.set_state(tensor_of(state, "rng"));
}

void load_shared(AcceleratorImpl& impl, const StateDict& state) {
  // N belongs to the program.
  const WindowPosition position =
      window_position(take_under(state, "window")).with_steps_of(impl.state.window().position());
  each_of(impl, [&](const std::string& name, auto& each) { each.load_state_dict(take_under(state, name)); });
  if (impl.scaler) {
    impl.scaler->begin_anew();
    impl.scaler->scaler.load_state_dict(take_under(state, "scaler"));
  }
  impl.state.window().restore(position);
}

/// Undoes load_shared(). An object that refuses has kept its state.
void put_back(AcceleratorImpl& impl, const StateDict& before, const SharedScaler* scaler) {
  each_of(impl, [&](const std::string& name, auto& each) {
    try {
      each.load_state_dict(take_under(before, name));
    } catch (const std::invalid_argument&) {
    }
  });
  if (scaler) *impl.scaler = *scaler;  // with its knowledge of the gradients
  impl.state.window().restore(window_position(take_under(before, "window")));
}

void load_own(AcceleratorImpl& impl, const StateDict& state) {
  for (const auto& model : impl.models) {
    model->ddp->leave_local();  // a window that was open before the load is discarded
    model->ddp->zero_grad();
  }
  each_gradient(impl, [&](const std::string& name, const at::Tensor& parameter) {
    if (!state.contains(name)) return;
    parameter.mutable_grad() = at::empty_like(parameter.detach(), state.at(name).options());
    parameter.grad().copy_(state.at(name));
  });
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    static_cast<void>(impl.models[i]->moved());
    impl.models[i]->unreduced = state.contains(numbered("unreduced", i));
  }
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    impl.optimizers[i]->set_waits(state.contains(numbered("waits", i)));
  for (std::size_t i = 0; i < impl.state.loaders().size(); ++i) {
    const std::string name = numbered("loader", i);
    if (!state.contains(name + ".epoch")) continue;
    impl.state.loaders()[i]->set_epoch(integer_of(state, name + ".epoch"));
    impl.state.loaders()[i]->skip_first_batches(integer_of(state, name + ".position"));
  }
  set_generator_state(at::detail::getDefaultCPUGenerator(), tensor_of(state, "rng"));
}

Result<void> write(const fs::path& file, const std::function<StateDict()>& state) {
  return guarded(file, "", [&]() -> Result<void> {
    NamedTensors tensors;
    for (const auto& [name, tensor] : state()) tensors.emplace_back(name, tensor.detach().cpu().contiguous());
    if (const auto written = write_archive(file, tensors); !written) return tl::unexpected(written.error());
    return {};
  });
}

Result<void> write_part(AcceleratorImpl& impl, const fs::path& part, const SaveStateOptions& options) {
  if (impl.axis.rank() == 0) {
    if (auto done = write(StateFolder::model_file(part), [&] { return state_of_models(impl); }); !done) return done;
    if (auto done = write(StateFolder::shared_file(part), [&] { return shared_state(impl); }); !done) return done;
  }
  return write(StateFolder::rank_file(part, impl.axis.rank()), [&] { return own_state(impl, options); });
}

Result<StateDict> read(const fs::path& file) {
  auto archive = read_archive(file);
  if (!archive) return tl::unexpected(archive.error());
  StateDict state;
  for (auto& [name, tensor] : archive->tensors) state.emplace(name, tensor);
  return state;
}

}  // namespace

Result<void> Accelerator::save_state(const fs::path& path, SaveStateOptions options) {
  AcceleratorImpl& impl = *impl_;
  if (impl.scaler) impl.scaler->settle();  // before any rank writes gradients: they belong to the saved scale
  return save_folder(path, impl.axis, [&](const fs::path& part) { return write_part(impl, part, options); });
}

Result<void> Accelerator::load_state(const fs::path& path) {
  constexpr const char* hint =
      "prepare the same models, optimizers and schedulers in the same order before load_state()";
  AcceleratorImpl& impl = *impl_;
  StateFolder folder(path);
  auto done = agreed(is_main_process() ? folder.settle() : Result<void>(), impl.axis, path);
  if (!done) return done;
  const fs::path model_file = StateFolder::model_file(path);
  const fs::path shared_file = StateFolder::shared_file(path);
  const fs::path own_file = StateFolder::rank_file(path, impl.axis.rank());
  const auto model = read(model_file);
  const auto shared = read(shared_file);
  const auto own = read(own_file);
  for (const auto* each : {&model, &shared, &own})
    if (done && !*each) done = tl::unexpected(each->error());
  const auto step = [&](const fs::path& file, auto&& work) {
    if (!done) return;
    done = guarded(file, hint, [&]() -> Result<void> {
      work();
      return {};
    });
  };
  step(model_file, [&] {
    for (const auto& [name, tensor] : state_of_models(impl)) check_fits(tensor, tensor_of(*model, name), name);
  });
  step(own_file, [&] { check_own(impl, *own); });
  // Only optimizers and schedules know what they accept: they are loaded first, and restored if any rank fails.
  const StateDict before = shared_state(impl);
  const auto scaler = impl.scaler ? std::make_unique<SharedScaler>(*impl.scaler) : nullptr;
  step(shared_file, [&] { load_shared(impl, *shared); });
  done = agreed(std::move(done), impl.axis, path);
  if (!done) {
    put_back(impl, before, scaler.get());
    return done;
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state_of_models(impl)) tensor.copy_(tensor_of(*model, name));
  load_own(impl, *own);
  return {};
}

}  // namespace accrue::accelerate
