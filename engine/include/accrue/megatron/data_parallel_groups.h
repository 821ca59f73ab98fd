// SPDX-License-Identifier: Apache-2.0
// Messages between replicas. Collective: the data axis. Thread: training.
// Source: Accelerate 1.9.0, utils/megatron_lm.py.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue::megatron {

/// Returns the mean of each loss over the replicas, without a graph. Shapes: losses of one element each -> [losses].
at::Tensor avg_losses_across_data_parallel_group(const std::vector<at::Tensor>& losses, Communicator& data);

/// A tensor, or a list or table of such trees.
struct TensorTree {
  using List = std::vector<TensorTree>;
  using Table = std::map<std::string, TensorTree>;
  std::variant<at::Tensor, List, Table> node;
  TensorTree(at::Tensor tensor) : node(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  TensorTree(List list) : node(std::move(list)) {}            // NOLINT(google-explicit-constructor)
  TensorTree(Table table) : node(std::move(table)) {}         // NOLINT(google-explicit-constructor)

  const at::Tensor& tensor() const { return std::get<at::Tensor>(node); }
  const TensorTree& at(std::size_t i) const { return std::get<List>(node).at(i); }
  const TensorTree& at(const std::string& key) const { return std::get<Table>(node).at(key); }
};

/// Concatenates every tensor of the tree over the replicas along dim 0, in rank order. Shapes: [n, ...], equal on all
/// ranks -> [ranks n, ...]; a scalar counts as [1].
TensorTree gather_across_data_parallel_groups(const TensorTree& tree, Communicator& data);

}  // namespace accrue::megatron
