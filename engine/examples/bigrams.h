// SPDX-License-Identifier: Apache-2.0
// Shared by the examples of the Megatron-LM plug-in: a language model small enough to be checked by hand, and the mesh
// of a program's ranks.
#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/accelerator.h"
#include "ranks.h"

namespace examples {

/// The next token from the last one alone: a table of scores, [words, words].
struct Bigrams final : accrue::megatron::ModelChunk {
  explicit Bigrams(const at::Tensor& table) : scores(register_parameter("scores", table.clone())) {}

  accrue::megatron::Tensors forward(const accrue::megatron::Batch& batch) override {
    logits_ = at::embedding(scores, batch.at("tokens"));
    if (!batch.contains("labels")) return {logits_};
    const at::Tensor& labels = batch.at("labels");
    return {at::cross_entropy_loss(logits_.flatten(0, 1), labels.flatten(), {}, at::Reduction::None).view_as(labels)};
  }
  at::Tensor logits(const accrue::megatron::Tensors& /*outputs*/) const override { return logits_; }

  at::Tensor scores;

 private:
  at::Tensor logits_;  ///< of the last batch
};

inline accrue::megatron::ModelProvider bigrams(const at::Tensor& table) {
  return [table](const accrue::megatron::ChunkPlace&) { return std::make_shared<Bigrams>(table); };
}

/// All ranks under the plug-in's degrees.
inline accrue::Mesh mesh_of(accrue::Rendezvous* ranks, const accrue::megatron::MegatronLMPlugin& plugin) {
  if (ranks == nullptr) return {};
  const auto grid = accrue::megatron::Accelerator::grid_of(plugin, ranks->identity().world);
  return accrue::must(accrue::Mesh::build(*ranks, accrue::must(grid)));
}

}  // namespace examples
