// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/data_parallel_groups.h"

#include <ATen/ops/cat.h>

#include <stdexcept>

#include "comm/gathered.h"

namespace accrue::megatron {

at::Tensor avg_losses_across_data_parallel_group(const std::vector<at::Tensor>& losses, Communicator& data) {
  if (losses.empty()) throw std::invalid_argument("there is no loss to average over the data-parallel group");
  std::vector<at::Tensor> flat;
  for (const at::Tensor& loss : losses) {
    if (loss.numel() != 1)
      throw std::invalid_argument("a loss to average has one element, not " + std::to_string(loss.numel()));
    flat.push_back(loss.detach().reshape({1}));
  }
  // [losses]: one exchange for all of them.
  at::Tensor all = at::cat(flat);
  data.all_reduce(all);
  // A mean of means: each replica counts alike, however many tokens its loss is of.
  return all.div_(static_cast<double>(data.size()));
}

TensorTree gather_across_data_parallel_groups(const TensorTree& tree, Communicator& data) {
  if (const auto* list = std::get_if<TensorTree::List>(&tree.node)) {
    TensorTree::List gathered;
    for (const TensorTree& each : *list) gathered.push_back(gather_across_data_parallel_groups(each, data));
    return gathered;
  }
  if (const auto* table = std::get_if<TensorTree::Table>(&tree.node)) {
    TensorTree::Table gathered;
    for (const auto& [name, each] : *table) gathered.emplace(name, gather_across_data_parallel_groups(each, data));
    return gathered;
  }
  at::Tensor own = tree.tensor().detach();
  if (own.dim() == 0) own = own.reshape({1});
  // [N, ...] -> [ranks N, ...], in rank order.
  return gathered(data, own.contiguous()).flatten(0, 1);
}

}  // namespace accrue::megatron
