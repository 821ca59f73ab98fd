// SPDX-License-Identifier: Apache-2.0
// Contents of a run's newest checkpoint, assembled from the parts that its ranks wrote in any layout: parameters,
// moments, masters and steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "checkpoint/checkpoint_reader.h"

namespace accrue::test {

/// By name, without what belongs to one rank alone. Throws if there is none, or if a tensor cannot be read.
inline std::map<std::string, at::Tensor> gathered_state(const std::filesystem::path& run_dir) {
  std::filesystem::path newest;
  long last = -1;
  for (const auto& each : std::filesystem::directory_iterator(run_dir / "checkpoints")) {
    const std::string name = each.path().filename();
    if (!name.starts_with("step-")) continue;
    if (const long step = std::stol(name.substr(5)); step > last) last = step, newest = each.path();
  }
  if (newest.empty()) throw std::runtime_error("no checkpoint in " + run_dir.string());
  const auto reader = open_reader(newest, newest.filename());
  if (!reader) throw std::runtime_error(reader.error().text());
  std::map<std::string, at::Tensor> state;
  for (const std::string& name : reader->tensor_names()) {
    if (name.starts_with("rank.") || name.starts_with("replica.")) continue;
    auto tensor = reader->read(name);
    if (!tensor) throw std::runtime_error(tensor.error().text());
    state.emplace(name, *tensor);
  }
  return state;
}

/// The first name under which the two differ, in a bit or by one lacking it; empty if they are equal. Ranks that
/// divide packed queries, keys and values [3 D, D] write them as [3, D, D]: the numbers are compared in their order.
inline std::string first_difference(const std::map<std::string, at::Tensor>& a,
                                    const std::map<std::string, at::Tensor>& b) {
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || tensor.scalar_type() != other->second.scalar_type() ||
        !tensor.flatten().equal(other->second.flatten()))
      return name;
  }
  for (const auto& each : b)
    if (!a.contains(each.first)) return each.first;
  return {};
}

}  // namespace accrue::test
