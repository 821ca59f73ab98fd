// SPDX-License-Identifier: Apache-2.0
#include "accrue/parallel/distributed_data_parallel.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdio>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "bucket_reducer.h"
#include "grad_arena.h"
#include "replica_check.h"

namespace accrue {
namespace {

struct Replica {
  std::vector<at::Tensor> trainable;  ///< each tensor once: a tied weight has one gradient
  NamedTensors parameters;            ///< trainable, with their names
  NamedTensors everything;            ///< all parameters and buffers, each once
};

Replica replica_of(torch::nn::Module& module) {
  Replica replica;
  std::unordered_set<const void*> known;
  for (const auto& entry : module.named_parameters()) {
    const at::Tensor& tensor = entry.value();
    if (!tensor.defined() || !known.insert(tensor.unsafeGetTensorImpl()).second) continue;
    replica.everything.emplace_back(entry.key(), tensor);
    if (!tensor.requires_grad()) continue;
    replica.trainable.push_back(tensor);
    replica.parameters.emplace_back(entry.key(), tensor);
  }
  for (const auto& entry : module.named_buffers()) {
    const at::Tensor& tensor = entry.value();
    if (tensor.defined() && known.insert(tensor.unsafeGetTensorImpl()).second) {
      replica.everything.emplace_back(entry.key(), tensor);
    }
  }
  return replica;
}

void check(const Replica& replica, const DataParallelOptions& options) {
  if (options.bucket_bytes <= 0) throw std::invalid_argument("DistributedDataParallel: bucket_bytes must be positive");
  if (replica.trainable.empty()) {
    throw std::invalid_argument("DistributedDataParallel: the module has no parameter that requires a gradient");
  }
  for (const auto& [name, tensor] : replica.parameters) {
    if (torch::autograd::impl::post_acc_grad_hooks(tensor) == nullptr) continue;
    throw std::invalid_argument("DistributedDataParallel: parameter " + name +
                                " is taken: another DistributedDataParallel holds the module");
  }
  const auto& [first_name, first] = replica.parameters.front();
  if (!at::isFloatingType(first.scalar_type())) {
    throw std::invalid_argument("DistributedDataParallel: parameter " + first_name +
                                " is no real floating-point tensor");
  }
  for (const auto& [name, tensor] : replica.parameters) {
    if (tensor.scalar_type() == first.scalar_type() && tensor.device() == first.device()) continue;
    throw std::invalid_argument("DistributedDataParallel: all parameters must share one dtype and device, but " +
                                first_name + " is " + c10::toString(first.scalar_type()) + " on " +
                                first.device().str() + " and " + name + " is " + c10::toString(tensor.scalar_type()) +
                                " on " + tensor.device().str() + "; convert the module with module.to(...) first");
  }
}

/// K16: the type in which gradients of such parameters are added up.
at::ScalarType type_of_sum(at::ScalarType own, AccumulationDtype accumulation) {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(own));
  return bytes_of_sum(accumulation, bytes) > bytes ? at::kFloat : own;
}

/// The arena's memory, and how it is divided.
struct FlatMemory {
  FlatLayout layout;
  at::Tensor gradients;
  at::Tensor compensation;
};

FlatMemory memory_for(const std::vector<at::Tensor>& parameters, const DataParallelOptions& options,
                      Communicator& axis) {
  const at::Tensor& like = parameters.front();
  const at::ScalarType type = type_of_sum(like.scalar_type(), options.accumulation);
  std::vector<std::int64_t> numels;
  for (const auto& each : parameters) numels.push_back(each.numel());
  FlatMemory memory;
  memory.layout = flat_layout(numels, static_cast<std::int64_t>(c10::elementSize(type)), options.bucket_bytes);
  const auto own = like.options().requires_grad(false).dtype(type);
  memory.gradients =
      like.is_cpu() ? axis.shared_buffer(memory.layout.numel, type) : at::zeros({memory.layout.numel}, own);
  if (options.accumulation == AccumulationDtype::float32_compensated)
    memory.compensation = at::zeros({memory.layout.numel}, own);
  return memory;
}

/// Marks a parameter as taken and, where buckets go out when they are ready, tells the reducer that its gradient has
/// been accumulated.
class ArrivalHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ArrivalHook(std::function<void()> arrived) : arrived_(std::move(arrived)) {}
  void operator()(const at::Tensor&) override {
    if (arrived_) arrived_();
  }

 private:
  std::function<void()> arrived_;
};

/// Before a gradient is accumulated.
class ComingHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit ComingHook(std::function<void()> coming) : coming_(std::move(coming)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    coming_();
    return gradients;
  }

 private:
  std::function<void()> coming_;
};

}  // namespace

struct DistributedDataParallel::State {
  State(const Replica& replica, Communicator& communicator, const DataParallelOptions& asked)
      : State(replica, communicator, asked, memory_for(replica.trainable, asked, communicator)) {}
  State(const Replica& replica, Communicator& communicator, const DataParallelOptions& asked, FlatMemory memory)
      : axis(communicator),
        options(asked),
        arena(replica.trainable, std::move(memory.layout), std::move(memory.gradients), std::move(memory.compensation)),
        reducer(arena.layout(), [this](std::size_t bucket) { reduce(bucket); }) {}

  void mark_parameters();
  void release_parameters();
  void arrived(std::size_t parameter);
  void reduce(std::size_t bucket);
  void mend(std::size_t parameter);

  Communicator& axis;
  DataParallelOptions options;
  GradArena arena;
  BucketReducer reducer;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  ///< with compensation: those with a hook of ours
  bool sync = true;
  bool said = false;
  std::int64_t reductions = 0;
};

void DistributedDataParallel::State::mark_parameters() {
  const auto& parameters = arena.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::function<void()> on_arrival;
    const bool compensated = arena.compensation().defined();
    if (compensated || options.launch == LaunchBuckets::when_ready) on_arrival = [this, i] { arrived(i); };
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i], std::make_unique<ArrivalHook>(std::move(on_arrival)));
    if (!compensated) continue;
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    accumulators.back()->add_pre_hook(std::make_unique<ComingHook>([this, i] {
      mend(i);
      arena.set_aside(i);
    }));
  }
}

void DistributedDataParallel::State::release_parameters() {
  for (const auto& parameter : arena.parameters()) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  for (const auto& each : accumulators)
    std::erase_if(each->pre_hooks(), [](const auto& hook) { return dynamic_cast<ComingHook*>(hook.get()) != nullptr; });
}

void DistributedDataParallel::State::arrived(std::size_t parameter) {
  if (arena.compensation().defined()) arena.fold(parameter);
  if (!sync || options.launch != LaunchBuckets::when_ready) return;
  mend(parameter);
  reducer.arrived(parameter);
}

void DistributedDataParallel::State::mend(std::size_t parameter) {
  if (!arena.mend(parameter) || said) return;
  said = true;
  std::fputs(
      "accrue: gradients were dropped or replaced, as zero_grad() does by default; they were copied back into the flat "
      "gradients.\n"
      "        Call DistributedDataParallel::zero_grad(), or zero_grad(/*set_to_none=*/false), to save that copy.\n",
      stderr);
}

void DistributedDataParallel::State::reduce(std::size_t index) {
  if (axis.size() == 1) return;
  at::Tensor bucket = arena.bucket(index);
  axis.all_reduce_gradients(bucket);
  ++reductions;
}

DistributedDataParallel::DistributedDataParallel(torch::nn::Module& module, Communicator& axis,
                                                 DataParallelOptions options) {
  const Replica replica = replica_of(module);
  check(replica, options);
  verify_replicas(replica.everything, axis);
  if (options.broadcast_parameters) broadcast_values(replica.everything, axis);
  state_ = std::make_unique<State>(replica, axis, options);
  state_->mark_parameters();
}

DistributedDataParallel::~DistributedDataParallel() {
  state_->release_parameters();
}

bool DistributedDataParallel::sync_enabled() const {
  return state_->sync;
}

void DistributedDataParallel::set_sync_enabled(bool enabled) {
  state_->sync = enabled;
}

void DistributedDataParallel::finish() {
  if (!state_->sync) return;
  for (std::size_t i = 0; i < state_->arena.parameters().size(); ++i) state_->mend(i);
  state_->reducer.finish();
  const std::int64_t ranks = state_->axis.size();
  if (state_->options.op == ReduceOp::mean && ranks > 1) {
    at::Tensor flat = state_->arena.flat();
    flat.div_(ranks);
  }
}

void DistributedDataParallel::zero_grad() {
  state_->arena.zero();
}

at::Tensor DistributedDataParallel::flat_gradients() const {
  return state_->arena.flat();
}

at::Tensor DistributedDataParallel::flat_compensation() const {
  return state_->arena.compensation();
}

const FlatLayout& DistributedDataParallel::layout() const {
  return state_->arena.layout();
}

const std::vector<at::Tensor>& DistributedDataParallel::parameters() const {
  return state_->arena.parameters();
}

std::int64_t DistributedDataParallel::reductions() const {
  return state_->reductions;
}

}  // namespace accrue
