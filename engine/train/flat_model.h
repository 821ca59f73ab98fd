// SPDX-License-Identifier: Apache-2.0
// Parts of a model that a rank holds. The trainable parameters are views of one flat tensor with the gradient arena's
// layout. So the optimizer, the norm and a checkpoint each see one contiguous range. Frozen parameters of a user's
// model are treated like its buffers.
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
#include "accrue/run/cost/shard_layout.h"

namespace accrue {

/// Returns the parameters that require a gradient, in module order, a tied one once.
NamedTensors trained_parameters(const torch::nn::Module& module);
/// Returns a module's other tensors: frozen parameters, and buffers such as running statistics; each once.
NamedTensors untrained_tensors(const torch::nn::Module& module);

class FlatModel {
 public:
  /// Makes the layout of the parameters of a type; it is also the gradient arena's.
  using MakeLayout = std::function<FlatLayout(at::ScalarType type, const std::vector<ParameterShare>& shares)>;

  using MakePart = std::function<std::shared_ptr<ModelPart>(const ModelShare& share)>;

  /// Builds the shares of the spec's model, one per chunk, on the CPU, so that initial weights are the same for every
  /// device. Then moves their parameters into a flat tensor on the device. Errors: throws ResultError (config) for a
  /// user's model without a trainable parameter, or with trainable parameters of different types.
  FlatModel(const ModelSpec& spec, const std::vector<ModelShare>& shares, const MakePart& make_part, at::Device device,
            const MakeLayout& make_layout);

  /// All parts, as children if there are several.
  torch::nn::Module& module() { return *module_; }
  /// Parts by chunk.
  const std::vector<ModelPart*>& parts() const { return parts_; }
  /// Returns an undivided model. Errors: std::logic_error if this rank holds less.
  ModelPart& undivided() const;
  /// The flat parameters. Shapes: [numel of the layout]; padding is zero.
  at::Tensor& flat() { return flat_; }
  const at::Tensor& flat() const { return flat_; }
  const FlatLayout& layout() const { return layout_; }
  const std::vector<std::string>& names() const { return names_; }
  /// Trainable parameters, in module order.
  const std::vector<at::Tensor>& parameters() const { return trained_; }
  /// untrained_tensors() of the parts, by their names in these. The built-in models have none. The set of trainable
  /// parameters is fixed at construction.
  NamedTensors buffers() const;
  /// The frozen parameters among the buffers.
  const NamedTensors& frozen() const { return frozen_; }
  /// Errors: throws ResultError (config) if one was unfrozen meanwhile, because no optimizer holds it.
  void demand_still_frozen() const;
  at::ScalarType dtype() const { return flat_.scalar_type(); }

  /// Returns parameter i's part of any tensor of the layout, in the parameter's shape: a view.
  at::Tensor slice(const at::Tensor& flat, std::size_t i) const;
  /// Does the same without padding rows, as in a checkpoint: a view.
  at::Tensor unpadded(const at::Tensor& flat, std::size_t i) const;
  /// Range of a chunk's parameters.
  const FlatRange& range_of(std::int64_t chunk) const { return ranges_[static_cast<std::size_t>(chunk)]; }
  /// Range that spans two parameters and those between them.
  static FlatRange range_between(const at::Tensor& one, const at::Tensor& other);
  /// This rank's share of each parameter, in module order.
  const std::vector<ParameterShare>& shares() const { return shares_; }
  /// Options of an update for each parameter, in module order (parameter_group()).
  std::vector<OptimizerSegment> segments(const OptimizerSpec& optimizer) const;
  /// Returns all weights in module order, for record_weights.
  std::vector<double> weights() const;
  /// Returns the name of the first parameter, in module order, whose slice of `flat` is not finite; empty if all are
  /// finite.
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
