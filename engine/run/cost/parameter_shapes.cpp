// SPDX-License-Identifier: Apache-2.0
// The parameters of each model, written once for the planner. The order is that of the modules; the names are those of
// saved weights.
#include <algorithm>
#include <functional>
#include <numeric>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/block_form.h"
#include "parameter_totals.h"

namespace accrue {

namespace {

using enum ParameterDivision;

class ShapeList {
 public:
  /// Sets the place of the next parameters.
  void place(ParameterPlace place, std::int64_t block = 0) {
    place_ = place;
    block_ = block;
  }
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, ParameterDivision division = none) {
    add(name + ".weight", {rows, columns}, division);
  }
  /// The bias has one number per row and is divided like the rows.
  void linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, bool bias = true,
              ParameterDivision division = none) {
    matrix(name, outputs, inputs, division);
    if (bias) add(name + ".bias", {outputs}, division == columns ? none : division);
  }
  void norm(const std::string& name, std::int64_t size, NormKind kind = NormKind::layer) {
    add(name + ".weight", {size}, none);
    if (kind == NormKind::layer) add(name + ".bias", {size}, none);
  }
  /// A table with a row for each token.
  void table(const std::string& name, std::int64_t tokens, std::int64_t width) {
    matrix(name, tokens, width, rows);
    shapes.back().by_token = true;
  }
  void token_bias(const std::string& name, std::int64_t tokens) {
    add(name + ".bias", {tokens}, rows);
    shapes.back().by_token = true;
  }
  /// A layer that every rank computes whole.
  void whole_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    linear(name, inputs, outputs);
    for (auto each = shapes.end() - 2; each != shapes.end(); ++each) each->every_rank = true;
  }

  std::vector<ParameterShape> shapes;

 private:
  void add(std::string name, std::vector<std::int64_t> shape, ParameterDivision division) {
    // The usual rule: matrices decay, biases and norms do not.
    const bool decays = shape.size() > 1;
    shapes.push_back({std::move(name), std::move(shape), decays, division, place_, block_});
  }

  ParameterPlace place_ = ParameterPlace::first_part;
  std::int64_t block_ = 0;
};

/// In GPT-2's form norm_1 2 D, qkv 3 D^2 + 3 D, output D^2 + D.
void add_self_attention(ShapeList& list, const std::string& block, const BlockForm& form) {
  list.norm(block + ".norm_1", form.width, form.norm);
  if (form.has_groups())
    list.linear(block + ".attention.grouped_qkv", form.width, form.qkv_width(), form.qkv_bias, rows);
  else
    list.linear(block + ".attention.qkv", form.width, form.qkv_width(), form.qkv_bias, packed_rows);
  list.linear(block + ".attention.output", form.query_width(), form.width, form.bias, columns);
}

/// In GPT-2's form norm_2 2 D, up 4 D^2 + 4 D, down 4 D^2 + D. With attention 12 D^2 + 13 D per block.
void add_mlp(ShapeList& list, const std::string& block, const BlockForm& form) {
  list.norm(block + ".norm_2", form.width, form.norm);
  if (form.gated())
    list.linear(block + ".mlp.gate_up", form.width, 2 * form.mlp_width, form.bias, packed_halves);
  else
    list.linear(block + ".mlp.up", form.width, form.mlp_width, form.bias, rows);
  list.linear(block + ".mlp.down", form.mlp_width, form.width, form.bias, columns);
}

void add_blocks(ShapeList& list, const std::string& stack, const ModelSpec& model) {
  const BlockForm form = block_form(model);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string block = stack + "." + std::to_string(i);
    list.place(ParameterPlace::block, i);
    add_self_attention(list, block, form);
    add_mlp(list, block, form);
  }
}

// In GPT-2's form in all V D + T D + L (12 D^2 + 13 D) + 2 D numbers, for L blocks, T positions and V rows of the
// table.
std::vector<ParameterShape> decoder_shapes(const ModelSpec& model, std::int64_t tensor_ranks) {
  const BlockForm form = block_form(model);
  ShapeList list;
  list.table("token_embedding", classes_of(model, tensor_ranks), model.width);
  if (form.positions == PositionKind::learned) list.matrix("position_embedding", model.context, model.width);
  add_blocks(list, "blocks", model);
  list.place(ParameterPlace::last_part);
  list.norm("final_norm", model.width, form.norm);
  if (!form.tied_head) list.table("head", classes_of(model, tensor_ranks), model.width);
  return std::move(list.shapes);
}

std::vector<ParameterShape> bert_shapes(const ModelSpec& model, std::int64_t tensor_ranks) {
  const std::int64_t width = model.width, tokens = classes_of(model, tensor_ranks);
  ShapeList list;
  list.table("token_embedding", tokens, width);
  list.matrix("position_embedding", model.context, width);
  if (model.binary_head) list.matrix("type_embedding", 2, width);
  add_blocks(list, "blocks", model);
  list.place(ParameterPlace::last_part);
  list.norm("final_norm", width);
  list.token_bias("head", tokens);
  list.linear("head.dense", width, width);
  list.norm("head.norm", width);
  if (!model.binary_head) return std::move(list.shapes);
  list.whole_linear("pooler", width, width);
  list.whole_linear("binary_head", width, 2);
  return std::move(list.shapes);
}

// A decoder block also has norm_cross 2 D, query D^2 + D, key_value 2 D^2 + 2 D and output D^2 + D: 16 D^2 + 19 D in
// all.
std::vector<ParameterShape> t5_shapes(const ModelSpec& model, std::int64_t tensor_ranks) {
  const std::int64_t width = model.width, tokens = classes_of(model, tensor_ranks);
  ShapeList list;
  list.table("token_embedding", tokens, width);
  list.matrix("position_embedding", std::max(model.context, model.tokens_of_decoder()), width);
  const BlockForm form = block_form(model);
  add_blocks(list, "encoder", model);
  list.place(ParameterPlace::encoder_end);
  list.norm("encoder_norm", width);
  for (std::int64_t i = 0; i < model.blocks_of_decoder(); ++i) {
    const std::string block = "decoder." + std::to_string(i);
    list.place(ParameterPlace::decoder_block, i);
    add_self_attention(list, block, form);
    list.norm(block + ".norm_cross", width);
    list.linear(block + ".cross.query", width, width, true, rows);
    list.linear(block + ".cross.key_value", width, 2 * width, true, packed_halves);
    list.linear(block + ".cross.output", width, width, true, columns);
    add_mlp(list, block, form);
  }
  list.place(ParameterPlace::last_part);
  list.norm("final_norm", width);
  list.token_bias("head", tokens);
  return std::move(list.shapes);
}

std::vector<ParameterShape> linear_shapes(const ModelSpec& model) {
  std::vector<ParameterShape> shapes = {{.name = "weight", .shape = {model.outputs, model.inputs}}};
  if (layers_have_bias(model)) shapes.push_back({.name = "bias", .shape = {model.outputs}, .decays = false});
  return shapes;
}

std::vector<ParameterShape> mlp_shapes(const ModelSpec& model) {
  ShapeList list;
  std::int64_t inputs = model.inputs;
  for (std::size_t i = 0; i <= model.hidden.size(); ++i) {
    const std::int64_t outputs = i < model.hidden.size() ? model.hidden[i] : model.outputs;
    list.linear("layers." + std::to_string(i), inputs, outputs, layers_have_bias(model));
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

namespace {

/// Returns `one` plus `more` times the difference of `two` and `than`: totals are linear in the number of equal blocks,
/// so total(L) = total(1) + (L - 1) (total(2) - total(1)).
ParameterTotals extended(const ParameterTotals& one, std::int64_t more, const ParameterTotals& two,
                         const ParameterTotals& than) {
  return {one.numel + more * (two.numel - than.numel),
          one.padded_numel + more * (two.padded_numel - than.padded_numel)};
}

}  // namespace

ParameterTotals parameter_totals(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (!is_transformer(model.kind)) return added_up(model, tensor_ranks);
  // Every block has the same parameters, as has every decoder block.
  ModelSpec part = model;
  part.layers = 1;
  part.decoder_layers = 1;
  part.decoder_context = model.tokens_of_decoder();
  const ParameterTotals one = added_up(part, tensor_ranks);
  part.layers = 2;
  const ParameterTotals two = added_up(part, tensor_ranks);
  const ParameterTotals encoder = extended(one, model.layers - 1, two, one);
  if (model.kind != ModelKind::t5) return encoder;
  part.decoder_layers = 2;
  return extended(encoder, model.blocks_of_decoder() - 1, added_up(part, tensor_ranks), two);
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

/// Totals of one part, at a cost that does not grow with the layers: every block has the same parameters. They follow
/// from those of two smaller models, with one and with two blocks in each part.
ParameterTotals part_totals(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t split = split_part(model, share.parts, share.split);
  const bool decodes = split > 0 && share.part >= split;
  const std::int64_t encoders = split > 0 ? split : share.parts, decoders = share.parts - split;
  ModelSpec few = model;
  few.decoder_context = model.tokens_of_decoder();
  few.layers = encoders;
  few.decoder_layers = decoders;
  const ParameterTotals one = added_up(few, share);
  (decodes ? few.decoder_layers.emplace() : few.layers) = 2 * (decodes ? decoders : encoders);
  const ParameterTotals two = added_up(few, share);
  const std::int64_t blocks = decodes ? model.blocks_of_decoder() / decoders : model.layers / encoders;
  return extended(one, blocks - 1, two, one);
}

/// A T5 in one part: of each parameter the share of one tensor-parallel rank.
ParameterTotals undivided_totals(const ModelSpec& model, std::int64_t tensor_ranks) {
  const ModelShare whole{.tensor_ranks = tensor_ranks};
  ModelSpec few = model;
  few.decoder_context = model.tokens_of_decoder();
  few.layers = 1;
  few.decoder_layers = 1;
  const ParameterTotals one = added_up(few, whole);
  few.layers = 2;
  const ParameterTotals two = added_up(few, whole);
  const ParameterTotals encoder = extended(one, model.layers - 1, two, one);
  few.decoder_layers = 2;
  return extended(encoder, model.blocks_of_decoder() - 1, added_up(few, whole), two);
}

}  // namespace

ParameterTotals fullest_rank_totals(const ModelSpec& model, const ParallelSpec& parallel) {
  const std::int64_t stages = parallel.pipeline, parts = stages * parallel.virtual_pipeline;
  if (!is_transformer(model.kind) || !check_division(model, parallel).empty()) return parameter_totals(model);
  // A T5 in one part has both stacks.
  if (model.kind == ModelKind::t5 && parts == 1) return undivided_totals(model, parallel.tensor);
  ParameterTotals most;
  // Stages in between hold blocks alone: the fullest has an embedding or the head.
  for (const std::int64_t stage :
       {std::int64_t{0}, split_part(model, parts, parallel.split_stage.value_or(0)), stages - 1}) {
    ParameterTotals sum;
    for (std::int64_t chunk = 0; chunk < parallel.virtual_pipeline; ++chunk) {
      const ParameterTotals part = part_totals(model, share_under(model, parallel, 0, stage, chunk));
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
  switch (model.kind) {
    case ModelKind::gpt:
    case ModelKind::llama:
      return decoder_shapes(model, tensor_ranks);
    case ModelKind::bert:
      return bert_shapes(model, tensor_ranks);
    case ModelKind::t5:
      return t5_shapes(model, tensor_ranks);
    case ModelKind::mlp:
      return mlp_shapes(model);
    case ModelKind::linear:
      break;
  }
  return linear_shapes(model);
}

}  // namespace accrue
