// SPDX-License-Identifier: Apache-2.0
// Where a model's parameters stand in other tools' weights, and what a rank reads of them. Values by hand.
#include <QTest>
#include <algorithm>
#include <map>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/weights/weight_names.h"
#include "support/test_program.h"

namespace test_weight_names {

using namespace accrue;

namespace {

ModelSpec small_llama() {
  ModelSpec model{.kind = ModelKind::llama, .layers = 2, .width = 8, .heads = 4, .context = 6, .vocabulary = 5};
  model.kv_heads = 2;
  model.mlp_width = 12;
  return model;
}

ParameterShape shape_of(const ModelSpec& model, const std::string& name) {
  const auto shapes = parameter_shapes(model);
  const auto found = std::ranges::find(shapes, name, &ParameterShape::name);
  return found == shapes.end() ? ParameterShape() : *found;
}

ParameterShare share_of(const ModelSpec& model, const std::string& name, std::int64_t rank) {
  const auto shares = parameter_shares(model, {.tensor_ranks = 2, .tensor_rank = rank});
  const auto found = std::ranges::find(shares, name, &ParameterShare::name);
  return found == shares.end() ? ParameterShare() : *found;
}

}  // namespace

class TestWeightNames : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Two groups of two heads of two numbers: per group four rows of queries, two of keys, two of values.
  void grouped_queries_keys_and_values_alternate() {
    const std::string q = "model.layers.1.self_attn.q_proj.weight", k = "model.layers.1.self_attn.k_proj.weight",
                      v = "model.layers.1.self_attn.v_proj.weight";
    const std::vector<WeightPiece> expected = {{q, 0, 4, 0, false}, {k, 4, 2, 0, false},  {v, 6, 2, 0, false},
                                               {q, 8, 4, 4, false}, {k, 12, 2, 2, false}, {v, 14, 2, 2, false}};
    const ModelSpec model = small_llama();
    QVERIFY(weight_pieces(WeightNames::llama, model, shape_of(model, "blocks.1.attention.grouped_qkv.weight")) ==
            expected);
  }

  void a_rank_reads_its_groups() {
    const ModelSpec model = small_llama();
    const std::string name = "blocks.0.attention.grouped_qkv.weight", prefix = "model.layers.0.self_attn.";
    const auto reads = weight_reads(WeightNames::llama, model, shape_of(model, name), share_of(model, name, 1));
    const std::vector<WeightRead> expected = {{prefix + "q_proj.weight", false, 4, 4, 0, 8, 0},
                                              {prefix + "k_proj.weight", false, 2, 2, 0, 8, 4},
                                              {prefix + "v_proj.weight", false, 2, 2, 0, 8, 6}};
    QVERIFY(reads == expected);
  }

  // Gate [12, 8] and the other layer's [12, 8] in one matrix: of each a rank has half.
  void a_rank_reads_half_of_both_inner_layers() {
    const ModelSpec model = small_llama();
    const std::string name = "blocks.0.mlp.gate_up.weight";
    const auto reads = weight_reads(WeightNames::llama, model, shape_of(model, name), share_of(model, name, 1));
    const std::vector<WeightRead> expected = {{"model.layers.0.mlp.gate_proj.weight", false, 6, 6, 0, 8, 0},
                                              {"model.layers.0.mlp.up_proj.weight", false, 6, 6, 0, 8, 6}};
    QVERIFY(reads == expected);
  }

  // GPT-2 stores [inputs, outputs]: rank 1 of two reads the second half of the columns of each third.
  void gpt2_is_read_by_columns() {
    const ModelSpec model{.kind = ModelKind::gpt, .layers = 1, .width = 8, .heads = 4, .context = 6, .vocabulary = 5};
    const std::string name = "blocks.0.attention.qkv.weight", theirs = "transformer.h.0.attn.c_attn.weight";
    const auto reads = weight_reads(WeightNames::gpt2, model, shape_of(model, name), share_of(model, name, 1));
    const std::vector<WeightRead> expected = {
        {theirs, true, 4, 4, 0, 8, 0}, {theirs, true, 12, 4, 0, 8, 4}, {theirs, true, 20, 4, 0, 8, 8}};
    QVERIFY(reads == expected);
    const auto down = weight_reads(WeightNames::gpt2, model, shape_of(model, "blocks.0.mlp.down.weight"),
                                   share_of(model, "blocks.0.mlp.down.weight", 1));
    const std::vector<WeightRead> columns = {{"transformer.h.0.mlp.c_proj.weight", true, 0, 8, 16, 16, 0}};
    QVERIFY(down == columns);
  }

  // Five tokens in rows for two ranks: rank 1 holds three rows, of which the file has two.
  void rows_that_pad_a_table_are_not_read() {
    ModelSpec model = small_llama();
    model.vocabulary_multiple = 2;
    const std::string name = "token_embedding.weight";
    const auto reads = weight_reads(WeightNames::llama, model, shape_of(model, name), share_of(model, name, 1));
    const std::vector<WeightRead> expected = {{"model.embed_tokens.weight", false, 3, 2, 0, 8, 0}};
    QVERIFY(reads == expected);
  }

  void every_tensor_of_a_llama_is_needed_once() {
    std::map<std::string, std::vector<std::int64_t>> needed;
    for (const NeededTensor& each : needed_tensors(WeightNames::llama, small_llama())) {
      QVERIFY2(needed.try_emplace(each.name, each.shape).second, each.name.c_str());
      QVERIFY(!each.more_rows);
    }
    using Shape = std::vector<std::int64_t>;
    QCOMPARE(needed.size(), std::size_t{3 + 2 * 9});
    QVERIFY(needed.at("model.layers.0.self_attn.k_proj.weight") == (Shape{4, 8}));
    QVERIFY(needed.at("model.layers.1.mlp.down_proj.weight") == (Shape{8, 12}));
    QVERIFY(needed.at("model.norm.weight") == (Shape{8}));
    QVERIFY(needed.at("lm_head.weight") == (Shape{5, 8}));
  }
};

ACCRUE_TEST_MAIN(TestWeightNames)

}  // namespace test_weight_names
#include "test_weight_names.moc"
