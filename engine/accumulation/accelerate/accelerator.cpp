// SPDX-License-Identifier: Apache-2.0
// The Accelerator puts the parts together: the state decides before the forward, backward() divides by N and reduces
// what it reached, optimizers and schedules ask the state. Reducing after the backward instead of within it keeps a
// group's reductions to one per bucket, and lets a rank without a batch take its part in them.
// Source: Hugging Face Accelerate 1.15, Accelerator.
#include "accrue/accumulation/accelerate/accelerator.h"

#include <ATen/SequenceNumber.h>
#include <ATen/ops/div.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "accelerator_impl.h"
#include "gradient_watch.h"

namespace accrue::accelerate {
namespace {

/// Later than any stretch: nothing is known to keep it from reducing.
constexpr std::uint64_t now = std::numeric_limits<std::uint64_t>::max();
/// Stretches that are remembered per model; a backward that comes after as many no_sync() scopes reduces.
constexpr std::size_t remembered_stretches = 1024;

std::vector<GradientWatch> watch(const std::vector<PreparedModel>& models) {
  std::vector<GradientWatch> watches;
  for (const auto& each : models) watches.emplace_back(each.ddp->parameters());
  return watches;
}

std::vector<GradientWatch> watch(const std::vector<std::unique_ptr<AcceleratedOptimizer>>& optimizers) {
  std::vector<GradientWatch> watches;
  for (const auto& each : optimizers) watches.emplace_back(each->parameters());
  return watches;
}

std::vector<std::size_t> moved(const std::vector<GradientWatch>& watches) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < watches.size(); ++i)
    if (watches[i].moved()) indices.push_back(i);
  return indices;
}

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

}  // namespace

bool PreparedModel::reduces(std::uint64_t when) const {
  if (triggered) return true;
  if (!ddp->sync_enabled()) return false;
  return std::none_of(quiet.begin(), quiet.end(),
                      [&](const QuietStretch& each) { return each.begin <= when && when < each.end; });
}

Accelerator::Impl::Impl(const AcceleratorOptions& options, Communicator& communicator)
    : state(options, communicator.size()), axis(communicator) {
  if (options.mixed_precision == MixedPrecision::fp16)
    scaler = std::make_unique<SharedScaler>(options.grad_scaler, &communicator);
  state.shadow = [this] { shadow(); };
}

Reached Accelerator::Impl::everything() const {
  return {all_of(models.size()), all_of(optimizers.size())};
}

void Accelerator::Impl::after_backward(const Reached& reached, std::uint64_t when) {
  for (const std::size_t i : reached.models)
    if (models[i].reduces(when)) models[i].ddp->finish();
  using Gradients = AcceleratedOptimizer::Gradients;
  for (const std::size_t i : reached.optimizers)
    optimizers[i]->set_gradients(state.sync_gradients() ? Gradients::complete : Gradients::open);
}

void Accelerator::Impl::shadow() {
  plan = state.begin_micro_step();
  std::list<GradSync::NoSyncScope> quiet;
  if (!plan.update && !state.sync_each_batch())
    for (PreparedModel& each : models) quiet.emplace_back(*each.ddp);
  if (state.script().play(plan.update)) return;
  after_backward(everything(), now);
  for (const auto& each : optimizers) each->step();
  for (const auto& each : schedulers) each->step();
  for (const auto& each : optimizers) each->zero_grad();
}

Accelerator::Accelerator(AcceleratorOptions options, Communicator& axis)
    : impl_(std::make_unique<Impl>(options, axis)) {}

Accelerator::~Accelerator() = default;

DistributedDataParallel& Accelerator::prepare(torch::nn::Module& module) {
  PreparedModel model;
  model.module = &module;
  model.ddp = std::make_unique<DistributedDataParallel>(module, impl_->axis, impl_->state.options().data_parallel);
  return *impl_->models.emplace_back(std::move(model)).ddp;
}

AcceleratedOptimizer& Accelerator::prepare(torch::optim::Optimizer& optimizer) {
  return prepare(wrap(optimizer));
}

AcceleratedOptimizer& Accelerator::prepare(std::shared_ptr<BaseOptimizer> optimizer) {
  if (!optimizer) throw std::invalid_argument("prepare(optimizer): there is none; give one");
  return *impl_->optimizers.emplace_back(std::make_unique<AcceleratedOptimizer>(
      std::move(optimizer), impl_->state, impl_->scaler.get(), [this](const at::Tensor& loss) { backward(loss); }));
}

AcceleratedScheduler& Accelerator::prepare(std::shared_ptr<BaseScheduler> scheduler,
                                           std::vector<const AcceleratedOptimizer*> optimizers) {
  if (!scheduler) throw std::invalid_argument("prepare(scheduler): there is none; give one");
  auto answer = [impl = impl_.get(), named = std::move(optimizers)] {
    std::vector<const AcceleratedOptimizer*> those = named;
    if (those.empty())
      for (const auto& each : impl->optimizers) those.push_back(each.get());
    return those;
  };
  return *impl_->schedulers.emplace_back(
      std::make_unique<AcceleratedScheduler>(std::move(scheduler), impl_->state, std::move(answer)));
}

AcceleratedScheduler& Accelerator::prepare(torch::optim::LRScheduler& scheduler, AcceleratedOptimizer& optimizer,
                                           std::optional<std::int64_t> total_steps) {
  return prepare(wrap(scheduler, optimizer.torch(), total_steps), {&optimizer});
}

std::size_t Accelerator::index_of_sync(const GradSync& sync) const {
  for (std::size_t i = 0; i < impl_->models.size(); ++i)
    if (impl_->models[i].ddp.get() == &sync) return i;
  throw std::invalid_argument(
      "Accelerator: the model is not one that this accelerator prepared; pass the module given to prepare(), or what "
      "prepare() answered");
}

std::size_t Accelerator::index_of_module(const torch::nn::Module& module) const {
  for (std::size_t i = 0; i < impl_->models.size(); ++i)
    if (impl_->models[i].module == &module) return i;
  throw std::invalid_argument("Accelerator: module " + module.name() +
                              " was not prepared; call prepare(module) before the loop");
}

AccumulateScope Accelerator::accumulate_models(std::vector<std::size_t> models) {
  impl_->plan = state().begin_micro_step();
  std::list<GradSync::NoSyncScope> quiet;
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  if (!impl_->plan.update && !state().sync_each_batch())
    for (const std::size_t i : models) quiet.emplace_back(*impl_->models[i].ddp);
  return AccumulateScope(std::move(quiet));
}

NoSyncScope Accelerator::no_sync_models(std::vector<std::size_t> models) {
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  auto quiet = std::make_shared<std::list<GradSync::NoSyncScope>>();
  for (const std::size_t i : models) quiet->emplace_back(*impl_->models[i].ddp);
  return NoSyncScope([impl = impl_.get(), models = std::move(models), quiet, begin = at::sequence_number::peek()] {
    const QuietStretch stretch{begin, at::sequence_number::peek()};
    quiet->clear();
    for (const std::size_t i : models) {
      auto& known = impl->models[i].quiet;
      known.push_back(stretch);
      if (known.size() > remembered_stretches) known.pop_front();
    }
  });
}

TriggerSyncScope Accelerator::trigger_sync_model(std::size_t model) {
  PreparedModel& chosen = impl_->models[model];
  const bool enabled = chosen.ddp->sync_enabled();
  const bool before = std::exchange(chosen.triggered, true);
  chosen.ddp->set_sync_enabled(true);
  return TriggerSyncScope([impl = impl_.get(), model, enabled, before] {
    impl->models[model].triggered = before;
    impl->models[model].ddp->set_sync_enabled(enabled);
  });
}

JoinScope Accelerator::join_uneven_inputs(std::optional<bool> even_batches) {
  if (num_processes() == 1) return JoinScope(std::function<void()>{});
  const bool even = even_batches.value_or(state().options().even_batches);
  std::vector<std::pair<PreparedLoaderBase*, std::optional<UnevenRanks>>> before;
  for (PreparedLoaderBase* loader : state().loaders()) {
    before.emplace_back(loader, loader->uneven_override());
    if (even_batches || !even) loader->override_uneven(even ? UnevenRanks::repeat : UnevenRanks::join);
  }
  return JoinScope([impl = impl_.get(), before = std::move(before)] {
    const auto& alive = impl->state.loaders();
    for (const auto& [loader, uneven] : before)
      if (std::find(alive.begin(), alive.end(), loader) != alive.end()) loader->override_uneven(uneven);
  });
}

void Accelerator::backward(const at::Tensor& loss) {
  Impl& impl = *impl_;
  Reached reached;
  std::uint64_t when = now;
  if (state().on_empty_batch()) {
    const bool known = !impl.last_reached.models.empty() || !impl.last_reached.optimizers.empty();
    reached = known ? impl.last_reached : impl.everything();
  } else {
    if (!loss.defined() || !loss.grad_fn())
      throw std::invalid_argument(
          "backward(loss): the loss has no graph; compute it from the model's output with gradients enabled");
    const auto models = watch(impl.models);
    const auto optimizers = watch(impl.optimizers);
    when = loss.grad_fn()->sequence_nr();
    const at::Tensor share = loss / gradient_accumulation_steps();
    (impl.scaler ? impl.scaler->scale(share) : share).backward();
    reached = impl.last_reached = {moved(models), moved(optimizers)};
  }
  state().script().note([&impl, reached] { impl.after_backward(reached, now); });
  impl.after_backward(reached, when);
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::any_of(impl_->optimizers.begin(), impl_->optimizers.end(),
                     [](const auto& each) { return each->step_was_skipped(); });
}

void Accelerator::free_memory() {
  impl_->schedulers.clear();
  impl_->optimizers.clear();
  impl_->models.clear();
  impl_->last_reached = {};
  if (impl_->scaler) impl_->scaler->forget();
  impl_->state.script() = MicroStepScript(num_processes() > 1);
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

}  // namespace accrue::accelerate
