// SPDX-License-Identifier: Apache-2.0
// The parameters of each model, written down once for the planner. The order is that of the modules, the names are
// those under which weights are saved.
#include <functional>
#include <numeric>

#include "accrue/run/model_share.h"
#include "accrue/run/shard_layout.h"
#include "parameter_totals.h"

namespace accrue {

namespace {

using enum ParameterDivision;

class ShapeList {
 public:
  /// Where the next parameters belong.
  void place(ParameterPlace place, std::int64_t block = 0) {
    place_ = place;
    block_ = block;
  }
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, ParameterDivision division = none) {
    add(name + ".weight", {rows, columns}, division);
  }
  /// Its bias has one number a row: it is divided as the rows are.
  void linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, bool bias = true,
              ParameterDivision division = none) {
    matrix(name, outputs, inputs, division);
    if (bias) add(name + ".bias", {outputs}, division == columns ? none : division);
  }
  void norm(const std::string& name, std::int64_t size) {
    add(name + ".weight", {size}, none);
    add(name + ".bias", {size}, none);
  }

  std::vector<ParameterShape> shapes;

 private:
  void add(std::string name, std::vector<std::int64_t> shape, ParameterDivision division) {
    const bool decays = shape.size() > 1;
    shapes.push_back({std::move(name), std::move(shape), decays, division, place_, block_});
  }

  ParameterPlace place_ = ParameterPlace::first_part;
  std::int64_t block_ = 0;
};

std::vector<ParameterShape> gpt_shapes(const ModelSpec& model, std::int64_t tensor_ranks) {
  const std::int64_t width = model.width;
  ShapeList list;
  list.matrix("token_embedding", classes_of(model, tensor_ranks), width, rows);
  list.matrix("position_embedding", model.context, width);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    list.place(ParameterPlace::block, i);
    list.norm(block + ".norm_1", width);
    list.linear(block + ".attention.qkv", width, 3 * width, true, packed_rows);
    list.linear(block + ".attention.output", width, width, true, columns);
    list.norm(block + ".norm_2", width);
    list.linear(block + ".mlp.up", width, 4 * width, true, rows);
    list.linear(block + ".mlp.down", 4 * width, width, true, columns);
  }
  list.place(ParameterPlace::last_part);
  list.norm("final_norm", width);  // the head is the token embedding
  return std::move(list.shapes);
}

std::vector<ParameterShape> linear_shapes(const ModelSpec& model) {
  std::vector<ParameterShape> shapes = {{.name = "weight", .shape = {model.outputs, model.inputs}}};
  if (model.bias) shapes.push_back({.name = "bias", .shape = {model.outputs}, .decays = false});
  return shapes;
}

std::vector<ParameterShape> mlp_shapes(const ModelSpec& model) {
  ShapeList list;
  std::int64_t inputs = model.inputs;
  for (std::size_t i = 0; i <= model.hidden.size(); ++i) {
    const std::int64_t outputs = i < model.hidden.size() ? model.hidden[i] : model.outputs;
    list.linear("layers." + std::to_string(i), inputs, outputs, model.bias);
    inputs = outputs;
  }
  return std::move(list.shapes);
}

ParameterTotals added_up(const ModelSpec& model, std::int64_t tensor_ranks) {
  ParameterTotals totals;
  for (const ParameterShape& shape : parameter_shapes(model, tensor_ranks)) {
    totals.numel += shape.numel();
    totals.padded_numel += padded_numel(shape.numel());
  }
  return totals;
}

}  // namespace

ParameterTotals parameter_totals(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (model.kind != ModelKind::gpt || model.layers <= 2) return added_up(model, tensor_ranks);
  // Every block has the same parameters.
  ModelSpec part = model;
  part.layers = 1;
  const ParameterTotals one = added_up(part, tensor_ranks);
  part.layers = 2;
  const ParameterTotals two = added_up(part, tensor_ranks);
  const std::int64_t more = model.layers - 1;
  return {one.numel + more * (two.numel - one.numel), one.padded_numel + more * (two.padded_numel - one.padded_numel)};
}

namespace {

ParameterTotals added_up(const ModelSpec& model, const ModelShare& share) {
  ParameterTotals totals;
  for (const ParameterShare& each : parameter_shares(model, share)) {
    totals.numel += each.numel();
    totals.padded_numel += padded_numel(each.numel());
  }
  return totals;
}

/// Of one part, at a cost that does not grow with the layers: every block has the same parameters.
ParameterTotals part_totals(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t blocks = model.layers / share.parts;
  if (blocks <= 2) return added_up(model, share);
  ModelSpec few = model;
  few.layers = share.parts;
  const ParameterTotals one = added_up(few, share);
  few.layers = 2 * share.parts;
  const ParameterTotals two = added_up(few, share);
  return {one.numel + (blocks - 1) * (two.numel - one.numel),
          one.padded_numel + (blocks - 1) * (two.padded_numel - one.padded_numel)};
}

}  // namespace

ParameterTotals fullest_rank_totals(const ModelSpec& model, const ParallelSpec& parallel) {
  const std::int64_t stages = parallel.pipeline, parts = stages * parallel.virtual_pipeline;
  if (model.kind != ModelKind::gpt || !check_share(model, parallel.tensor, parts).empty())
    return parameter_totals(model);
  ParameterTotals most;
  for (const std::int64_t stage : {std::int64_t{0}, stages - 1}) {
    ParameterTotals sum;
    for (std::int64_t chunk = 0; chunk < parallel.virtual_pipeline; ++chunk) {
      const ParameterTotals part =
          part_totals(model, {.tensor_ranks = parallel.tensor, .parts = parts, .part = chunk * stages + stage});
      sum = {sum.numel + part.numel, sum.padded_numel + part.padded_numel};
    }
    if (sum.numel > most.numel) most = sum;
  }
  return most;
}

std::int64_t ParameterShape::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<ParameterShape> parameter_shapes(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (model.kind == ModelKind::gpt) return gpt_shapes(model, tensor_ranks);
  return model.kind == ModelKind::mlp ? mlp_shapes(model) : linear_shapes(model);
}

}  // namespace accrue
