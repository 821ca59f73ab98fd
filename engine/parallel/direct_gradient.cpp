// SPDX-License-Identifier: Apache-2.0
#include "direct_gradient.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

namespace accrue {
namespace {

GradientReceiver* receiver_of(const at::Tensor& weight) {
  if (!weight.is_leaf() || !weight.requires_grad()) return nullptr;
  const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(weight);
  if (!accumulator) return nullptr;
  for (const auto& hook : accumulator->pre_hooks())
    if (auto* receiver = dynamic_cast<GradientReceiver*>(hook.get())) return receiver;
  return nullptr;
}

}  // namespace

bool takes_products(const at::Tensor& weight) {
  return at::GradMode::is_enabled() && !at::autocast::is_autocast_enabled(weight.device().type()) &&
         receiver_of(weight) != nullptr;
}

at::Tensor gradient_place(const at::Tensor& weight) {
  // A list of what to execute means that the caller wants some gradients returned or excluded.
  const auto* chosen = torch::autograd::get_current_graph_task_exec_info();
  if (at::GradMode::is_enabled() || chosen == nullptr || !chosen->empty()) return {};
  GradientReceiver* const receiver = receiver_of(weight);
  return receiver == nullptr ? at::Tensor() : receiver->place();
}

void add_widened(at::Tensor& place, const at::Tensor& a, const at::Tensor& b) {
  place.addmm_(a.to(place.scalar_type()), b.to(place.scalar_type()));
}

}  // namespace accrue
