// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/fields/loss_difference.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "accrue/run/fields/model_loss.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue {

namespace {

/// Keys of the model that determine which loss is computed, and over what.
constexpr std::array<std::string_view, 8> of_the_loss = {
    "model.kind",   "model.vocabulary", "model.context",         "model.decoder_context",
    "model.inputs", "model.outputs",    "model.label_smoothing", "model.binary_head"};
/// Keys of the data that change neither the samples nor their targets: their order, and the evaluation split.
constexpr std::array<std::string_view, 10> not_of_the_samples = {"data.shuffle",          "data.cache",
                                                                 "data.sampler",          "data.sharding",
                                                                 "data.consumed_samples", "data.validation_weights",
                                                                 "data.validation_paths", "data.validation_fraction",
                                                                 "data.validation_path",  "data.validation_shuffle"};

}  // namespace

std::string loss_difference(const RunSpec& one, const RunSpec& other) {
  for (const SpecDifference& difference : diff_specs(one, other)) {
    const std::string_view key = difference.key;
    if (std::ranges::find(of_the_loss, key) != of_the_loss.end()) return difference.key;
    if (key.starts_with("data.") && std::ranges::find(not_of_the_samples, key) == not_of_the_samples.end())
      return difference.key;
  }
  // The default is the model's own.
  if (loss_of(one.model) != loss_of(other.model)) return "model.loss";
  return {};
}

}  // namespace accrue
