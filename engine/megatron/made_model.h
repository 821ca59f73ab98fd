// SPDX-License-Identifier: Apache-2.0
// The model of an Accelerator: the chunks that this rank holds, of a spec or of a provider, and the fields of the
// plug-in that need to know it.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <vector>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/parallel/tensor_axis.h"

namespace accrue::megatron {

/// The plug-in's fields as they act. Errors: throws std::invalid_argument with every rule that they break.
ResolvedMegatron resolved_plugin(const AcceleratorOptions& options, const MegatronFacts& facts);

struct MadeModel {
  ResolvedMegatron resolved;      ///< knowing the model
  ParallelSpec parallel;          ///< its division
  std::optional<ModelSpec> spec;  ///< unless a provider makes the model
  std::vector<std::shared_ptr<ModelChunk>> chunks;
  std::shared_ptr<torch::nn::Module> all;  ///< the chunks as one module
};
/// `resolved`, `parallel`: without a model. Errors: throws std::invalid_argument.
MadeModel make_model(const ModelSource& source, const AcceleratorOptions& options, const ResolvedMegatron& resolved,
                     const ParallelSpec& parallel, const Mesh& mesh, const TensorAxis& axis);

}  // namespace accrue::megatron
