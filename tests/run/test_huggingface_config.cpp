// SPDX-License-Identifier: Apache-2.0
// config.json of transformers: the keys that follow, what is refused, and what is written. Names and defaults are those
// of transformers 5.17. And what an export puts beside it.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "accrue/run/base/sha256.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/weights/huggingface_config.h"
#include "accrue/run/weights/huggingface_export.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/zero_weights.h"

namespace test_huggingface_config {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

const std::string sizes =
    R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":99,"intermediate_size":96)";

std::string llama(const std::string& more) {
  return R"({"model_type":"llama",)" + sizes + (more.empty() ? "" : ",") + more + "}";
}

namespace fs = std::filesystem;

/// A folder of weights with a tokenizer, a run that has ended, one from which it started, and its dataset; and in them
/// what the words say.
void make_places(const fs::path& at, const QStringList& words) {
  const auto says = [&words](const char* word) { return words.contains(QLatin1String(word)); };
  RunSpec spec;
  spec.model = {.kind = ModelKind::gpt, .layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 16};
  test::write_zeros(at / "run/final/model.safetensors", "", parameter_shapes(spec.model));
  fs::create_directories(at / "between");
  fs::create_directories(at / "theirs");
  fs::create_directories(at / "here");
  if (says("published") || says("between")) {
    std::ofstream(at / "theirs/config.json") << R"({"bos_token_id":1,"eos_token_id":[2,3],"pad_token_id":null})";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json", "README.md"})
      std::ofstream(at / "theirs" / name) << R"({"eos_token_id":[2,4]})";
    spec.model.init = WeightInit::checkpoint;
    spec.model.weights = at / "theirs";
  }
  std::ofstream(at / "between/spec.toml") << write_spec(spec);
  if (says("between")) spec.model.weights = at / "between";
  if (says("moved")) fs::rename(at / "theirs", at / "away");
  if (says("dataset")) {
    spec.data.kind = DataKind::indexed;
    spec.data.paths = {at / "data"};
    for (const char* name : {"gpt2-vocab.json", "gpt2-merges.txt"}) std::ofstream(at / name) << name;
    DatasetSidecar sidecar{.tokenizer = "bpe", .files = {}, .special = {.vocabulary = 16}, .end_of_document = 5};
    for (const char* name : {"gpt2-vocab.json", "gpt2-merges.txt"}) sidecar.files.push_back({name, sha256_hex(name)});
    if (says("wordpiece")) {
      sidecar.tokenizer = "wordpiece";
      sidecar.files = {{"bert-vocab.txt", sha256_hex("bert")}};
      std::ofstream(at / "bert-vocab.txt") << "bert";
    }
    QVERIFY(write_sidecar(at / "data", sidecar).has_value());
    if (says("changed")) std::ofstream(at / "gpt2-merges.txt") << "other";
    if (says("lost")) fs::remove(at / "gpt2-merges.txt");
    if (says("folder")) fs::remove(at / "gpt2-merges.txt"), fs::create_directory(at / "gpt2-merges.txt");
    if (says("beside")) std::ofstream(at / "here/gpt2-merges.txt") << "another's";
  }
  std::ofstream(at / "run/spec.toml") << write_spec(spec);
}

}  // namespace

class TestHuggingfaceConfig : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_gpt2_of_defaults_is_the_smallest_gpt2() {
    const auto read = read_huggingface_config(R"({"model_type":"gpt2"})", "config.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
    const ModelSpec expected{.kind = ModelKind::gpt, .layers = 12, .width = 768, .heads = 12, .vocabulary = 50257};
    QVERIFY(read->model == expected);
    QVERIFY(is_gpt2_form(block_form(read->model)));
    QCOMPARE(read->positions, std::int64_t{1024});
  }

  void settings_become_keys_data() {
    const Rows<QString, QString> row;
    row("as many key heads as heads", "", "kv 8 head 8 eps 1e-06 base 10000 bias 0 0 tied 0");
    row("groups", R"("num_key_value_heads":2,"rms_norm_eps":1e-05)",
        "kv 2 head 8 eps 1e-05 base 10000 bias 0 0 tied 0");
    row("a head of its own width", R"("head_dim":16)", "kv 8 head 16 eps 1e-06 base 10000 bias 0 0 tied 0");
    row("biases and a tied head", R"("attention_bias":true,"mlp_bias":true,"tie_word_embeddings":true)",
        "kv 8 head 8 eps 1e-06 base 10000 bias 1 1 tied 1");
    row("rotary positions as transformers 4 says them", R"("rope_theta":500000.0,"rope_scaling":null)",
        "kv 8 head 8 eps 1e-06 base 500000 bias 0 0 tied 0");
    row("and as transformers 5 does", R"("rope_parameters":{"rope_theta":500000.0,"rope_type":"default"})",
        "kv 8 head 8 eps 1e-06 base 500000 bias 0 0 tied 0");
    row("Llama 3's scaling",
        R"("rope_theta":5e5,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
        R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})",
        "kv 8 head 8 eps 1e-06 base 500000 bias 0 0 tied 0 scaled 8 1 4 8192");
  }
  void settings_become_keys() {
    const auto [more, expected] = current_row<QString, QString>();
    const auto read = read_huggingface_config(llama(more.toStdString()), "config.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
    const BlockForm form = block_form(read->model);
    QString got = QStringLiteral("kv %1 head %2 eps %3 base %4 bias %5 %6 tied %7")
                      .arg(form.kv_heads)
                      .arg(form.head_width)
                      .arg(form.norm_eps)
                      .arg(read->model.rotary_base)
                      .arg(form.bias)
                      .arg(form.qkv_bias)
                      .arg(form.tied_head);
    if (!read->model.rotary_scaling.empty()) got += QStringLiteral(" scaled");
    for (const double each : read->model.rotary_scaling) got += QStringLiteral(" %1").arg(each);
    QCOMPARE(got, expected);
  }

  void what_no_block_has_is_refused_by_name_data() {
    const Rows<QString, QString> row;
    const auto said = [&row](const char* name, const std::string& config, const char* message) {
      row(name, QString::fromStdString(config), message);
    };
    said("no JSON", "{", "this is no JSON object");
    said("a list", "[]", "this is no JSON object");
    said("no type", "{}", "there is no model_type");
    said("another type", R"({"model_type":"mamba"})", "model_type is \"mamba\"");
    said("a missing size", R"({"model_type":"llama"})", "there is no num_hidden_layers");
    said("a size that is a text", R"({"model_type":"gpt2","n_layer":"12"})", "n_layer is not a whole number");
    said("a size below zero", R"({"model_type":"gpt2","n_layer":-1})", "n_layer is not a whole number");
    said("a size beyond any", R"({"model_type":"gpt2","n_layer":1e300})", "n_layer is not a whole number");
    said("no layers", R"({"model_type":"gpt2","n_layer":0})", "model.layers");
    said("another activation", llama(R"("hidden_act":"gelu")"), "hidden_act is \"gelu\"");
    said("half of the biases", llama(R"("attention_bias":true)"), "attention_bias and mlp_bias differ");
    said("other rotary positions", llama(R"("rope_scaling":{"type":"yarn","factor":2.0})"),
         "rotary positions of type \"yarn\"");
    said("scores by layer", R"({"model_type":"gpt2","scale_attn_by_inverse_layer_idx":true})",
         "scale_attn_by_inverse_layer_idx = true");
  }
  void what_no_block_has_is_refused_by_name() {
    const auto [config, message] = current_row<QString, QString>();
    const auto read = read_huggingface_config(config.toStdString(), "DIR/config.json");
    QVERIFY(!read.has_value());
    QCOMPARE(read.error().code, ErrorCode::data);
    const QString text = QString::fromStdString(read.error().text());
    QVERIFY2(text.contains(message) && text.contains(QStringLiteral("DIR/config.json")), qPrintable(text));
  }

  void what_is_written_is_read_again_data() {
    const Rows<QString> row;
    for (const char* each : {"gpt2", "llama", "grouped", "qwen2", "scaled", "tied"}) row(each, each);
  }
  void what_is_written_is_read_again() {
    const auto [name] = current_row<QString>();
    ModelSpec model{.kind = name == QStringLiteral("gpt2") ? ModelKind::gpt : ModelKind::llama,
                    .layers = 3,
                    .width = 32,
                    .heads = 4,
                    .context = 20,
                    .vocabulary = 77};
    if (name == QStringLiteral("grouped")) model.kv_heads = 2;
    if (name == QStringLiteral("qwen2")) model.qkv_bias = true;
    if (name == QStringLiteral("scaled")) model.rotary_scaling = {8, 1, 4, 16};
    if (name == QStringLiteral("tied")) model.tied_head = true;
    const auto text = write_huggingface_config(model);
    QVERIFY2(text.has_value(), text ? "" : text.error().text().c_str());
    const auto read = read_huggingface_config(*text, "config.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
    QVERIFY(block_form(read->model) == block_form(model));
    QCOMPARE(read->model.layers, model.layers);
    QCOMPARE(read->model.vocabulary, model.vocabulary);
    QCOMPARE(read->positions, model.context);
    QVERIFY(read->model.rotary_scaling == model.rotary_scaling);
  }

  void a_form_that_transformers_lacks_is_not_written() {
    ModelSpec model{.kind = ModelKind::gpt};
    model.positions = PositionKind::rotary;
    const auto text = write_huggingface_config(model);
    QVERIFY(!text.has_value());
    QVERIFY(text.error().message.find("model.norm and model.positions") != std::string::npos);
  }

  void a_tokenizer_goes_along_if_it_is_known_data() {
    const Rows<QString, QString, QString, QString> row;
    const char* const theirs =
        "config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json";
    const char* const alone = "config.json generation_config.json model.safetensors";
    const char* const made = "config.json generation_config.json merges.txt model.safetensors vocab.json";
    row("of the weights that a run started from", "published dataset", theirs, "the tokenizer is that of AT/theirs",
        "1 [2,4]");
    row("through a run between", "between", theirs, "the tokenizer is that of AT/theirs", "1 [2,4]");
    row("of the dataset", "dataset", made, "the tokenizer is gpt2-vocab.json, which made the run's tokens", "null 5");
    row("if the weights are gone", "published moved dataset", made,
        "the tokenizer is gpt2-vocab.json, which made the run's tokens", "null 5");
    row("changed", "dataset changed", alone,
        "no tokenizer: gpt2-merges.txt, which made the run's tokens, has changed; copy it as it was", "null 5");
    row("gone", "dataset lost", alone,
        "no tokenizer: gpt2-merges.txt, which made the run's tokens, is gone; copy it as it was", "null 5");
    row("not a file", "dataset folder", alone,
        "no tokenizer: gpt2-merges.txt, which made the run's tokens, cannot be read; copy it as it was", "null 5");
    row("and not another's of the same name", "dataset beside", made,
        "the tokenizer is gpt2-vocab.json, which made the run's tokens", "null 5");
    row("a WordPiece", "dataset wordpiece", alone,
        "no tokenizer: beside such a model transformers reads no bert-vocab.txt, which made the run's tokens; load it "
        "as a BertTokenizer",
        "null 5");
    row("not known", "", alone, "no tokenizer is known: copy the files of the one that made the run's tokens",
        "null null");
  }
  void a_tokenizer_goes_along_if_it_is_known() {
    const auto [words, files, summary, tokens] = current_row<QString, QString, QString, QString>();
    QTemporaryDir temporary;
    const QString at = temporary.path(), out = temporary.filePath(QStringLiteral("out"));
    make_places(at.toStdString(), words.split(' '));
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(at + "/here"));
    const auto go_back = qScopeGuard([&before] { QDir::setCurrent(before); });
    const auto written = export_huggingface((at + "/run").toStdString(), out.toStdString());
    QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
    QCOMPARE(QString::fromStdString(written->tokenizer).replace(at, QStringLiteral("AT")), summary);
    QCOMPARE(QDir(out).entryList(QDir::Files).join(' '), files);
    QFile config(out + "/config.json");
    QVERIFY(config.open(QIODevice::ReadOnly));
    const QJsonObject said = QJsonDocument::fromJson(config.readAll()).object();
    const auto text = [&said](const char* key) {
      return QJsonDocument(QJsonArray{said[QLatin1String(key)]}).toJson(QJsonDocument::Compact).chopped(1).mid(1);
    };
    QCOMPARE(QString(text("bos_token_id") + ' ' + text("eos_token_id")), tokens);
    QVERIFY(!export_huggingface((at + "/run").toStdString(), out.toStdString()).has_value());  // never over another
  }

  void an_export_that_is_given_up_leaves_what_others_wrote() {
    QTemporaryDir temporary;
    const QString at = temporary.path(), empty = temporary.filePath(QStringLiteral("empty"));
    make_places(at.toStdString(), {});
    QVERIFY(QDir().mkdir(empty));
    int asked = 0;
    const auto given_up = [&] {
      if (asked == 0) std::ofstream((empty + "/notes.txt").toStdString()) << "another program's";
      return ++asked < 3;
    };
    const auto written = export_huggingface((at + "/run").toStdString(), empty.toStdString(), given_up, 200);
    QVERIFY(!written && written.error().code == ErrorCode::cancelled);
    QCOMPARE(QDir(empty).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot),
             {QStringLiteral("notes.txt")});
  }

  void a_refused_export_makes_no_folder() {
    QTemporaryDir temporary;
    make_places(temporary.path().toStdString(), {});
    const fs::path at = temporary.path().toStdString();
    RunSpec spec = read_spec(at / "run/spec.toml").spec;
    spec.model.positions = PositionKind::rotary;
    std::ofstream(at / "run/spec.toml") << write_spec(spec);
    QVERIFY(!export_huggingface(at / "run", at / "x/y"));
    QVERIFY(!fs::exists(at / "x"));
  }
};

ACCRUE_TEST_MAIN(TestHuggingfaceConfig)

}  // namespace test_huggingface_config
#include "test_huggingface_config.moc"
