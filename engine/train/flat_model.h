// SPDX-License-Identifier: Apache-2.0
// The parts of a model that a rank holds. The parameters that train are views of one flat tensor, laid out as the
// gradient arena is, so that the optimizer, the norm and a checkpoint each see one stretch of memory. Frozen parameters
// of a model of one's own are kept as its buffers are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/models/model_part.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/run/shard_layout.h"

namespace accrue {

/// The parameters that require a gradient, in module order, a tied one once.
NamedTensors trained_parameters(const torch::nn::Module& module);
/// What else a module registers: frozen parameters, and buffers such as running statistics; each once.
NamedTensors untrained_tensors(const torch::nn::Module& module);

class FlatModel {
 public:
  /// How these parameters, of a type, are laid out; the gradient arena's layout.
  using MakeLayout = std::function<FlatLayout(at::ScalarType type, const std::vector<ParameterShare>& shares)>;

  using MakePart = std::function<std::shared_ptr<ModelPart>(const ModelShare& share)>;

  /// Builds the shares of the spec's model, one a chunk, on the CPU, so that it begins alike everywhere, and moves
  /// their parameters into a flat tensor on the device. Errors: throws ResultError (config) for a model of one's own
  /// without a parameter that trains, or with such parameters of different types.
  FlatModel(const ModelSpec& spec, const std::vector<ModelShare>& shares, const MakePart& make_part, at::Device device,
            const MakeLayout& make_layout);

  /// All parts, each as a child where there are several.
  torch::nn::Module& module() { return *module_; }
  /// By chunk.
  const std::vector<ModelPart*>& parts() const { return parts_; }
  /// An undivided model. Errors: std::logic_error where this rank holds less.
  ModelPart& undivided() const;
  /// Shapes: [numel of the layout]; padding is zero.
  at::Tensor& flat() { return flat_; }
  const at::Tensor& flat() const { return flat_; }
  const FlatLayout& layout() const { return layout_; }
  const std::vector<std::string>& names() const { return names_; }
  /// Those that train, in module order.
  const std::vector<at::Tensor>& parameters() const { return trained_; }
  /// untrained_tensors() of the parts, by their names in these. The built-in models have none. What trains is settled
  /// when the model is made.
  NamedTensors buffers() const;
  /// Of these the frozen parameters.
  const NamedTensors& frozen() const { return frozen_; }
  /// Errors: throws ResultError (config) for one that was unfrozen meanwhile: no optimizer holds it.
  void demand_still_frozen() const;
  at::ScalarType dtype() const { return flat_.scalar_type(); }

  /// Parameter i's part of any tensor of the layout, in the parameter's shape: a view.
  at::Tensor slice(const at::Tensor& flat, std::size_t i) const;
  /// The same without rows of padding, as a checkpoint holds it: a view.
  at::Tensor unpadded(const at::Tensor& flat, std::size_t i) const;
  /// Where the parameters of a chunk lie.
  const FlatRange& range_of(std::int64_t chunk) const { return ranges_[static_cast<std::size_t>(chunk)]; }
  /// Where two parameters and those between them lie.
  static FlatRange range_between(const at::Tensor& one, const at::Tensor& other);
  /// What this rank holds of each parameter, in module order.
  const std::vector<ParameterShare>& shares() const { return shares_; }
  /// How an update treats each parameter, in module order (parameter_group()).
  std::vector<OptimizerSegment> segments(const OptimizerSpec& optimizer) const;
  /// All weights in module order, for record_weights.
  std::vector<double> weights() const;
  /// Name of the first parameter, in module order, whose slice of `flat` is not finite; empty if all are.
  std::string first_non_finite(const at::Tensor& flat) const;

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::vector<ModelPart*> parts_;  ///< of the module
  bool undivided_ = false;
  std::vector<std::string> names_;
  std::vector<at::Tensor> trained_;
  NamedTensors frozen_;
  std::vector<ParameterShare> shares_;
  std::vector<FlatRange> ranges_;  ///< by chunk
  FlatLayout layout_;
  at::Tensor flat_;
};

}  // namespace accrue
