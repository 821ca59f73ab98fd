// SPDX-License-Identifier: Apache-2.0
#include "megatron/chunk_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "optim/flat_base.h"

namespace accrue::megatron {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;

double decay_of(const OptimizerOptions& options) {
  if (const auto* adamw = dynamic_cast<const AdamWOptions*>(&options)) return adamw->weight_decay();
  if (const auto* adam = dynamic_cast<const AdamOptions*>(&options)) return adam->weight_decay();
  return dynamic_cast<const SGDOptions&>(options).weight_decay();
}

}  // namespace

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
  weight_decay_ = decay_of(*defaults_);
}

void OptimizerCarrier::set_weight_decay(OptimizerOptions& options, double weight_decay) {
  if (auto* adamw = dynamic_cast<AdamWOptions*>(&options))
    adamw->weight_decay(weight_decay);
  else if (auto* adam = dynamic_cast<AdamOptions*>(&options))
    adam->weight_decay(weight_decay);
  else
    dynamic_cast<SGDOptions&>(options).weight_decay(weight_decay);
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

ChunkOptimizer::ChunkOptimizer(const OptimizerCarrier& carrier, std::vector<NamedParameter> parameters,
                               DistributedDataParallel& ddp, Mesh& mesh, Timers& timers, ChunkOptions options)
    : parameters_(std::move(parameters)),
      ddp_(ddp),
      mesh_(mesh),
      timers_(timers),
      sequence_(options.sequence),
      sharded_(options.sharded) {
  for (const NamedParameter& each : parameters_)
    if (std::ranges::find(groups_, each.factors) == groups_.end()) groups_.push_back(each.factors);
  std::vector<std::vector<at::Tensor>> tensors(groups_.size());
  std::size_t reached = 0;
  for (std::size_t arena = 0; arena < ddp_.arenas(); ++arena) {
    const FlatLayout& layout = ddp_.layout(arena);
    std::vector<FlatRange> owned{{0, layout.numel}};
    if (sharded_) owned = owned_ranges(layout, mesh_.data().rank(), mesh_.data().size());
    for (const FlatRange& whole : layout.parameters) {
      const at::Tensor& tensor = ddp_.parameters()[reached];
      const auto found =
          std::ranges::find_if(parameters_, [&](const NamedParameter& each) { return each.tensor.is_same(tensor); });
      if (found == parameters_.end()) throw std::logic_error("a parameter of the chunks has no name");
      const auto parameter = static_cast<std::size_t>(found - parameters_.begin());
      for (const FlatRange& part : owned)
        if (const auto range = common_part(whole, part)) {
          const at::Tensor flat = tensor.detach().view({-1});
          const at::Tensor piece =
              range->size == whole.size ? tensor.detach() : flat.narrow(0, range->offset - whole.offset, range->size);
          const bool half = piece.scalar_type() == at::kHalf || piece.scalar_type() == at::kBFloat16;
          fragments_.push_back({parameter, reached, arena, *range, piece, half ? piece.to(at::kFloat) : piece});
        }
      ++reached;
    }
  }
  // In the order of the model, so that the optimizer's state does not depend on the arena.
  std::ranges::stable_sort(fragments_, {}, [](const Fragment& each) { return each.parameter; });
  for (const Fragment& each : fragments_) {
    const auto group = std::ranges::find(groups_, parameters_[each.parameter].factors) - groups_.begin();
    tensors[static_cast<std::size_t>(group)].push_back(each.master);
  }
  optimizer_ = carrier.make(tensors);
}

/// What tensor ranks computed on their own positions.
void ChunkOptimizer::complete_rows() {
  std::vector<at::Tensor> parts;
  for (const NamedParameter& each : parameters_)
    if (each.place.on_rows && each.tensor.grad().defined()) parts.push_back(each.tensor.grad());
  if (parts.empty()) return;
  const auto timing = timers_.run("layernorm-grads-all-reduce");
  std::vector<at::Tensor> flat;
  for (const at::Tensor& part : parts) flat.push_back(part.reshape({-1}));
  at::Tensor all = at::cat(flat);
  mesh_.tensor().all_reduce_gradients(all);
  std::int64_t from = 0;
  for (at::Tensor& part : parts) {
    part.copy_(all.narrow(0, from, part.numel()).view(part.sizes()));
    from += part.numel();
  }
}

void ChunkOptimizer::complete_gradients() {
  if (sequence_) complete_rows();
  if (mesh_.grid().pipeline == 1) return;
  complete_positions();
  if (!mesh_.has(Axis::embedding)) return;
  for (const Fragment& each : fragments_) {
    if (!parameters_[each.parameter].place.tied) continue;
    const auto timing = timers_.run("embedding-grads-all-reduce");
    at::Tensor gradient = ddp_.flat_gradients(each.arena).narrow(0, each.range.offset, each.range.size);
    mesh_.along(Axis::embedding).all_reduce_gradients(gradient);
  }
}

/// The two uses of a T5's positions. Under ZeRO the owners of a number differ between the stages, so each replica first
/// gets the whole of it: the table is small. That exchange is none of the gradient reductions that are counted.
void ChunkOptimizer::complete_positions() {
  if (!mesh_.has(Axis::position_embedding) || mesh_.along(Axis::position_embedding).size() == 1) return;
  Communicator& stages = mesh_.along(Axis::position_embedding);
  std::vector<std::pair<at::Tensor, std::int64_t>> own;  // a stretch of the table's gradient, and where it begins
  std::int64_t numel = 0;
  for (const Fragment& each : fragments_) {
    const NamedParameter& parameter = parameters_[each.parameter];
    if (!parameter.place.positions) continue;
    const FlatRange whole = whole_of(each);
    own.emplace_back(ddp_.flat_gradients(each.arena).narrow(0, each.range.offset, each.range.size),
                     each.range.offset - whole.offset);
  }
  for (const NamedParameter& each : parameters_)
    if (each.place.positions) numel = each.tensor.numel();
  if (numel == 0) return;
  const auto timing = timers_.run("embedding-grads-all-reduce");
  at::Tensor table = at::zeros({numel}, parameters_.front().tensor.detach().options());
  for (const auto& [gradient, from] : own) table.narrow(0, from, gradient.numel()).copy_(gradient);
  if (sharded_) mesh_.data().all_reduce(table, Reduce::sum, CollectivePurpose::agreement);
  stages.all_reduce_gradients(table);
  for (auto& [gradient, from] : own) gradient.copy_(table.narrow(0, from, gradient.numel()));
}

FlatRange ChunkOptimizer::whole_of(const Fragment& fragment) const {
  const FlatLayout& layout = ddp_.layout(fragment.arena);
  for (const FlatRange& each : layout.parameters)
    if (fragment.range.offset >= each.offset && fragment.range.offset < each.offset + each.size) return each;
  throw std::logic_error("a fragment lies in no parameter");
}

std::vector<at::Tensor> ChunkOptimizer::masters() const {
  std::vector<at::Tensor> all;
  for (const Fragment& each : fragments_)
    if (each.half()) all.push_back(each.master);
  return all;
}

at::Tensor ChunkOptimizer::gradient_of(const Fragment& fragment) const {
  const at::Tensor flat = ddp_.flat_gradients(fragment.arena).narrow(0, fragment.range.offset, fragment.range.size);
  if (!fragment.half()) return flat;
  return flat.to(at::kFloat).mul(pending_);  // the flat gradients of half parameters may be float32 themselves
}

void ChunkOptimizer::scale_gradients(double factor) {
  if (!fragments_.empty() && fragments_.front().half()) {
    pending_ *= factor;
    return;
  }
  for (std::size_t arena = 0; arena < ddp_.arenas(); ++arena) ddp_.flat_gradients(arena).mul_(factor);
}

bool ChunkOptimizer::counts(const Fragment& fragment) const {
  const ParameterPlace& place = parameters_[fragment.parameter].place;
  return !place.shared && (place.divided || mesh_.at().tensor == 0);
}

double ChunkOptimizer::summed(double value) const {
  at::Tensor sum = at::full({1}, value, at::kDouble);
  (sharded_ ? mesh_.world() : mesh_.model()).all_reduce(sum);
  return sum.item<double>();
}

double ChunkOptimizer::gradient_norm() const {
  double squares = 0.0;
  for (const Fragment& each : fragments_) {
    if (!counts(each)) continue;
    const at::Tensor gradient = gradient_of(each);
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(summed(squares));
}

double ChunkOptimizer::parameter_norm() const {
  double squares = 0.0;
  for (const Fragment& each : fragments_)
    if (counts(each)) squares += each.master.to(at::kDouble).square().sum().item<double>();
  return std::sqrt(summed(squares));
}

std::int64_t ChunkOptimizer::zeros_in_gradients() const {
  double zeros = 0.0;
  for (const Fragment& each : fragments_) {
    if (!counts(each)) continue;
    const at::Tensor gradient = ddp_.flat_gradients(each.arena).narrow(0, each.range.offset, each.range.size);
    zeros += (gradient == 0).sum().item<double>();
  }
  return static_cast<std::int64_t>(summed(zeros));
}

void ChunkOptimizer::begin() {
  pending_ = 1.0;
}

void ChunkOptimizer::step(double lr, double decoupled_lr, double weight_decay) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    OptimizerOptions& options = optimizer_->param_groups()[group].options();
    options.set_lr((groups_[group].decoupled ? decoupled_lr : lr) * groups_[group].lr);
    OptimizerCarrier::set_weight_decay(options, weight_decay * groups_[group].weight_decay);
  }
  {
    const auto timing = timers_.run("optimizer-copy-to-main-grad");
    const std::vector<bool> reached = ddp_.reached();
    for (Fragment& each : fragments_) {
      at::Tensor gradient;
      if (reached[each.reached]) gradient = gradient_of(each).view(each.master.sizes());
      each.master.mutable_grad() = gradient;
    }
  }
  {
    const auto timing = timers_.run("optimizer-inner-step");
    optimizer_->step();
  }
  for (Fragment& each : fragments_) each.master.mutable_grad() = at::Tensor();
  if (std::ranges::any_of(fragments_, &Fragment::half)) {
    const auto timing = timers_.run("optimizer-copy-main-to-model-params");
    for (Fragment& each : fragments_)
      if (each.half()) each.tensor.copy_(each.master);
  }
  if (!sharded_ || mesh_.data().size() == 1) return;
  const auto timing = timers_.run("params-all-gather");
  gather_parameters();
}

void ChunkOptimizer::gather_parameters() {
  const at::NoGradGuard no_grad;
  std::size_t first = 0;
  for (std::size_t arena = 0; arena < ddp_.arenas(); ++arena) {
    const FlatLayout& layout = ddp_.layout(arena);
    const at::Tensor& any = ddp_.parameters()[first];
    const at::Tensor flat = at::empty({layout.numel}, any.detach().options());
    for (const Fragment& each : fragments_)
      if (each.arena == arena) flat.narrow(0, each.range.offset, each.range.size).copy_(each.tensor.view({-1}));
    const auto owned = owned_ranges(layout, mesh_.data().rank(), mesh_.data().size());
    for (std::size_t bucket = 0; bucket < owned.size(); ++bucket) {
      at::Tensor all = flat.narrow(0, layout.buckets[bucket].offset, layout.buckets[bucket].size);
      const at::Tensor own = flat.narrow(0, owned[bucket].offset, owned[bucket].size);
      mesh_.data().all_gather(all, own, CollectivePurpose::parameters);
    }
    for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
      const FlatRange& range = layout.parameters[i];
      at::Tensor parameter = ddp_.parameters()[first + i].detach();
      parameter.copy_(flat.narrow(0, range.offset, range.size).view(parameter.sizes()));
    }
    first += layout.parameters.size();
  }
}

}  // namespace accrue::megatron
