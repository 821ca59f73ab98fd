// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/megatron/megatron_blend.h"

#include "megatron_values.h"

namespace accrue {

Result<MegatronBlend> read_megatron_blend(const std::vector<std::string>& words) {
  MegatronBlend blend;
  std::string no_weight;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (const auto weight = megatron_detail::parse_value(FieldType::real, words[i]))
      blend.weights.push_back(std::get<double>(*weight));
    else
      no_weight = words[i];
    if (i + 1 < words.size()) blend.paths.push_back(words[i + 1]);
  }
  if (blend.weights.empty() || words.size() == 1) return MegatronBlend{{}, words};
  if (!no_weight.empty()) return fail(ErrorCode::config, "has a path where a weight should stand", no_weight);
  if (blend.weights.size() != blend.paths.size())
    return fail(ErrorCode::config, "ends with a weight that has no path", words.back());
  return blend;
}

}  // namespace accrue
