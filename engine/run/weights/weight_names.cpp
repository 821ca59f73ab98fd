// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/weights/weight_names.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "accrue/run/fields/block_form.h"

namespace accrue {

namespace {

using Pieces = std::vector<WeightPiece>;

/// "blocks.3.mlp.up.weight" -> "h.3." and "mlp.up.weight"; a parameter outside the blocks has an empty first part.
struct BlockName {
  std::string index;
  std::string rest;
};
BlockName split_name(const std::string& name) {
  constexpr std::string_view blocks = "blocks.";
  if (!name.starts_with(blocks)) return {{}, name};
  const std::size_t dot = name.find('.', blocks.size());
  return {name.substr(blocks.size(), dot - blocks.size()), name.substr(dot + 1)};
}

/// "norm_1.weight" -> "norm_1" and ".weight".
std::pair<std::string, std::string> split_kind(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return {name.substr(0, dot), name.substr(dot)};
}

std::string gpt2_name(const std::string& ours) {
  static const std::map<std::string, std::string, std::less<>> in_block = {
      {"norm_1", "ln_1"}, {"attention.qkv", "attn.c_attn"}, {"attention.output", "attn.c_proj"},
      {"norm_2", "ln_2"}, {"mlp.up", "mlp.c_fc"},           {"mlp.down", "mlp.c_proj"}};
  static const std::map<std::string, std::string, std::less<>> outside = {{"token_embedding", "transformer.wte"},
                                                                          {"position_embedding", "transformer.wpe"},
                                                                          {"final_norm", "transformer.ln_f"},
                                                                          {"head", "lm_head"}};
  const BlockName at = split_name(ours);
  const auto [layer, kind] = split_kind(at.rest);
  if (at.index.empty()) return outside.at(layer) + kind;
  return "transformer.h." + at.index + "." + in_block.at(layer) + kind;
}

Pieces gpt2_pieces(const ParameterShape& parameter) {
  const std::string name = gpt2_name(parameter.name);
  // Layers of blocks are stored as [inputs, outputs].
  const bool transposed = name.find(".c_") != std::string::npos && parameter.shape.size() == 2;
  return {{name, 0, parameter.shape.front(), 0, transposed}};
}

/// Rows of queries, keys and values: in three runs, or in three for each group.
Pieces attention_pieces(const std::string& prefix, const std::string& kind, const BlockForm& form) {
  const std::int64_t groups = form.has_groups() ? form.kv_heads : 1;
  const std::int64_t queries = form.query_width() / groups, keys = form.kv_width() / groups;
  Pieces pieces;
  std::int64_t row = 0;
  for (std::int64_t group = 0; group < groups; ++group)
    for (const auto& [name, rows] :
         {std::pair("q_proj", queries), std::pair("k_proj", keys), std::pair("v_proj", keys)}) {
      pieces.push_back({prefix + "self_attn." + name + kind, row, rows, group * rows, false});
      row += rows;
    }
  return pieces;
}

Pieces llama_pieces(const ParameterShape& parameter, const BlockForm& form) {
  static const std::map<std::string, std::string, std::less<>> names = {{"norm_1", "input_layernorm"},
                                                                        {"attention.output", "self_attn.o_proj"},
                                                                        {"norm_2", "post_attention_layernorm"},
                                                                        {"mlp.down", "mlp.down_proj"},
                                                                        {"token_embedding", "model.embed_tokens"},
                                                                        {"final_norm", "model.norm"},
                                                                        {"head", "lm_head"}};
  const BlockName at = split_name(parameter.name);
  const auto [layer, kind] = split_kind(at.rest);
  const std::int64_t rows = parameter.shape.front();
  const std::string prefix = at.index.empty() ? "" : "model.layers." + at.index + ".";
  if (layer == "attention.qkv" || layer == "attention.grouped_qkv") return attention_pieces(prefix, kind, form);
  if (layer == "mlp.gate_up")
    return {{prefix + "mlp.gate_proj" + kind, 0, rows / 2, 0, false},
            {prefix + "mlp.up_proj" + kind, rows / 2, rows / 2, 0, false}};
  return {{prefix + names.at(layer) + kind, 0, rows, 0, false}};
}

/// Consecutive rows of the undivided parameter that a rank holds, and where they begin in its own.
struct RowRun {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t to = 0;
};

/// Rows are all dims of the view but a matrix's last: of packed queries, keys and values [3, D, D] a rank has three
/// runs.
std::vector<RowRun> row_runs(const ParameterShare& share, std::size_t row_dims) {
  std::vector<RowRun> runs = {{0, 1, 0}};
  for (std::size_t dim = 0; dim < row_dims; ++dim) {
    std::vector<RowRun> next;
    std::int64_t to = 0;
    for (const RowRun& run : runs)
      for (std::int64_t row = run.first; row < run.first + run.rows; ++row) {
        next.push_back({row * share.whole[dim] + share.offset[dim], share.extent[dim], to});
        to += share.extent[dim];
      }
    runs = std::move(next);
  }
  return runs;
}

}  // namespace

Pieces weight_pieces(WeightNames names, const ModelSpec& model, const ParameterShape& parameter) {
  Pieces pieces = {{parameter.name, 0, parameter.shape.front(), 0, false}};
  if (names == WeightNames::gpt2) pieces = gpt2_pieces(parameter);
  if (names == WeightNames::llama) pieces = llama_pieces(parameter, block_form(model));
  // Rows that pad a table stand in no file.
  if (parameter.by_token) pieces.front().rows = std::min(pieces.front().rows, model.vocabulary);
  return pieces;
}

std::vector<NeededTensor> needed_tensors(WeightNames names, const ModelSpec& model) {
  std::vector<NeededTensor> needed;
  std::map<std::string, std::size_t> known;
  for (const ParameterShape& parameter : parameter_shapes(model))
    for (const WeightPiece& piece : weight_pieces(names, model, parameter)) {
      const auto [place, added] = known.try_emplace(piece.tensor, needed.size());
      if (added) {
        needed.push_back(
            {piece.tensor, parameter.shape, parameter.name == "position_embedding.weight", parameter.by_token});
        needed.back().shape.front() = 0;
        if (piece.transposed) std::swap(needed.back().shape.front(), needed.back().shape.back());
      }
      needed[place->second].shape[piece.transposed ? 1 : 0] += piece.rows;
    }
  return needed;
}

std::vector<WeightRead> weight_reads(WeightNames names, const ModelSpec& model, const ParameterShape& parameter,
                                     const ParameterShare& share) {
  const bool matrix = parameter.shape.size() == 2;
  const std::size_t row_dims = share.whole.size() - (matrix ? 1 : 0);
  const std::int64_t column = matrix ? share.offset.back() : 0, columns = matrix ? share.extent.back() : 1;
  std::vector<WeightRead> reads;
  const Pieces pieces = weight_pieces(names, model, parameter);
  for (const RowRun& run : row_runs(share, row_dims))
    for (const WeightPiece& piece : pieces) {
      const std::int64_t first = std::max(run.first, piece.row);
      const std::int64_t last = std::min(run.first + run.rows, piece.row + piece.rows);
      if (first >= last) continue;
      reads.push_back({piece.tensor, piece.transposed, piece.from + first - piece.row, last - first, column, columns,
                       run.to + first - run.first});
    }
  return reads;
}

}  // namespace accrue
