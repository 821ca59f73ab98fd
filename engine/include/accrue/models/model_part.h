// SPDX-License-Identifier: Apache-2.0
// Interface of a model for a training step: parts that can each run on one pipeline stage. An unsplit model is one
// part, first and last at once. The loss is a sum and a count, so that the sum over ranks and micro-batches is divided
// once, by a true count.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "accrue/models/batch.h"
#include "accrue/parallel/tensor_axis.h"
#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Thread: training, all members.
class ModelPart : public torch::nn::Module {
 public:
  /// Returns the part's outputs for a micro-batch. `received`: the outputs of the previous part; undefined on the first
  /// part, which reads batch.inputs. Shapes: between parts [B, T, D] (tokens) or [B, D]; on the last part the input of
  /// its loss().
  virtual at::Tensor forward(const Batch& batch, const at::Tensor& received) = 0;
  /// Returns the loss of the last part's outputs against batch.targets.
  virtual LossSum loss(const at::Tensor& outputs, const Batch& batch) = 0;
  /// For the last part's outputs, if it classifies tokens: returns this rank's logits [B, T, classes / tensor ranks],
  /// or [B T, ...] if the outputs are rows (sequence parallelism). Collective: the tensor axis. Errors:
  /// std::logic_error on other parts.
  virtual at::Tensor logits(const at::Tensor& outputs) const;
  /// Returns the loss of every token [B, T], finite but meaningless for a target of -100. Conditions, collective and
  /// errors: as logits().
  virtual at::Tensor token_losses(const at::Tensor& outputs, const Batch& batch) const;
  /// For a previous part on another stage: returns a tensor with the shape, type and device of its outputs for the
  /// micro-batch, to receive them. Errors: std::logic_error on a part that reads batch.inputs.
  virtual at::Tensor empty_input(const Batch& batch) const;
  /// Backpropagates `gradient`, which belongs to the outputs and has their shape, into the .grad of the parameters and
  /// of `received`. On the last part `outputs` is the scaled loss [] and `gradient` is undefined.
  virtual void backward(const at::Tensor& outputs, const at::Tensor& gradient);

  /// Does forward and loss of a model in one part.
  LossSum whole_loss(const Batch& batch) { return loss(forward(batch, {}), batch); }

  /// Called before forward() or loss() reads parameters, with the first and the last, in module order, of an adjacent
  /// group. Their gathering may be in progress until it returns (overlap_param_gather).
  using BeforeUse = std::function<void(const at::Tensor& first, const at::Tensor& last)>;
  void before_use(BeforeUse call) { before_use_ = std::move(call); }
  /// Whether the part makes these calls. Otherwise all of its parameters must be complete before forward().
  virtual bool says_what_it_uses() const { return false; }

 protected:
  void uses(const at::Tensor& first, const at::Tensor& last) const {
    if (before_use_) before_use_(first, last);
  }

 private:
  BeforeUse before_use_;
};

/// Makes one rank's share of one part of the spec's model; the weights are those of make_model(), divided. Of
/// `parallel` it reads the recomputation options. The axis's communicator must outlive it. Errors: throws
/// std::invalid_argument if the model cannot be divided so.
std::shared_ptr<ModelPart> make_model_part(const ModelSpec& spec, std::uint64_t seed, const ModelShare& share,
                                           const TensorAxis& axis, const ParallelSpec& parallel = {});
/// Builds the spec's model in one part, with weights from a generator seeded by `seed` (the same on every rank and
/// machine). Parameter names and shapes equal parameter_shapes(spec). Errors: throws std::invalid_argument that names
/// the field from which no model can be built.
std::shared_ptr<ModelPart> make_model(const ModelSpec& spec, std::uint64_t seed);

}  // namespace accrue
