// SPDX-License-Identifier: Apache-2.0
// How many gradients backward has brought to a model's parameters. Only a hook can tell an arrival from a clip or an
// edit of the caller's, which need no reduction. The hook that a tensor has room for belongs to
// DistributedDataParallel; a gradient accumulator takes any number. The cost is one atomic addition a parameter and
// backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace accrue::accelerate {

class ArrivalCount {
 public:
  explicit ArrivalCount(const std::vector<at::Tensor>& parameters);
  ~ArrivalCount();
  ArrivalCount(const ArrivalCount&) = delete;
  ArrivalCount& operator=(const ArrivalCount&) = delete;

  /// Something has arrived since the last call, or since construction. What is there now counts as seen.
  bool moved();

 private:
  struct Place {
    std::shared_ptr<torch::autograd::Node> accumulator;
    std::uintptr_t hook = 0;
  };
  std::shared_ptr<std::atomic<std::uint64_t>> count_;
  std::vector<Place> places_;
  std::uint64_t seen_ = 0;
};

}  // namespace accrue::accelerate
