// SPDX-License-Identifier: Apache-2.0
// What torch::save() and torch::load() ask of an optimizer. LibTorch's own base class keeps nothing and says nothing.
// Thread: the training thread.
#pragma once

#include <torch/optim/optimizer.h>

namespace accrue {

class ArchivedOptimizer : public torch::optim::Optimizer {
 public:
  using torch::optim::Optimizer::Optimizer;

  /// Puts the entries of wrap(*this)->state_dict() into the archive, each a tensor. Where a state lies is not part of
  /// it, so one in files is there as well.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Takes state and options back. Errors: throws std::invalid_argument naming the entry that is missing or does not
  /// fit; nothing is changed then.
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace accrue
