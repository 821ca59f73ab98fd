// SPDX-License-Identifier: Apache-2.0
// The parameters of each model, written down once for the planner. The order is that of the modules, the names are
// those under which weights are saved.
#include <functional>
#include <numeric>

#include "accrue/run/shard_layout.h"
#include "parameter_totals.h"

namespace accrue {

namespace {

class ShapeList {
 public:
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    shapes.push_back({name + ".weight", {rows, columns}, true});
  }
  void vector(const std::string& name, std::int64_t size) { shapes.push_back({name, {size}, false}); }
  void linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, bool bias = true) {
    matrix(name, outputs, inputs);
    if (bias) vector(name + ".bias", outputs);
  }
  void norm(const std::string& name, std::int64_t size) {
    vector(name + ".weight", size);
    vector(name + ".bias", size);
  }

  std::vector<ParameterShape> shapes;
};

std::vector<ParameterShape> gpt_shapes(const ModelSpec& model) {
  const std::int64_t width = model.width;
  ShapeList list;
  list.matrix("token_embedding", model.vocabulary, width);
  list.matrix("position_embedding", model.context, width);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    list.norm(block + ".norm_1", width);
    list.linear(block + ".attention.qkv", width, 3 * width);
    list.linear(block + ".attention.output", width, width);
    list.norm(block + ".norm_2", width);
    list.linear(block + ".mlp.up", width, 4 * width);
    list.linear(block + ".mlp.down", 4 * width, width);
  }
  list.norm("final_norm", width);  // the head is the token embedding
  return std::move(list.shapes);
}

std::vector<ParameterShape> linear_shapes(const ModelSpec& model) {
  std::vector<ParameterShape> shapes = {{"weight", {model.outputs, model.inputs}, true}};
  if (model.bias) shapes.push_back({"bias", {model.outputs}, false});
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

ParameterTotals added_up(const ModelSpec& model) {
  ParameterTotals totals;
  for (const ParameterShape& shape : parameter_shapes(model)) {
    totals.numel += shape.numel();
    totals.padded_numel += padded_numel(shape.numel());
  }
  return totals;
}

}  // namespace

ParameterTotals parameter_totals(const ModelSpec& model) {
  if (model.kind != ModelKind::gpt || model.layers <= 2) return added_up(model);
  // Every block has the same parameters.
  ModelSpec part = model;
  part.layers = 1;
  const ParameterTotals one = added_up(part);
  part.layers = 2;
  const ParameterTotals two = added_up(part);
  const std::int64_t more = model.layers - 1;
  return {one.numel + more * (two.numel - one.numel), one.padded_numel + more * (two.padded_numel - one.padded_numel)};
}

std::int64_t ParameterShape::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<ParameterShape> parameter_shapes(const ModelSpec& model) {
  if (model.kind == ModelKind::gpt) return gpt_shapes(model);
  return model.kind == ModelKind::mlp ? mlp_shapes(model) : linear_shapes(model);
}

}  // namespace accrue
