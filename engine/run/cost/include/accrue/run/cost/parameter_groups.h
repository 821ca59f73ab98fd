// SPDX-License-Identifier: Apache-2.0
// Groups of parameters with the same factors of weight decay and rate, and the same choice of base rate. Pure: the plan
// lists the groups, and the ranks' optimizers apply them.
// Source: the parameter groups of Megatron-LM's optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Update options of a parameter.
struct ParameterGroup {
  double weight_decay = 1.0;  ///< times the weight decay
  double lr = 1.0;            ///< times the rate, after all else: the result may be below the lowest rate
  bool decoupled = false;     ///< the rate is decoupled_lr's
  bool operator==(const ParameterGroup&) const = default;
};

/// `decays`: result of the default rule, which applies if the spec names no parameters.
ParameterGroup parameter_group(std::string_view name, bool decays, const OptimizerSpec& optimizer);
/// Whether the glob matches the whole name; * stands for any characters.
bool matches(std::string_view glob, std::string_view name);
/// Whether the parameter is the token embedding, which is also the output layer.
bool is_embedding(std::string_view name);

/// One group of a model.
struct ParameterGroupSize {
  ParameterGroup group;
  std::int64_t parameters = 0;
  std::int64_t numel = 0;
  bool operator==(const ParameterGroupSize&) const = default;
};
/// Returns the groups in the order of their first parameters in the model, which no layout changes.
std::vector<ParameterGroupSize> parameter_groups(const ModelSpec& model, const OptimizerSpec& optimizer);

}  // namespace accrue
