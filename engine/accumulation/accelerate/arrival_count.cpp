// SPDX-License-Identifier: Apache-2.0
// The accumulators are held as long as they are watched: a tensor itself keeps no more than a weak reference to its
// own, and the hook would go with it.
#include "arrival_count.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace accrue::accelerate {
namespace {

using torch::autograd::variable_list;

class CountingHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit CountingHook(std::shared_ptr<std::atomic<std::uint64_t>> count) : count_(std::move(count)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    count_->fetch_add(1, std::memory_order_relaxed);
    return outputs;
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> count_;
};

}  // namespace

ArrivalCount::ArrivalCount(const std::vector<at::Tensor>& parameters)
    : count_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  for (const at::Tensor& parameter : parameters) {
    Place place{torch::autograd::impl::grad_accumulator(parameter), 0};
    place.hook = place.accumulator->add_post_hook(std::make_unique<CountingHook>(count_));
    places_.push_back(std::move(place));
  }
}

ArrivalCount::~ArrivalCount() {
  for (const Place& place : places_) place.accumulator->del_post_hook(place.hook);
}

bool ArrivalCount::moved() {
  const std::uint64_t before = std::exchange(seen_, count_->load(std::memory_order_relaxed));
  return before != seen_;
}

}  // namespace accrue::accelerate
