// SPDX-License-Identifier: Apache-2.0
// The Accelerator combines the parts: the window decides before the forward; backward() divides by N and reduces the
// models that it reached; optimizers and schedules query the window. Reduction after the backward instead of during it
// means one reduction per bucket and window, in which a rank without a sample can take part.
// Source: Hugging Face Accelerate 1.15, Accelerator.
#include "accrue/accumulation/accelerate/accelerator.h"

#include <ATen/Context.h>

#include <algorithm>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {
namespace {

/// Errors: throws std::invalid_argument for reductions that would not give a window's gradients.
void check(const AcceleratorOptions& options, const GradientState& state) {
  if (options.data_parallel.op == ReduceOp::sum && state.sync_each_batch())
    throw std::invalid_argument(
        "Accelerator: data_parallel.op = sum with sync_each_batch would count the gradients of a window's first "
        "micro-steps once per rank and reduction; use op = mean, or sync_each_batch = false");
}

}  // namespace

AcceleratorImpl::AcceleratorImpl(const AcceleratorOptions& options, Communicator& communicator)
    : held_state(std::make_shared<GradientState>(options, communicator.size())),
      state(*held_state),
      axis(communicator),
      driver(state.shared_window(), ClearGradients::user_if_boundary, "Accelerator: gradient_accumulation_steps") {
  check(options, state);
  if (options.mixed_precision == MixedPrecision::fp16)
    scaler = std::make_unique<SharedScaler>(options.grad_scaler, &communicator);
}

Accelerator::Accelerator(AcceleratorOptions options, Communicator& axis)
    : impl_(std::make_unique<AcceleratorImpl>(options, axis)) {}

Accelerator::~Accelerator() = default;

DistributedDataParallel& Accelerator::prepare(torch::nn::Module& module) {
  const AcceleratorOptions& options = impl_->state.options();
  if (options.device_placement) module.to(options.device);
  auto ddp = std::make_unique<DistributedDataParallel>(module, impl_->axis, impl_->state.options().data_parallel);
  return *impl_->models.emplace_back(std::make_shared<PreparedModel>(module, std::move(ddp)))->ddp;
}

AcceleratedOptimizer& Accelerator::prepare(torch::optim::Optimizer& optimizer) {
  return prepare(wrap(optimizer));
}

AcceleratedOptimizer& Accelerator::prepare(std::shared_ptr<BaseOptimizer> optimizer) {
  if (!optimizer) throw std::invalid_argument("prepare(optimizer): there is none; give one");
  for (const auto& each : impl_->optimizers)
    if (&each->torch() == &optimizer->torch() || &each->inner() == optimizer.get() || each.get() == optimizer.get())
      throw std::invalid_argument(
          "prepare(optimizer): it is prepared already, and would step twice an update; use what prepare() answered");
  return *impl_->optimizers.emplace_back(std::make_unique<AcceleratedOptimizer>(optimizer, *impl_));
}

AcceleratedScheduler& Accelerator::prepare(std::shared_ptr<BaseScheduler> scheduler,
                                           std::vector<const AcceleratedOptimizer*> optimizers) {
  if (!scheduler) throw std::invalid_argument("prepare(scheduler): there is none; give one");
  return *impl_->schedulers.emplace_back(
      std::make_unique<AcceleratedScheduler>(scheduler, *impl_, std::move(optimizers)));
}

AcceleratedScheduler& Accelerator::prepare(torch::optim::LRScheduler& scheduler, AcceleratedOptimizer& optimizer,
                                           std::optional<std::int64_t> total_steps) {
  return prepare(wrap(scheduler, optimizer.torch(), total_steps), {&optimizer});
}

std::unique_ptr<AutocastScope> Accelerator::autocast() const {
  const AcceleratorOptions& options = state().options();
  if (options.mixed_precision == MixedPrecision::no) return nullptr;
  const auto type = options.mixed_precision == MixedPrecision::fp16 ? at::kHalf : at::kBFloat16;
  return std::make_unique<AutocastScope>(type, options.device.type());
}

void Accelerator::set_seed(std::uint64_t seed, bool device_specific) const {
  at::manual_seed(device_specific ? seed + static_cast<std::uint64_t>(process_index()) : seed);
}

std::size_t Accelerator::index_of_sync(const GradSync& sync) const {
  for (std::size_t i = 0; i < impl_->models.size(); ++i)
    if (impl_->models[i]->ddp.get() == &sync) return i;
  throw std::invalid_argument(
      "Accelerator: the model is not one that this accelerator prepared; pass the module given to prepare(), or what "
      "prepare() answered");
}

std::size_t Accelerator::index_of_module(const torch::nn::Module& module) const {
  for (std::size_t i = 0; i < impl_->models.size(); ++i)
    if (impl_->models[i]->module == &module) return i;
  throw std::invalid_argument("Accelerator: module " + module.name() +
                              " was not prepared; call prepare(module) before the loop");
}

void Accelerator::set_sync_gradients(bool sync) {
  impl_->look();
  state().set_sync_gradients(sync);
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::any_of(impl_->optimizers.begin(), impl_->optimizers.end(),
                     [](const auto& each) { return each->step_was_skipped(); });
}

void Accelerator::free_memory() {
  if (impl_->scaler) impl_->scaler->forget();
  impl_->schedulers.clear();
  impl_->optimizers.clear();
  impl_->models.clear();
  impl_->state.reset_step();
}

BatchAttempt Accelerator::find_executable_batch_size(std::int64_t starting_batch_size,
                                                     const std::function<void(const BatchAttempt&)>& body) {
  const ShrinkRule rule =
      state().options().replay.shrink_by_a_tenth ? ShrinkRule::by_a_tenth : ShrinkRule::keep_effective_batch;
  const auto before = [this](const BatchAttempt& attempt) {
    free_memory();
    set_gradient_accumulation_steps(attempt.gradient_accumulation_steps);
  };
  return accelerate::find_executable_batch_size(starting_batch_size, gradient_accumulation_steps(), body, rule,
                                                &impl_->axis, before);
}

std::int64_t Accelerator::num_processes() const {
  return impl_->axis.size();
}

std::int64_t Accelerator::process_index() const {
  return impl_->axis.rank();
}

const MicroPlan& Accelerator::micro_plan() const {
  return impl_->plan;
}

GradScaler* Accelerator::scaler() {
  if (!impl_->scaler) return nullptr;
  impl_->scaler->settle();
  return &impl_->scaler->scaler;
}

GradientState& Accelerator::state() {
  return impl_->state;
}

const GradientState& Accelerator::state() const {
  return impl_->state;
}

Communicator& Accelerator::axis() {
  return impl_->axis;
}

std::ostream& operator<<(std::ostream& out, const Accelerator& accelerator) {
  const AcceleratorOptions& options = accelerator.state().options();
  const char* const precisions[] = {"no", "fp16", "bf16"};
  return out << "Num processes: " << accelerator.num_processes() << "\nProcess index: " << accelerator.process_index()
             << "\nDevice: " << options.device.str()
             << "\nMixed precision type: " << precisions[static_cast<std::size_t>(options.mixed_precision)] << '\n'
             << accelerator.state();
}

}  // namespace accrue::accelerate
