// SPDX-License-Identifier: Apache-2.0
// The model of an Accelerator: this rank's chunks, made from a spec or by a provider, and the fields of the plug-in
// that depend on the model.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <vector>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/parallel/tensor_axis.h"

namespace accrue::megatron {

/// Returns the plug-in's effective fields. Errors: throws std::invalid_argument with every rule that they break.
ResolvedMegatron resolved_plugin(const AcceleratorOptions& options, const MegatronFacts& facts);

struct MadeModel {
  ResolvedMegatron resolved;      ///< with the model's facts
  ParallelSpec parallel;          ///< its division
  std::optional<ModelSpec> spec;  ///< unless a provider makes the model
  std::vector<std::shared_ptr<ModelChunk>> chunks;
  std::shared_ptr<torch::nn::Module> all;  ///< the chunks as one module
};
/// `resolved`, `parallel`: without a model. Errors: throws std::invalid_argument.
MadeModel make_model(const ModelSource& source, const AcceleratorOptions& options, const ResolvedMegatron& resolved,
                     const ParallelSpec& parallel, const Mesh& mesh, const TensorAxis& axis);

}  // namespace accrue::megatron
