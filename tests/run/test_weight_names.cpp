// SPDX-License-Identifier: Apache-2.0
// Where a model's parameters stand in other tools' weights, and what a rank reads of them, with values by hand; and
// which folder of a run a new run starts from.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <fstream>
#include <map>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_lock.h"
#include "accrue/run/weights/start_weights.h"
#include "accrue/run/weights/weight_names.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/zero_weights.h"

namespace test_weight_names {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace fs = std::filesystem;

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

/// A checkpoint as one rank writes it, without its optimizer.
void write_checkpoint(const fs::path& folder, const std::vector<ParameterShape>& parameters = parameter_shapes({})) {
  const std::uintmax_t bytes = test::write_zeros(folder / "shard-0.safetensors", "parameters.", parameters);
  std::ofstream(folder / "manifest.json") << R"({"files":[{"name":"shard-0.safetensors","bytes":)" << bytes << "}]}";
}

/// A run of the default model in `dir` with checkpoints after two and four updates, and more as the words say.
void make_run(const fs::path& dir, const QStringList& words) {
  fs::create_directories(dir / "checkpoints" / ".step-6.abc.part");
  std::ofstream(dir / "spec.toml") << write_spec({});
  if (words.contains(QStringLiteral("none"))) return;
  for (const char* name : {"step-2", "step-4"}) write_checkpoint(dir / "checkpoints" / name);
  if (words.contains(QStringLiteral("final")))
    test::write_zeros(dir / "final" / "model.safetensors", "", parameter_shapes({}));
  if (words.contains(QStringLiteral("unfinished"))) fs::remove(dir / "checkpoints" / "step-4" / "manifest.json");
  if (words.contains(QStringLiteral("shortened")))
    fs::resize_file(dir / "checkpoints" / "step-4" / "shard-0.safetensors", 20);
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

  void a_new_run_starts_from_what_a_run_left_data() {
    const Rows<QString, QString, QString> row;
    row("final weights", "final", "RUN", "RUN");
    row("the newest checkpoint of a run that was stopped", "", "RUN/", "RUN/checkpoints/step-4");
    row("an older one if it is not whole", "shortened", "RUN", "RUN/checkpoints/step-2");
    row("or has no manifest", "unfinished", "RUN", "RUN/checkpoints/step-2");
    row("a checkpoint by its name", "final", "RUN/checkpoints/step-2/", "RUN/checkpoints/step-2");
    row("one that a link names", "final", "LINK", "RUN/checkpoints/step-4");
    row("one that is gone", "final", "RUN/checkpoints/step-9",
        "there is no such checkpoint; name another folder step-N beside it, or the run's folder (found "
        "RUN/checkpoints/step-9)");
    row("none", "none", "RUN",
        "the run has neither final weights nor a complete checkpoint; resume it to its end (found "
        "RUN)");
    row("one that is not whole, by its name", "shortened", "RUN/checkpoints/step-4",
        "the checkpoint is incomplete: it lacks a file, or a part of one, that manifest.json lists; name another "
        "folder "
        "step-N beside it, or the run's folder (found RUN/checkpoints/step-4/shard-0.safetensors)");
    row("a run that trains", "trains", "RUN",
        "the run is still training, so its checkpoints come and go; wait until it has ended, or stop it (found RUN)");
    row("its checkpoint", "trains", "RUN/checkpoints/step-2",
        "the run is still training, so its checkpoints come and go; wait until it has ended, or stop it (found RUN)");
  }
  void a_new_run_starts_from_what_a_run_left() {
    auto [words, named, expected] = current_row<QString, QString, QString>();
    QTemporaryDir temporary;
    const QString run = temporary.filePath(QStringLiteral("run"));
    make_run(run.toStdString(), words.split(' '));
    const QString link = temporary.filePath(QStringLiteral("best"));
    QVERIFY(QFile::link(run + "/checkpoints/step-4", link));
    Result<RunLock> lock;
    if (words == QStringLiteral("trains")) lock = RunLock::take(run.toStdString());
    RunSpec spec;
    spec.model.init = WeightInit::checkpoint;
    spec.model.weights = named.replace(QStringLiteral("RUN"), run).replace(QStringLiteral("LINK"), link).toStdString();
    const SpecWithWeights start = with_weights(spec, "/");
    const std::string found = start.findings.empty() ? start.spec.model.weights : start.findings.front().text();
    const QString prefix = start.findings.empty() ? QString() : QStringLiteral("error: model.weights: ");
    QCOMPARE(QString::fromStdString(found), prefix + expected.replace(QStringLiteral("RUN"), run));
  }

  // Positions are as many as the longer of both texts has; rows of tokens that ranks padded are no part of the model.
  void a_checkpoint_has_every_row_that_a_model_needs_data() {
    const Rows<int, QString> row;
    row("the same", 12, "");
    row("fewer positions", 8, "");
    row("more positions", 16,
        "error: model.weights: have another shape: position_embedding.weight (found F32 [12, 8] instead of [16, 8])");
  }
  void a_checkpoint_has_every_row_that_a_model_needs() {
    const auto [decoder_context, finding] = current_row<int, QString>();
    QTemporaryDir temporary;
    const fs::path run = temporary.path().toStdString();
    RunSpec spec;
    spec.model = {.kind = ModelKind::t5, .layers = 1, .width = 8, .heads = 2, .context = 6, .vocabulary = 50};
    spec.model.decoder_context = 12;
    spec.model.vocabulary_multiple = 4;
    write_checkpoint(run / "checkpoints/step-2", parameter_shapes(spec.model, 4));
    std::ofstream(run / "spec.toml") << write_spec(spec);
    spec.model.init = WeightInit::checkpoint;
    spec.model.weights = run;
    spec.model.decoder_context = decoder_context;
    const auto findings = with_weights(spec, "/").findings;
    QCOMPARE(QString::fromStdString(findings.empty() ? "" : findings.front().text()), finding);
  }
};

ACCRUE_TEST_MAIN(TestWeightNames)

}  // namespace test_weight_names
#include "test_weight_names.moc"
