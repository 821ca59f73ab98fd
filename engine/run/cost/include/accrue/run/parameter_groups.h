// SPDX-License-Identifier: Apache-2.0
// Which parameters an update treats alike: the factors of weight decay and rate, and whether the rate is that of the
// embeddings. Pure: the plan lists the groups, and the ranks' optimizers obey them.
// Source: the parameter groups of Megatron-LM's optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// How an update treats a parameter.
struct ParameterGroup {
  double weight_decay = 1.0;  ///< times the weight decay
  double lr = 1.0;            ///< times the rate, last of all: may come to less than the lowest rate
  bool decoupled = false;     ///< the rate is decoupled_lr's
  bool operator==(const ParameterGroup&) const = default;
};

/// `decays`: by the default rule, which holds where the spec names no parameters.
ParameterGroup parameter_group(std::string_view name, bool decays, const OptimizerSpec& optimizer);
/// Whether the whole name fits; * stands for any characters.
bool matches(std::string_view glob, std::string_view name);
/// The token embedding, which is the output layer too.
bool is_embedding(std::string_view name);

/// One group of a model.
struct ParameterGroupSize {
  ParameterGroup group;
  std::int64_t parameters = 0;
  std::int64_t numel = 0;
  bool operator==(const ParameterGroupSize&) const = default;
};
/// In the order in which a model's parameters first belong to them, which no layout changes.
std::vector<ParameterGroupSize> parameter_groups(const ModelSpec& model, const OptimizerSpec& optimizer);

}  // namespace accrue
