// SPDX-License-Identifier: Apache-2.0
#include "megatron/chunk_optimizer.h"

#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "accumulation/optimizer_state.h"
#include "optim/flat_base.h"
#include "optim/flat_paths.h"
#include "update/complete_gradients.h"
#include "update/model_sums.h"
#include "update/rank_sums.h"

namespace accrue::megatron {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;

/// use(options), as those of the class that they are of.
template <typename Use>
void with_class(OptimizerOptions& options, const Use& use) {
  if (auto* adamw = dynamic_cast<AdamWOptions*>(&options)) return use(*adamw);
  if (auto* adam = dynamic_cast<AdamOptions*>(&options)) return use(*adam);
  use(dynamic_cast<SGDOptions&>(options));
}

/// Memory to read in; what a state has no values for, which is padding, stays 0.
at::Tensor padded_like(const at::Tensor& tensor) {
  return at::zeros(tensor.sizes(), tensor.detach().options());
}

}  // namespace

void read_fitting(const CheckpointReader& from, const PlacedTensor& into) {
  if (const std::string why = from.mismatch(into); !why.empty()) throw std::invalid_argument(why);
  from.read(into).value();
}

OptimizerCarrier::OptimizerCarrier(const torch::optim::Optimizer& optimizer) {
  const OptimizerOptions& defaults = optimizer.defaults();
  if (dynamic_cast<const AdamWOptions*>(&defaults) != nullptr) name_ = "AdamW";
  if (dynamic_cast<const AdamOptions*>(&defaults) != nullptr) name_ = "Adam";
  if (dynamic_cast<const SGDOptions*>(&defaults) != nullptr) name_ = "SGD";
  if (name_.empty())
    throw std::invalid_argument(
        "the Megatron-LM plug-in takes torch::optim::AdamW, Adam or SGD: its own optimizer is made of their options");
  if (optimizer.param_groups().size() > 1)
    throw std::invalid_argument(
        "the Megatron-LM plug-in makes its own parameter groups; use no_wd_decay_cond and scale_lr_cond in place of "
        "an optimizer with several groups");
  defaults_ = defaults.clone();
  lr_ = defaults_->get_lr();
  with_class(*defaults_, [this](const auto& of) { weight_decay_ = of.weight_decay(); });
}

std::unique_ptr<torch::optim::Optimizer> OptimizerCarrier::make(
    const std::vector<std::vector<at::Tensor>>& groups) const {
  std::vector<OptimizerParamGroup> made;
  for (const auto& tensors : groups) made.emplace_back(tensors, defaults_->clone());
  if (name_ == "AdamW")
    return std::make_unique<torch::optim::AdamW>(made, dynamic_cast<const AdamWOptions&>(*defaults_));
  if (name_ == "Adam") return std::make_unique<torch::optim::Adam>(made, dynamic_cast<const AdamOptions&>(*defaults_));
  return std::make_unique<torch::optim::SGD>(made, dynamic_cast<const SGDOptions&>(*defaults_));
}

ChunkOptimizer::ChunkOptimizer(OptimizerCarrier carrier, std::vector<PlacedParameter> parameters,
                               DistributedDataParallel& ddp, Mesh& mesh, Timers& timers, ChunkOptions options)
    : carrier_(std::move(carrier)),
      parameters_(std::move(parameters)),
      ddp_(ddp),
      mesh_(mesh),
      timers_(timers),
      options_(options) {
  for (const PlacedParameter& each : parameters_)
    if (std::ranges::find(groups_, each.group) == groups_.end()) groups_.push_back(each.group);
  std::vector<std::vector<at::Tensor>> tensors(groups_.size());
  std::size_t reached = 0;
  for (std::size_t arena = 0; arena < ddp_.arenas(); ++arena) {
    const FlatLayout& layout = ddp_.layout(arena);
    if (options_.sharded) shards_.emplace_back(layout, mesh_.data());
    for (const FlatRange& whole : layout.parameters) {
      const at::Tensor& tensor = ddp_.parameters()[reached];
      const auto found =
          std::ranges::find_if(parameters_, [&](const PlacedParameter& each) { return each.tensor.is_same(tensor); });
      if (found == parameters_.end()) throw std::logic_error("a parameter of the chunks has no name");
      const auto parameter = static_cast<std::size_t>(found - parameters_.begin());
      // A fragment is a view [shape] of a whole parameter, or under ZeRO [elements] of what this rank owns of it in one
      // bucket. Its master is float32 for half types.
      for (const FlatRange& range : options_.sharded ? shards_.back().owned({whole}) : std::vector{whole}) {
        const std::int64_t offset = range.offset - whole.offset;
        const at::Tensor piece =
            range.size == whole.size ? tensor.detach() : tensor.detach().view({-1}).narrow(0, offset, range.size);
        fragments_.push_back({.parameter = parameter,
                              .reached = reached,
                              .arena = arena,
                              .range = range,
                              .offset = offset,
                              .master = Masters(piece)});
      }
      ++reached;
    }
  }
  // In the order of the model, so that the optimizer's state does not depend on the arena.
  std::ranges::stable_sort(fragments_, {}, [](const Fragment& each) { return each.parameter; });
  for (const Fragment& each : fragments_) {
    const auto group = std::ranges::find(groups_, parameters_[each.parameter].group) - groups_.begin();
    tensors[static_cast<std::size_t>(group)].push_back(each.master.values());
  }
  optimizer_ = carrier_.make(tensors);
  // Each element of the model once: slices of what one rank per part writes, without padding rows.
  std::int64_t own = 0;
  for (const PlacedParameter& each : parameters_)
    if (each.writes && mesh_.writes()) own += each.place.slice->range.size;
  elements_ = static_cast<std::int64_t>(sum_over_ranks(mesh_.world(), static_cast<double>(own)));
}

// As the trainer does (train/model_axis.cpp): on_rows over the tensor ranks, tied and positions over the stages that
// use the table. A fragment of a sharded table knows its offset in it.
void ChunkOptimizer::complete_gradients() {
  pending_ = 1.0;
  PartialGradients partial;
  for (const PlacedParameter& each : parameters_) {
    if (options_.sequence && each.place.on_rows && each.tensor.grad().defined())
      partial.on_rows.push_back(each.tensor.grad());
    // The sum of a half type's gradients is float32.
    const at::ScalarType sum_type = at::toOpMathType(each.tensor.scalar_type());
    if (each.place.positions)
      partial.table = at::zeros({each.tensor.numel()}, each.tensor.detach().options().dtype(sum_type));
  }
  for (const Fragment& each : fragments_) {
    const ParameterPlace& place = parameters_[each.parameter].place;
    if (place.tied) partial.tied.push_back(flat_gradient_of(each));
    if (place.positions) partial.positions.push_back({flat_gradient_of(each), each.offset});
  }
  accrue::complete_gradients(partial, mesh_, options_.sharded,
                             [this](const char* timer, const auto& part) { timers_.time(timer, part); });
}

at::Tensor ChunkOptimizer::flat_gradient_of(const Fragment& fragment) const {
  return part_of(ddp_.flat_gradients(fragment.arena), fragment.range);
}

at::Tensor ChunkOptimizer::gradient_of(const Fragment& fragment) const {
  const at::Tensor gradient = fragment.master.as_master(flat_gradient_of(fragment));
  // The arena keeps its numbers: a new tensor has the factors of scale_gradients().
  return fragment.master.copied() ? gradient.mul(pending_) : gradient;
}

void ChunkOptimizer::scale_gradients(double factor) {
  if (factor == 1.0) return;
  // Of half types the update reads a new float32 tensor (gradient_of()), to which all factors apply in one product. A
  // model may have parameters of both kinds, in arenas of their own.
  pending_ *= factor;
  std::set<std::size_t> updated;
  for (const Fragment& each : fragments_)
    if (!each.master.copied()) updated.insert(each.arena);
  for (const std::size_t arena : updated) ddp_.flat_gradients(arena).mul_(factor);
}

template <typename Of>
double ChunkOptimizer::sum(const Of& of) const {
  double total = 0.0;
  for (const Fragment& each : fragments_) {
    const ParameterPlace& place = parameters_[each.parameter].place;
    // Source: Megatron-LM's param_is_not_shared() and param_is_not_tensor_parallel_duplicate().
    if (counts_here(place.shared, place.divided, mesh_.at().tensor)) total += of(each);
  }
  return sum_over_ranks(holders_of_parts(mesh_, options_.sharded), total);
}

// |g| over all elements of the model: squares add up over fragments, then over the ranks that hold parts, and one root
// is taken. float64.
double ChunkOptimizer::gradient_norm() const {
  return std::sqrt(sum([this](const Fragment& each) { return square_sum_of(gradient_of(each)).item<double>(); }));
}

double ChunkOptimizer::parameter_norm() const {
  return std::sqrt(sum([](const Fragment& each) { return square_sum_of(each.master.values()).item<double>(); }));
}

std::int64_t ChunkOptimizer::zeros_in_gradients() const {
  return static_cast<std::int64_t>(sum([this](const Fragment& each) {
    return static_cast<double>(zeros_in(ddp_.flat_gradients(each.arena), {&each.range, 1}));
  }));
}

void ChunkOptimizer::step(double lr, double decoupled_lr, double weight_decay) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    OptimizerOptions& options = optimizer_->param_groups()[group].options();
    // Source: Megatron-LM's OptimizerParamScheduler.step(): rate times lr_mult, decay times wd_mult.
    options.set_lr((groups_[group].decoupled ? decoupled_lr : lr) * groups_[group].lr);
    with_class(options, [&](auto& of) { of.weight_decay(weight_decay * groups_[group].weight_decay); });
  }
  timers_.time("optimizer-copy-to-main-grad", [&] {
    const std::vector<bool> reached = ddp_.reached();
    for (const Fragment& each : fragments_)
      // A parameter without a gradient is skipped by LibTorch's step: neither decay nor moments change.
      if (reached[each.reached])
        each.master.values().mutable_grad() = gradient_of(each).view(each.master.values().sizes());
  });
  timers_.time("optimizer-inner-step", [&] { optimizer_->step(); });
  for (const Fragment& each : fragments_) each.master.values().mutable_grad() = at::Tensor();
  if (std::ranges::any_of(fragments_, [](const Fragment& each) { return each.master.copied(); }))
    timers_.time("optimizer-copy-main-to-model-params", [&] {
      for (const Fragment& each : fragments_) each.master.put_back();
    });
  // After put_back(), so replicas exchange parameters in their own type, not the masters.
  if (options_.sharded && mesh_.data().size() > 1) timers_.time("params-all-gather", [&] { gather_parameters(); });
}

template <typename Use>
void ChunkOptimizer::for_each_state(const Use& use) const {
  std::size_t p = 0;
  for (const ParameterGroup& group : groups_)
    for (const Fragment& each : fragments_)
      if (parameters_[each.parameter].group == group) use(each, "state." + std::to_string(p++) + ".");
}

std::vector<PlacedTensor> ChunkOptimizer::tensors() const {
  std::vector<PlacedTensor> all;
  const auto add = [&](const std::string& prefix, const PlacedParameter& of, const FlatRange& stretch,
                       const at::Tensor& values) {
    if (auto placed = placed_stretch(prefix + of.place.name, *of.place.slice, stretch, values.detach().contiguous()))
      all.push_back(*std::move(placed));
  };
  if (mesh_.writes())
    for (const PlacedParameter& each : parameters_)
      if (each.writes) add("parameters.", each, {.offset = 0, .size = each.tensor.numel()}, each.tensor);
  // Replicas have equal parameters, and one writes them. Under ZeRO each has a part of the state, and writes that.
  if (!mesh_.writes() && !options_.sharded) return all;
  const StateDict state = optimizer_state(*optimizer_);
  for_each_state([&](const Fragment& each, const std::string& entry) {
    const PlacedParameter& of = parameters_[each.parameter];
    if (!of.writes) return;
    if (each.master.copied()) add("optimizer.master.", of, each.stretch(), each.master.values());
    for (auto at = state.lower_bound(entry); at != state.end() && at->first.starts_with(entry); ++at) {
      const std::string prefix = "optimizer." + at->first.substr(entry.size()) + ".";
      if (at->second.is_floating_point())
        add(prefix, of, each.stretch(), at->second);
      else if (each.offset == 0 && std::ranges::count(of.place.slice->offset, 0) == std::ssize(of.place.slice->offset))
        all.push_back(whole_tensor(prefix + of.place.name, at->second.view({1})));  // a count, by the first element
    }
  });
  return all;
}

std::function<void()> ChunkOptimizer::read(const CheckpointReader& from) {
  const auto read = [&](const std::string& prefix, const PlacedParameter& of, const FlatRange& stretch,
                        at::Tensor values) {
    if (const auto placed = placed_stretch(prefix + of.place.name, *of.place.slice, stretch, values))
      read_fitting(from, *placed);
    return values;
  };
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  ///< where to, what
  for (const PlacedParameter& each : parameters_) {
    const at::Tensor live = each.tensor.detach();
    copies.emplace_back(live, read("parameters.", each, {.offset = 0, .size = live.numel()}, padded_like(live)));
  }
  std::set<std::string> fields;
  for (const std::string& name : from.tensor_names())
    if (name.starts_with("optimizer.")) fields.insert(name.substr(10, name.find('.', 10) - 10));
  fields.erase("master");
  StateDict state = optimizer_state(*optimizer_);
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("state."); });
  for_each_state([&](const Fragment& each, const std::string& entry) {
    const PlacedParameter& of = parameters_[each.parameter];
    const at::Tensor& master = each.master.values();
    if (each.master.copied())
      copies.emplace_back(master, read("optimizer.master.", of, each.stretch(), padded_like(master)));
    for (const std::string& field : fields) {
      const std::string prefix = "optimizer." + field + ".";
      const CheckpointReader::Stored* const stored = from.find(prefix + of.place.name);
      if (stored == nullptr) continue;  // no update has reached the parameter
      state[entry + field] = at::isFloatingType(stored->dtype) ? read(prefix, of, each.stretch(), padded_like(master))
                                                               : from.read(prefix + of.place.name).value();
    }
  });
  std::vector<std::vector<at::Tensor>> groups;
  for (const OptimizerParamGroup& group : optimizer_->param_groups()) groups.push_back(group.params());
  // Of the same tensors, which are the keys of an optimizer's state: the whole state can then be swapped in.
  const std::shared_ptr<torch::optim::Optimizer> loaded = carrier_.make(groups);
  load_optimizer_state(*loaded, state);
  return [this, copies, loaded] {
    const at::NoGradGuard no_grad;
    for (const auto& [into, values] : copies) into.copy_(values);
    optimizer_->state().swap(loaded->state());
  };
}

void ChunkOptimizer::gather_parameters() {
  const at::NoGradGuard no_grad;
  std::size_t first = 0;
  for (std::size_t arena = 0; arena < shards_.size(); ++arena) {
    const FlatLayout& layout = ddp_.layout(arena);
    // [numel] of the arena: each rank fills in its ranges, the gather fills in the rest, and the parameters take
    // theirs.
    const at::Tensor flat = at::empty({layout.numel}, ddp_.parameters()[first].detach().options());
    for (const Fragment& each : fragments_)
      if (each.arena == arena) part_of(flat, each.range).copy_(each.master.parameters().view({-1}));
    shards_[arena].gather(flat, false);
    for (const FlatRange& range : layout.parameters) {
      at::Tensor parameter = ddp_.parameters()[first++].detach();
      parameter.copy_(part_of(flat, range).view(parameter.sizes()));
    }
  }
}

}  // namespace accrue::megatron
