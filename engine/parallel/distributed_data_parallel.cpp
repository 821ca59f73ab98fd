// SPDX-License-Identifier: Apache-2.0
#include "accrue/parallel/distributed_data_parallel.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "bucket_reducer.h"
#include "direct_gradient.h"
#include "grad_arena.h"
#include "replica_check.h"

namespace accrue {
namespace {

constexpr const char* forgotten_finish =
    "DistributedDataParallel: the parameters changed after a backward with sync on whose gradients were never reduced, "
    "so the ranks' weights have drifted apart; call finish() after the last backward of each window and before the "
    "optimizer's step, wrap backwards that should not be reduced in no_sync(), or call leave_local() to abandon "
    "a window";

/// Returns a mark that changes when an optimizer steps. LibTorch's optimizers write without incrementing autograd's
/// version, so the mark includes the first values (FNV-1a). On a device, where reading them would wait, it is the
/// version alone.
std::uint64_t mark_of(const at::Tensor& parameter) {
  constexpr std::size_t sample = 128;
  auto mark = 14695981039346656037ULL ^ static_cast<std::uint64_t>(parameter._version());
  if (!parameter.is_cpu() || !parameter.is_non_overlapping_and_dense()) return mark;
  const auto* bytes = static_cast<const unsigned char*>(parameter.const_data_ptr());
  for (std::size_t i = 0; i < std::min(sample, parameter.nbytes()); ++i) mark = (mark ^ bytes[i]) * 1099511628211ULL;
  return mark;
}

struct Replica {
  std::vector<at::Tensor> trainable;  ///< each tensor once: a tied weight has one gradient
  NamedTensors parameters;            ///< trainable, with their names
  NamedTensors buffers;
  NamedTensors everything;  ///< all parameters and buffers, each once
};

Replica replica_of(torch::nn::Module& module) {
  Replica replica;
  std::unordered_set<const void*> known;
  for (const auto& entry : module.named_parameters()) {
    const at::Tensor& tensor = entry.value();
    if (!tensor.defined() || !known.insert(tensor.unsafeGetTensorImpl()).second) continue;
    replica.everything.emplace_back(entry.key(), tensor);
    if (!tensor.requires_grad()) continue;
    replica.parameters.emplace_back(entry.key(), tensor);
  }
  for (const auto& entry : module.named_buffers()) {
    const at::Tensor& tensor = entry.value();
    if (tensor.defined() && known.insert(tensor.unsafeGetTensorImpl()).second) {
      replica.everything.emplace_back(entry.key(), tensor);
      replica.buffers.emplace_back(entry.key(), tensor);
    }
  }
  // By type, so that each arena has consecutive parameters; in module order within a type.
  std::vector<at::ScalarType> types;
  for (const auto& [name, tensor] : replica.parameters)
    if (std::find(types.begin(), types.end(), tensor.scalar_type()) == types.end())
      types.push_back(tensor.scalar_type());
  const auto place = [&](const auto& entry) {
    return std::find(types.begin(), types.end(), entry.second.scalar_type()) - types.begin();
  };
  std::stable_sort(replica.parameters.begin(), replica.parameters.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const auto& [name, tensor] : replica.parameters) replica.trainable.push_back(tensor);
  return replica;
}

/// LibTorch's own walks copy every name, which takes longer than a small window.
class ParameterWalk final : public torch::nn::Module {
 public:
  template <typename Visit>
  static void of(const torch::nn::Module& module, const Visit& visit) {
    for (const auto& entry : module.*(&ParameterWalk::parameters_))
      if (entry.value().defined()) visit(entry.value());
    for (const auto& child : module.children()) of(*child, visit);
  }
};

/// For each place of a walk the trainable tensor there; null for others.
std::vector<const void*> trained_places(const torch::nn::Module& module) {
  std::vector<const void*> places;
  ParameterWalk::of(module, [&](const at::Tensor& each) {
    places.push_back(each.requires_grad() ? each.unsafeGetTensorImpl() : nullptr);
  });
  return places;
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
  for (const auto& [name, tensor] : replica.parameters) {
    if (!at::isFloatingType(tensor.scalar_type()))
      throw std::invalid_argument("DistributedDataParallel: parameter " + name + " is no real floating-point tensor");
    if (tensor.device() == first.device()) continue;
    throw std::invalid_argument("DistributedDataParallel: all parameters must be on one device, but " + first_name +
                                " is on " + first.device().str() + " and " + name + " on " + tensor.device().str() +
                                "; convert the module with module.to(device) first");
  }
}

/// Options that must be equal on all ranks, as text for a message.
std::string describe(const DataParallelOptions& options) {
  return "bucket_bytes " + std::to_string(options.bucket_bytes) + ", op " +
         (options.op == ReduceOp::mean ? "mean" : "sum") + ", launch " +
         (options.launch == LaunchBuckets::when_ready ? "when_ready" : "at_finish") + ", accumulation " +
         std::to_string(static_cast<int>(options.accumulation)) + ", shard " + std::to_string(options.shard) +
         ", broadcast_parameters " + std::to_string(options.broadcast_parameters) + ", broadcast_buffers " +
         std::to_string(options.broadcast_buffers);
}

/// K16: the type in which gradients of such parameters accumulate.
at::ScalarType type_of_sum(at::ScalarType own, AccumulationDtype accumulation) {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(own));
  return bytes_of_sum(accumulation, bytes) > bytes ? at::kFloat : own;
}

GradArena arena_for(const std::vector<at::Tensor>& parameters, const DataParallelOptions& options, Communicator& axis) {
  const at::Tensor& like = parameters.front();
  const at::ScalarType type = type_of_sum(like.scalar_type(), options.accumulation);
  std::vector<std::int64_t> numels;
  std::optional<std::size_t> alone;
  for (const auto& each : parameters) {
    if (each.is_same(options.alone)) alone = numels.size();
    numels.push_back(each.numel());
  }
  FlatLayout layout = flat_layout(numels, static_cast<std::int64_t>(c10::elementSize(type)), options.bucket_bytes,
                                  options.shard ? axis.size() : 1, alone);
  const auto own = like.options().requires_grad(false).dtype(type);
  at::Tensor gradients = like.is_cpu() ? axis.shared_buffer(layout.numel, type) : at::zeros({layout.numel}, own);
  at::Tensor compensation;
  if (options.accumulation == AccumulationDtype::float32_compensated) compensation = at::zeros({layout.numel}, own);
  return GradArena(parameters, std::move(layout), std::move(gradients), std::move(compensation));
}

/// `parameters` are ordered by type.
std::vector<GradArena> arenas_for(const std::vector<at::Tensor>& parameters, const DataParallelOptions& options,
                                  Communicator& axis) {
  std::vector<GradArena> arenas;
  for (auto begin = parameters.begin(); begin != parameters.end();) {
    const auto end = std::find_if(begin, parameters.end(),
                                  [&](const auto& each) { return each.scalar_type() != begin->scalar_type(); });
    arenas.push_back(arena_for({begin, end}, options, axis));
    begin = end;
  }
  return arenas;
}

std::vector<FlatLayout> layouts_of(const std::vector<GradArena>& arenas) {
  std::vector<FlatLayout> layouts;
  for (const GradArena& each : arenas) layouts.push_back(each.layout());
  return layouts;
}

/// Hook that marks a parameter as taken, and reports that its gradient was accumulated.
class ArrivalHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ArrivalHook(std::function<void()> arrived) : arrived_(std::move(arrived)) {}
  void operator()(const at::Tensor&) override { arrived_(); }

 private:
  std::function<void()> arrived_;
};

/// Runs before a gradient is accumulated. If all of it was added directly, it is undefined; ArrivalHook still follows.
class ComingHook final : public GradientReceiver {
 public:
  ComingHook(std::function<void()> coming, std::function<at::Tensor()> place)
      : coming_(std::move(coming)), place_(std::move(place)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    if (!gradients.empty() && gradients.front().defined()) coming_();
    return gradients;
  }
  at::Tensor place() override { return place_(); }

 private:
  std::function<void()> coming_;
  std::function<at::Tensor()> place_;
};

}  // namespace

struct DistributedDataParallel::State {
  State(torch::nn::Module& trained, Replica replica, Communicator& communicator, const DataParallelOptions& chosen)
      : module(trained),
        axis(communicator),
        options(chosen),
        buffers(std::move(replica.buffers)),
        parameters(std::move(replica.trainable)),
        known_places(trained_places(trained)),
        arenas(arenas_for(parameters, options, axis)),
        reducer(layouts_of(arenas), [this](std::size_t bucket) { reduce(bucket); }),
        unfinished(parameters.size()) {
    for (std::size_t a = 0; a < arenas.size(); ++a)
      for (std::size_t i = 0; i < arenas[a].parameters().size(); ++i) places.push_back({a, i});
  }

  /// Place of parameter i's gradient.
  struct Place {
    std::size_t arena;
    std::size_t index;
  };
  GradArena& arena_of(std::size_t parameter) { return arenas[places[parameter].arena]; }
  bool collect(std::size_t i) { return arena_of(i).collect(places[i].index); }
  bool has(std::size_t i) { return arena_of(i).has(places[i].index); }

  void mark_parameters();
  void release_parameters();
  void demand_all_known() const;
  void coming(std::size_t parameter);
  at::Tensor place_for_product(std::size_t parameter);
  void arrived(std::size_t parameter);
  void reduce(std::size_t bucket);
  void wait_for_reductions();
  void restart();
  void settle_reached();
  bool stepped_without_finish(std::size_t parameter) const;
  bool any_stepped_without_finish() const;

  torch::nn::Module& module;
  Communicator& axis;
  DataParallelOptions options;
  NamedTensors buffers;
  std::vector<at::Tensor> parameters;
  std::vector<const void*> known_places;  ///< trained_places() at construction
  std::vector<GradArena> arenas;
  std::vector<Place> places;
  BucketReducer reducer;
  std::vector<Work> under_way;                                       ///< started reductions, in order
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  ///< those with a hook of ours
  /// By parameter: its mark when a gradient arrived that no finish() has reduced yet; empty if there is none.
  std::vector<std::optional<std::uint64_t>> unfinished;
  bool sync = true;
  bool buffers_follow = false;  ///< before_forward() was called since the last finish()
  std::int64_t arrivals = 0;
  std::int64_t reductions = 0;
};

void DistributedDataParallel::State::mark_parameters() {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i],
                                                   std::make_unique<ArrivalHook>([this, i] { arrived(i); }));
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    accumulators.back()->add_pre_hook(
        std::make_unique<ComingHook>([this, i] { coming(i); }, [this, i] { return place_for_product(i); }));
  }
}

void DistributedDataParallel::State::release_parameters() {
  for (const auto& parameter : parameters) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  for (const auto& each : accumulators)
    std::erase_if(each->pre_hooks(), [](const auto& hook) { return dynamic_cast<ComingHook*>(hook.get()) != nullptr; });
}

/// A parameter that was unfrozen or added later has no place in the arenas: it would be neither reduced nor cleared.
void DistributedDataParallel::State::demand_all_known() const {
  bool all_known = true;
  std::size_t place = 0;
  ParameterWalk::of(module, [&](const at::Tensor& each) {
    const bool is_known = place < known_places.size() && known_places[place] == each.unsafeGetTensorImpl();
    all_known = all_known && (is_known || !each.requires_grad());
    ++place;
  });
  if (all_known) return;
  // They may only have moved, because an earlier one was removed.
  std::unordered_set<const void*> known;
  for (const at::Tensor& each : parameters) known.insert(each.unsafeGetTensorImpl());
  for (const at::Tensor& each : module.parameters()) {
    if (!each.defined() || !each.requires_grad() || known.contains(each.unsafeGetTensorImpl())) continue;
    for (const auto& entry : module.named_parameters())
      if (entry.value().is_same(each))
        throw std::logic_error("DistributedDataParallel: parameter " + entry.key() +
                               " requires a gradient, and did not, or was not there, when this DistributedDataParallel "
                               "was made, so its gradient is not reduced; make another one after unfreezing or adding "
                               "parameters");
  }
}

bool DistributedDataParallel::State::stepped_without_finish(std::size_t i) const {
  return unfinished[i] && *unfinished[i] != mark_of(parameters[i]);
}

bool DistributedDataParallel::State::any_stepped_without_finish() const {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (stepped_without_finish(i)) return true;
  return false;
}

void DistributedDataParallel::State::coming(std::size_t parameter) {
  if (stepped_without_finish(parameter)) throw std::logic_error(forgotten_finish);
  // Dropped gradients end a window that will not be finished, because its backward has thrown.
  if (const auto first = reducer.first_arrived(); first && !has(*first)) restart();
  arena_of(parameter).expect(places[parameter].index);
}

at::Tensor DistributedDataParallel::State::place_for_product(std::size_t parameter) {
  const Place& at = places[parameter];
  at::Tensor place = arenas[at.arena].place(at.index);
  if (place.defined()) coming(parameter);
  return place;
}

void DistributedDataParallel::State::arrived(std::size_t parameter) {
  ++arrivals;
  GradArena& arena = arena_of(parameter);
  if (arena.compensation().defined()) arena.fold(places[parameter].index);
  if (!sync || axis.size() == 1) return;
  unfinished[parameter] = mark_of(parameters[parameter]);
  if (options.launch != LaunchBuckets::when_ready) return;
  collect(parameter);
  reducer.arrived(parameter);
}

void DistributedDataParallel::State::reduce(std::size_t index) {
  if (axis.size() == 1) return;
  std::size_t a = 0;
  for (; index >= arenas[a].layout().buckets.size(); ++a) index -= arenas[a].layout().buckets.size();
  at::Tensor bucket = arenas[a].bucket(index);
  // 16-bit numbers are divided before the sum, which could overflow; wider ones once afterwards, in finish().
  if (options.op == ReduceOp::mean && bucket.element_size() == 2) bucket.div_(axis.size());
  const bool waits = options.launch == LaunchBuckets::at_finish;
  if (options.shard) {
    const std::int64_t part = bucket.numel() / axis.size();
    // ZeRO: this rank's 1 / n of the bucket gets the sum; the rest stays a partial sum.
    at::Tensor own = bucket.narrow(0, axis.rank() * part, part);
    if (waits)
      axis.reduce_scatter_gradients(own, bucket);
    else
      under_way.push_back(axis.start_reduce_scatter_gradients(own, bucket));
  } else if (waits) {
    axis.all_reduce_gradients(bucket);
  } else {
    under_way.push_back(axis.start_all_reduce_gradients(bucket));
  }
  ++reductions;
}

void DistributedDataParallel::State::wait_for_reductions() {
  auto started = std::exchange(under_way, {});  // after an error nothing of it is waited for
  for (Work& each : started) each.wait();
}

void DistributedDataParallel::State::restart() {
  wait_for_reductions();
  reducer.restart();
}

void DistributedDataParallel::State::settle_reached() {
  std::vector<bool> reached;
  std::vector<at::Tensor> reduced;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto [offset, size] = arena_of(i).layout().parameters[places[i].index];
    reached.push_back(has(i));
    reduced.push_back(arena_of(i).flat().narrow(0, offset, size));
  }
  // Outside a rank's own parts its gradients are incomplete sums, which prove nothing.
  reached = options.shard ? reached_by_any(reached, parameters.front().device(), axis)
                          : reached_by_any(std::move(reached), reduced, axis);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (reached[i] != has(i)) arena_of(i).set(places[i].index, reached[i]);
}

DistributedDataParallel::DistributedDataParallel(torch::nn::Module& module, Communicator& axis,
                                                 const DataParallelOptions& options) {
  Replica replica = replica_of(module);
  verify_replicas(replica.everything, describe(options), axis);
  check(replica, options);
  if (options.broadcast_parameters) broadcast_values(replica.everything, axis);
  state_ = std::make_unique<State>(module, std::move(replica), axis, options);
  state_->mark_parameters();
}

DistributedDataParallel::~DistributedDataParallel() {
  // The last window of a program: no later backward can report it. If an exception is in flight, it was reported.
  if (std::uncaught_exceptions() == 0 && state_->any_stepped_without_finish()) {
    TORCH_WARN(forgotten_finish);
  }
  state_->release_parameters();
}

bool DistributedDataParallel::sync_enabled() const {
  return state_->sync;
}

void DistributedDataParallel::set_sync_enabled(bool enabled) {
  state_->sync = enabled;
}

void DistributedDataParallel::before_forward() {
  State& state = *state_;
  if (!state.sync || !state.options.broadcast_buffers) return;
  broadcast_packed(state.buffers, state.axis);
  state.buffers_follow = true;
}

void DistributedDataParallel::finish() {
  State& state = *state_;
  if (!state.sync) return;
  state.demand_all_known();
  for (std::size_t i = 0; i < state.parameters.size(); ++i) state.collect(i);
  state.reducer.finish();
  state.wait_for_reductions();
  leave_local();
  if (state.axis.size() == 1) return;
  for (const GradArena& each : state.arenas) {
    at::Tensor flat = each.flat();
    if (state.options.op == ReduceOp::mean && flat.element_size() != 2) flat.div_(state.axis.size());
  }
  state.settle_reached();
  if (!state.buffers_follow) before_forward();
  state.buffers_follow = false;
}

std::int64_t DistributedDataParallel::arrivals() const {
  return state_->arrivals;
}

void DistributedDataParallel::agree(const std::vector<NamedNumber>& numbers) {
  agree_on(numbers, state_->axis);
}

void DistributedDataParallel::leave_local() {
  state_->unfinished.assign(state_->unfinished.size(), std::nullopt);
}

void DistributedDataParallel::zero_grad() {
  if (state_->any_stepped_without_finish()) throw std::logic_error(forgotten_finish);
  leave_local();
  state_->restart();
  for (GradArena& each : state_->arenas) each.zero();
}

std::size_t DistributedDataParallel::arenas() const {
  return state_->arenas.size();
}

at::Tensor DistributedDataParallel::flat_gradients(std::size_t arena) const {
  return state_->arenas.at(arena).flat();
}

at::Tensor DistributedDataParallel::flat_compensation(std::size_t arena) const {
  return state_->arenas.at(arena).compensation();
}

const FlatLayout& DistributedDataParallel::layout(std::size_t arena) const {
  return state_->arenas.at(arena).layout();
}

const std::vector<at::Tensor>& DistributedDataParallel::parameters() const {
  return state_->parameters;
}

std::vector<bool> DistributedDataParallel::reached() const {
  std::vector<bool> reached;
  for (std::size_t i = 0; i < state_->parameters.size(); ++i) reached.push_back(state_->has(i));
  return reached;
}

void DistributedDataParallel::set_reached(const std::vector<bool>& reached) {
  for (std::size_t i = 0; i < state_->parameters.size(); ++i)
    state_->arena_of(i).set(state_->places[i].index, reached.at(i));
}

std::int64_t DistributedDataParallel::reductions() const {
  return state_->reductions;
}

}  // namespace accrue
