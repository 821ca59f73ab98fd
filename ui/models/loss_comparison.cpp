// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/loss_comparison.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "accrue/run/model_loss.h"
#include "accrue/run/spec_fields.h"

namespace accrue::ui {

namespace {

/// Of the model, what decides which loss is computed and over what.
constexpr std::array<std::string_view, 8> ofTheLoss = {
    "model.kind",   "model.vocabulary", "model.context",         "model.decoder_context",
    "model.inputs", "model.outputs",    "model.label_smoothing", "model.binary_head"};
/// Of the data, what changes neither the samples nor what is asked of them: their order, and what is kept for
/// evaluation.
constexpr std::array<std::string_view, 8> notOfTheSamples = {"data.shuffle",          "data.cache",
                                                             "data.sampler",          "data.sharding",
                                                             "data.consumed_samples", "data.validation_weights",
                                                             "data.validation_paths", "data.validation_fraction"};

}  // namespace

std::string lossDifference(const accrue::RunSpec& one, const accrue::RunSpec& other) {
  for (const accrue::SpecDifference& difference : accrue::diff_specs(one, other)) {
    const std::string_view key = difference.key;
    if (std::ranges::find(ofTheLoss, key) != ofTheLoss.end()) return difference.key;
    if (key.starts_with("data.") && std::ranges::find(notOfTheSamples, key) == notOfTheSamples.end())
      return difference.key;
  }
  // Left out, it is the model's own.
  if (accrue::loss_of(one.model) != accrue::loss_of(other.model)) return "model.loss";
  return {};
}

}  // namespace accrue::ui
