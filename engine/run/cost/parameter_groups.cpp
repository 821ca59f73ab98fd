// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/cost/parameter_groups.h"

#include <algorithm>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"

namespace accrue {
namespace {

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [name](const std::string& glob) { return matches(glob, name); });
}

}  // namespace

bool matches(std::string_view glob, std::string_view name) {
  std::size_t at = 0, in = 0;
  std::size_t star = std::string_view::npos,
              after_star = 0;  // place to backtrack to, at which the star takes one more character
  while (in < name.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      after_star = in;
    } else if (at < glob.size() && glob[at] == name[in]) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++after_star;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

bool is_embedding(std::string_view name) {
  return name == tied_embedding;
}

ParameterGroup parameter_group(std::string_view name, bool decays, const OptimizerSpec& optimizer) {
  const bool pulled = optimizer.no_decay ? !matches_any(*optimizer.no_decay, name) : decays;
  return {.weight_decay = pulled ? 1.0 : 0.0,
          .lr = matches_any(optimizer.scaled_lr, name) ? optimizer.lr_mult : 1.0,
          .decoupled = optimizer.decoupled_lr && is_embedding(name)};
}

std::vector<ParameterGroupSize> parameter_groups(const ModelSpec& model, const OptimizerSpec& optimizer) {
  std::vector<ParameterGroupSize> groups;
  for (const ParameterShape& parameter : parameter_shapes(model)) {
    const ParameterGroup group = parameter_group(parameter.name, parameter.decays, optimizer);
    auto found = std::ranges::find(groups, group, &ParameterGroupSize::group);
    if (found == groups.end()) found = groups.insert(found, {.group = group});
    ++found->parameters;
    found->numel += parameter.numel();
  }
  return groups;
}

}  // namespace accrue
