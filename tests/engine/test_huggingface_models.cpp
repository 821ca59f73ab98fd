// SPDX-License-Identifier: Apache-2.0
// Models of the real transformers, read as a run reads them: the same logits, whole and divided. What has no Python
// environment is skipped, and says how to make it.
#include <ATen/ATen.h>

#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/models/model_part.h"
#include "accrue/run/weights/start_weights.h"
#include "models/weight_init.h"
#include "support/places.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_huggingface_models {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;
using accrue::test::sourcePath;

namespace {

ModelSpec filled(const QString& folder) {
  RunSpec spec;
  spec.model.init = WeightInit::checkpoint;
  spec.model.weights = folder.toStdString();
  spec.model.context = 24;
  const SpecWithWeights result = with_weights(spec, "/");
  for (const Finding& finding : result.findings)
    if (finding.severity == Severity::error) qWarning("%s", finding.text().c_str());
  return has_errors(result.findings) ? ModelSpec() : result.spec.model;
}

}  // namespace

class TestHuggingfaceModels : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;

  QString folder(const QString& name) const { return temporary_.filePath(name); }

 private Q_SLOTS:
  void initTestCase() {
    const QString python = sourcePath("build/python-tools/bin/python");
    if (!QFile::exists(python))
      QSKIP("no Python environment with transformers: tests/support/python_tools.py makes it");
    QProcess make;
    make.start(python, {sourcePath("tests/support/make_huggingface_models.py"), temporary_.path()});
    QVERIFY2(make.waitForFinished(240000) && make.exitCode() == 0, make.readAllStandardError().constData());
  }

  void logits_are_those_of_transformers_data() {
    const Rows<QString> row;
    for (const char* name :
         {"gpt2", "gpt2-other", "llama", "llama-grouped", "llama-tied", "llama-biased", "mistral", "qwen2"})
      row(name, name);
  }
  void logits_are_those_of_transformers() {
    const auto [name] = current_row<QString>();
    const ModelSpec model = filled(folder(name));
    QCOMPARE(model.vocabulary, 71);
    const auto said = read_archive(folder(name + ".safetensors").toStdString());
    QVERIFY2(said.has_value(), said ? "" : said.error().text().c_str());
    const at::NoGradGuard no_grad;
    const auto part = make_model(model, 1);
    part->eval();
    const at::Tensor tokens = *said->find("tokens"), theirs = *said->find("logits");
    const at::Tensor ours = part->logits(part->forward({.inputs = tokens, .targets = tokens, .samples = 2}, {}));
    QCOMPARE(ours.sizes(), theirs.sizes());
    const double off = (ours - theirs).abs().max().item<double>(), size = theirs.abs().max().item<double>();
    QVERIFY2(off <= 1e-5 * size, qPrintable(QString::number(off) + " of " + QString::number(size)));
  }

  // By hand: a rank's parameters are the parts of the whole model's that its share names.
  void a_rank_reads_its_own_part_data() { logits_are_those_of_transformers_data(); }
  void a_rank_reads_its_own_part() {
    const auto [name] = current_row<QString>();
    const ModelSpec model = filled(folder(name));
    const auto whole = make_model(model, 1);
    const auto parameters = whole->named_parameters();
    const std::int64_t ranks = model.kv_heads.value_or(model.heads) % 2 == 0 ? 2 : 1;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      for (const std::int64_t part : {0, 1}) {
        ModelSpec two = model;
        two.layers = 2;               // so that two stages have equally many
        two.vocabulary_multiple = 2;  // 71 tokens in 72 rows
        const ModelShare share{.tensor_ranks = ranks, .tensor_rank = rank, .parts = 2, .part = part};
        const auto own = make_model_part(two, 1, share, {});
        const auto shares = parameter_shares(two, share);
        QCOMPARE(own->parameters().size(), shares.size());
        for (std::size_t i = 0; i < shares.size(); ++i)
          QVERIFY2(at::equal(own->parameters()[i], part_of(parameters[shares[i].name], shares[i])),
                   shares[i].name.c_str());
      }
  }
};

ACCRUE_TEST_MAIN(TestHuggingfaceModels)

}  // namespace test_huggingface_models
#include "test_huggingface_models.moc"
