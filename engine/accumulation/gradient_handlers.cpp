// SPDX-License-Identifier: Apache-2.0
// Problem: reducing each gradient separately costs one latency per parameter. Solution: one buffer per dtype, like the
// original, without a cap on its size. Cost: copying all gradients to it and back, and memory for one more copy.
// Source: colossalai.engine.gradient_handler (bucket_allreduce).
#include "accrue/accumulation/gradient_handlers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <ostream>
#include <stdexcept>

#include "accrue/run/base/counted.h"

namespace accrue::colossalai {
namespace {

/// Makes a gradient for every parameter that has one on some rank, so that all ranks lay out the same buffer.
void agree_on_gradients(const std::vector<at::Tensor>& parameters, Communicator& group) {
  at::Tensor has = at::zeros({static_cast<std::int64_t>(parameters.size())}, at::kInt);
  int* flag = has.mutable_data_ptr<int>();
  for (std::size_t i = 0; i < parameters.size(); ++i) flag[i] = parameters[i].grad().defined() ? 1 : 0;
  if (!parameters.empty()) {
    at::Tensor agreed = parameters.front().is_cpu() ? has : has.to(parameters.front().device());
    group.all_reduce(agreed, Reduce::max);
    has.copy_(agreed);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (flag[i] != 0 && !parameters[i].grad().defined())
      parameters[i].mutable_grad() = at::zeros_like(parameters[i].detach());
}

/// Reduces all gradients of one dtype through one buffer: divides by `divisor`, sums over the group.
void reduce_flat(const std::vector<at::Tensor>& gradients, double divisor, Communicator& group) {
  std::vector<at::Tensor> rows;
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& each : gradients) {
    rows.push_back(each.reshape({-1}));
    sizes.push_back(each.numel());
  }
  // [sum of numels]. Divided before the sum, like bucket_allreduce: a sum of 16-bit numbers could overflow.
  at::Tensor flat = at::cat(rows);
  if (divisor != 1.0) flat.div_(divisor);
  group.all_reduce_gradients(flat);
  const auto reduced = flat.split_with_sizes(sizes);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i].copy_(reduced[i].view(gradients[i].sizes()));
}

void reduce(const std::vector<at::Tensor>& parameters, double divisor, Communicator& group) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  agree_on_gradients(parameters, group);
  std::map<at::ScalarType, std::vector<at::Tensor>> by_dtype;
  for (const at::Tensor& each : parameters)
    if (each.grad().defined()) by_dtype[each.grad().scalar_type()].push_back(each.grad());
  for (const auto& [dtype, gradients] : by_dtype) reduce_flat(gradients, divisor, group);
}

std::string scope_of(const std::vector<at::Tensor>& parameters, const Communicator& group) {
  return counted(static_cast<std::int64_t>(parameters.size()), "parameter") + " over " + counted(group.size(), "rank");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BaseGradientHandler& handler) {
  return out << handler.text();
}

DataParallelGradientHandler::DataParallelGradientHandler(std::vector<at::Tensor> parameters, Communicator& group)
    : parameters_(std::move(parameters)), group_(group) {}

void DataParallelGradientHandler::handle_gradient() {
  reduce(parameters_, static_cast<double>(group_.size()), group_);
}

std::string DataParallelGradientHandler::scope() const {
  return scope_of(parameters_, group_);
}

MoeGradientHandler::MoeGradientHandler(std::vector<at::Tensor> replicated, Communicator& data,
                                       const std::vector<Group>& experts) {
  groups_.emplace_back(std::move(replicated), data);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (experts[i].ranks == nullptr)
      throw std::invalid_argument("MoeGradientHandler: expert group " + std::to_string(i) +
                                  " has no ranks; give the communicator of the ranks that hold these experts");
    groups_.emplace_back(experts[i].parameters, *experts[i].ranks);
  }
}

void MoeGradientHandler::handle_gradient() {
  for (DataParallelGradientHandler& each : groups_) each.handle_gradient();
}

std::string MoeGradientHandler::text() const {
  std::string text = "MoeGradientHandler";
  for (const DataParallelGradientHandler& each : groups_) text += "\n" + each.text();
  return text;
}

PipelineSharedModuleGradientHandler::PipelineSharedModuleGradientHandler(std::vector<at::Tensor> shared,
                                                                         Communicator& stages)
    : shared_(std::move(shared)), stages_(stages) {}

void PipelineSharedModuleGradientHandler::handle_gradient() {
  reduce(shared_, 1.0, stages_);
}

std::string PipelineSharedModuleGradientHandler::text() const {
  return "PipelineSharedModuleGradientHandler: " + scope_of(shared_, stages_);
}

GradientReduction choose_reduction(const ParallelSetup& setup) {
  if (setup.zero) return GradientReduction::zero_handler;
  if (setup.sequence_parallel) return GradientReduction::distributed_data_parallel;
  if (setup.data_parallel <= 1) return GradientReduction::none;
  if (!setup.pipeline && !setup.naive_amp) return GradientReduction::distributed_data_parallel;
  return GradientReduction::data_parallel_handler;
}

}  // namespace accrue::colossalai
