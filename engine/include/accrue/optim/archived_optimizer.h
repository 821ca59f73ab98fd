// SPDX-License-Identifier: Apache-2.0
// Serialisation of an optimizer for torch::save() and torch::load(), for which LibTorch's own base class does nothing.
// Thread: the training thread.
#pragma once

#include <torch/optim/optimizer.h>

namespace accrue {

class ArchivedOptimizer : public torch::optim::Optimizer {
 public:
  using torch::optim::Optimizer::Optimizer;

  /// Writes the entries of wrap(*this)->state_dict() into the archive, each as a tensor. The place of a state is not
  /// part of it, so states in files are included.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Restores state and options. Errors: throws std::invalid_argument that names a missing or mismatched entry; nothing
  /// is changed then.
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace accrue
