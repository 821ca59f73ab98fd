// SPDX-License-Identifier: Apache-2.0
// Models and losses of a plug-in library, with accrue-run and real ranks: what "verify" says of their gradients, and
// that what they register beside their parameters is trained, kept and written like these.
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_own_models {

using namespace accrue::test;

class TestOwnModels : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;

  QString path(const QString& name) const { return temporary_.filePath(name); }
  Outcome accrue_run(const QStringList& arguments) const {
    return Program(programPath("accrue-run"), arguments,
                   {"XDG_RUNTIME_DIR=" + path("runtime"), "XDG_DATA_HOME=" + path("data")})
        .finish(60000);
  }
  static QStringList with_library(QStringList arguments, const QStringList& sets = {}) {
    arguments << "--plugin" << programPath("accrue_own_models_plugin.so");
    for (const QString& set : sets) arguments << "--set" << set;
    return arguments;
  }
  /// Two ranks, windows of four micro-batches of four samples.
  QString spec(const QString& model, const QString& loss = {}, const QString& rest = {}) {
    const QString file = path("spec.accrue");
    QFile out(file);
    if (!out.open(QIODevice::WriteOnly)) qFatal("no spec");
    out.write(QStringLiteral("accrue = 1\n[model]\nkind = \"mlp\"\ninputs = 3\noutputs = 2\nhidden = [8]\n"
                             "[data]\nkind = \"synthetic\"\nsamples = 160\nvalidation_fraction = 0.2\n"
                             "[optimizer]\nkind = \"sgd\"\nlr = 0.05\n"
                             "[accumulation]\nsteps = 4\nmicro_batch = 4\n[parallel]\ndata = 2\n"
                             "[megatron]\ncustom_model_provider_function = \"%1\"\n%2%3")
                  .arg(model, loss.isEmpty() ? QString() : "custom_loss_function = \"" + loss + "\"\n", rest)
                  .toUtf8());
    return file;
  }
  static QList<QJsonObject> events(const QString& dir, const char* kind) {
    QFile file(dir + "/events.jsonl");
    if (!file.open(QIODevice::ReadOnly)) return {};
    QList<QJsonObject> all;
    for (const QByteArray& line : file.readAll().split('\n'))
      if (const auto event = QJsonDocument::fromJson(line).object(); event["kind"].toString() == QLatin1String(kind))
        all << event;
    return all;
  }
  static QString weights_of(const QString& dir) {
    const auto ends = events(dir, "run_finished");
    return ends.isEmpty() ? QString() : ends.last()["weights_sha256"].toString();
  }
  static QMap<int, double> evaluations(const QString& dir) {
    QMap<int, double> losses;
    for (const QJsonObject& event : events(dir, "evaluation"))
      losses[event["update"].toInt()] = event["loss"].toDouble();
    return losses;
  }
  /// The names, with types, of an archive in the safetensors format.
  static QJsonObject tensors(const QString& file) {
    QFile archive(file);
    if (!archive.open(QIODevice::ReadOnly)) return {};
    quint64 size = 0;
    archive.read(reinterpret_cast<char*>(&size), sizeof size);
    return QJsonDocument::fromJson(archive.read(static_cast<qint64>(size))).object();
  }

  /// A whole number among the final weights.
  static int number_in(const QString& dir, const char* name) {
    const QString file = dir + "/final/model.safetensors";
    QFile archive(file);
    if (!archive.open(QIODevice::ReadOnly)) return -1;
    quint64 header = 0, number = 0;
    archive.read(reinterpret_cast<char*>(&header), sizeof header);
    const int offset = tensors(file)[QLatin1String(name)].toObject()["data_offsets"].toArray().at(0).toInt();
    archive.seek(static_cast<qint64>(sizeof header + header) + offset);
    archive.read(reinterpret_cast<char*>(&number), sizeof number);
    return static_cast<int>(number);
  }

 private Q_SLOTS:
  /// Comments name the change that removes the cause; if nothing does, no reason excuses the difference.
  void verify_gives_a_reason_that_was_shown_data() {
    const Rows<QString, QString, QString, int> row;
    row("a mean of samples", "layers", "", "exact", 0);
    row("a mean of weighed samples", "layers", "focal", "exact", 0);
    row("a frozen parameter", "frozen", "", "exact", 0);
    row("a matrix in two places", "tied", "", "exact", 0);
    row("a frozen parameter beside negatives", "frozen", "contrastive", "not coupled_samples", 3);
    // Equal in evaluation mode, in which each sample is normed by itself.
    row("batch norm", "normed", "", "close batch_norm", 0);
    row("batch norm beside dropout", "normed_and_dropped", "", "close batch_norm", 0);
    // Random numbers, and equal in evaluation mode.
    row("dropout by a function", "dropped", "", "close dropout", 0);
    // Random in evaluation mode: nothing takes it away.
    row("dropout that is never off", "restless", "", "not unrepeatable", 3);
    // A sample alone has another loss than among others.
    row("negatives of the micro-batch", "layers", "contrastive", "not coupled_samples", 3);
    row("divided by what the micro-batch holds", "layers", "focal_of_batch", "not coupled_samples", 3);
    // A second forward has another loss than the first.
    row("a loss that reads a running mean", "centred", "", "not own_buffers", 3);
  }
  void verify_gives_a_reason_that_was_shown() {
    const auto [model, loss, wanted, status] = current_row<QString, QString, QString, int>();
    const Outcome ended = accrue_run(with_library({"verify", spec(model, loss), "--updates", "3", "--json"}));
    QVERIFY2(ended.status == status, qUtf8Printable(ended.out + ended.err));
    const QJsonArray checks = QJsonDocument::fromJson(ended.out.toUtf8()).array();
    QCOMPARE(checks.size(), 3);
    for (const QJsonValue& each : checks) {
      const QJsonObject check = each.toObject();
      const QString found = check["verdict"].toString() + " " + check["reason"].toString();
      QVERIFY2(found.trimmed() == wanted, qUtf8Printable(ended.out));
      if (status != 0) QVERIFY2(check["relative"].toDouble() > 1e-4, qUtf8Printable(ended.out));
    }
  }

  /// Buffers of any type: a run that continues from a checkpoint ends with the bits of one that was not interrupted,
  /// and its evaluations are the same. Inside a window each replica has buffers of its own.
  void buffers_are_in_checkpoints_data() {
    const Rows<QString, int, QString> row;
    row("running statistics, one rank", "normed", 1, "step-6");
    row("running statistics, two ranks", "normed", 2, "step-6");
    row("a mean, a count and a mask that the loss reads", "centred", 2, "step-6");
    row("inside a window", "centred", 2, "step-6+2");
    row("a frozen parameter", "frozen", 2, "step-6");
    row("a frozen parameter, inside a window", "frozen", 2, "step-6+2");
    row("a parameter without a use, which does not decay", "spare", 2, "step-6+2");
  }
  void buffers_are_in_checkpoints() {
    const auto [model, ranks, from] = current_row<QString, int, QString>();
    const QString run = path(QStringLiteral("run%1").arg(QTest::currentDataTag())), branch = run + "-branch";
    const QString rest =
        "[checkpoint]\nevery_micro_steps = 2\nkeep = 100\n[evaluate]\nevery_updates = 1\nbatches = 2\n"
        "[run]\nupdates = 10\n";
    const QStringList sets{QStringLiteral("parallel.data=%1").arg(ranks), "accumulation.checkpoint_scope=anywhere",
                           "optimizer.weight_decay=0.1"};
    const Outcome whole = accrue_run(with_library({"run", spec(model, {}, rest), "--quiet", "--out", run}, sets));
    QVERIFY2(whole.status == 0, qUtf8Printable(whole.err));
    QVERIFY2(QDir(run + "/checkpoints").exists(from), qUtf8Printable(QDir(run + "/checkpoints").entryList().join(' ')));
    const Outcome rest_of_it = accrue_run({"resume", run, "--from", from, "--quiet", "--out", branch});
    QVERIFY2(rest_of_it.status == 0, qUtf8Printable(rest_of_it.err));
    QCOMPARE(weights_of(run).size(), 64);
    QCOMPARE(weights_of(branch), weights_of(run));
    const auto before = evaluations(run), after = evaluations(branch);
    QVERIFY(!after.isEmpty());
    for (const int update : after.keys()) QCOMPARE(after[update], before[update]);
    const QJsonObject final = tensors(run + "/final/model.safetensors");
    QCOMPARE(final.contains("norm.running_mean"), model == "normed");
    QCOMPARE(final["norm.num_batches_tracked"].toObject()["dtype"].toString(), model == "normed" ? "I64" : "");
    QCOMPARE(final["mask"].toObject()["dtype"].toString(), model == "centred" ? "BOOL" : "");
  }

  /// A frozen parameter is left alone as a buffer is, weight decay and all, and a matrix in two places is one.
  void a_model_trains_what_requires_a_gradient_data() {
    const Rows<QString, QString, QString, QStringList> row;
    row("frozen, one rank", "frozen", "held", "scale", {"parallel.data=1"});
    row("frozen, two ranks", "frozen", "held", "scale", {});
    row("frozen, AdamW", "frozen", "held", "scale", {"optimizer.kind=adamw"});
    row("frozen, ZeRO", "frozen", "held", "scale", {"parallel.zero=1"});
    row("frozen, LAMB", "frozen", "held", "scale", {"optimizer.kind=Lamb"});
    row("tied", "tied", "twice", "first", {});
    row("tied, ZeRO", "tied", "twice", "first", {"parallel.zero=1"});
  }
  void a_model_trains_what_requires_a_gradient() {
    const auto [model, same, kept, sets] = current_row<QString, QString, QString, QStringList>();
    QStringList weights;
    for (const QString& each : {model, same}) {
      const QString run = path(each + QTest::currentDataTag());
      const Outcome ended =
          accrue_run(with_library({"run", spec(each, {}, "[run]\nupdates = 4\n"), "--quiet", "--out", run},
                                  sets + QStringList{"optimizer.weight_decay=0.1"}));
      QVERIFY2(ended.status == 0, qUtf8Printable(ended.err));
      QVERIFY(tensors(run + "/final/model.safetensors").contains(kept));
      weights << weights_of(run);
    }
    QCOMPARE(weights[0].size(), 64);
    QCOMPARE(weights[0], weights[1]);
  }

  void a_model_that_cannot_be_trained_is_refused_data() {
    const Rows<QString, QString> row;
    row("nothing requires a gradient", "all_frozen", "the model has no parameter that requires a gradient");
    row("unfrozen while it trains", "thawing", "parameter scale was unfrozen while the run trains");
    row("two types", "mixed", "parameter wide is of type Double and in.weight of Float");
  }
  void a_model_that_cannot_be_trained_is_refused() {
    const auto [model, says] = current_row<QString, QString>();
    const Outcome ended =
        accrue_run(with_library({"run", spec(model, {}, "[run]\nupdates = 1\n"), "--quiet", "--out", path(model)}));
    QVERIFY2(ended.status == 2 && ended.err.contains(says), qUtf8Printable(ended.out + ended.err));
  }

  /// A number a micro-step, and a numerator with its denominator: the same 32 samples on one rank and on two.
  void what_a_train_step_reports_is_recorded() {
    QList<QJsonObject> first;
    for (const int ranks : {1, 2}) {
      const QString run = path(QStringLiteral("reports%1").arg(ranks));
      const Outcome ended = accrue_run(with_library(
          {"run", spec("layers", "with_accuracy", "[evaluate]\nevery_updates = 1\nbatches = 2\n[run]\nupdates = 2\n"),
           "--quiet", "--out", run},
          {QStringLiteral("parallel.data=%1").arg(ranks), QStringLiteral("accumulation.steps=%1").arg(8 / ranks),
           "run.tensorboard_dir=board", "evaluate.exactness_every=1"}));
      QVERIFY2(ended.status == 0, qUtf8Printable(ended.err));
      const auto updates = events(run, "update");
      QCOMPARE(updates.size(), 2);
      first << updates[0]["scalars"].toObject();
      QCOMPARE(first.last().keys(), QStringList({"accuracy", "rows"}));
      QCOMPARE(first.last()["rows"].toDouble(), 4.0);
      const double hits = 32 * first.last()["accuracy"].toDouble();
      QVERIFY2(hits == std::round(hits) && hits > 0, qPrintable(QString::number(hits)));
      const auto evaluation = events(run, "evaluation").first()["scalars"].toObject();
      QCOMPARE(evaluation.keys(), QStringList({"accuracy", "rows"}));
      QDir board(run + "/board");
      QFile file(board.filePath(board.entryList(QDir::Files).value(0)));
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QByteArray scalars = file.readAll();
      QVERIFY(scalars.contains("accuracy validation") && !scalars.contains("accuracy validation ppl"));
    }
    QCOMPARE(first[1], first[0]);
  }

  /// After a resume, reports of the window's first micro-steps count together with the rest.
  void reports_of_an_open_window_are_in_checkpoints_data() {
    const Rows<int> row;
    row("one rank", 1);
    row("two ranks", 2);
  }
  void reports_of_an_open_window_are_in_checkpoints() {
    const auto [ranks] = current_row<int>();
    const QString run = path(QStringLiteral("open%1").arg(ranks)), branch = run + "-branch";
    const QString rest = "[checkpoint]\nevery_micro_steps = 2\nkeep = 100\n[run]\nupdates = 3\n";
    const Outcome whole = accrue_run(
        with_library({"run", spec("layers", "with_accuracy", rest), "--quiet", "--out", run},
                     {QStringLiteral("parallel.data=%1").arg(ranks), "accumulation.checkpoint_scope=anywhere"}));
    QVERIFY2(whole.status == 0, qUtf8Printable(whole.err));
    const Outcome goes_on = accrue_run({"resume", run, "--from", "step-1+2", "--quiet", "--out", branch});
    QVERIFY2(goes_on.status == 0, qUtf8Printable(goes_on.err));
    const auto wanted = events(run, "update"), found = events(branch, "update");
    QCOMPARE(wanted.size(), 3);
    QVERIFY(found.size() >= 2);
    for (int back = 1; back <= 2; ++back) {
      const auto of_run = wanted[wanted.size() - back], of_branch = found[found.size() - back];
      QCOMPARE(of_branch["update"], of_run["update"]);
      QCOMPARE(of_branch["loss"], of_run["loss"]);
      QCOMPARE(of_run["scalars"].toObject().keys(), QStringList({"accuracy", "rows"}));
      QCOMPARE(of_branch["scalars"], of_run["scalars"]);
    }
  }

  void text_is_generated_by_a_gpt_that_a_library_gave() {
    const QString file = path("gpt.accrue"), run = path("gpt");
    QFile out(file);
    QVERIFY(out.open(QIODevice::WriteOnly));
    out.write(
        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 16\nvocabulary = 256\n"
        "[data]\nkind = \"synthetic\"\nsamples = 16\n[run]\nupdates = 1\n"
        "[megatron]\ncustom_model_provider_function = \"own_gpt\"\n");
    out.close();
    const Outcome trained = accrue_run(with_library({"run", file, "--quiet", "--out", run}));
    QVERIFY2(trained.status == 0, qUtf8Printable(trained.err));
    const Outcome text = accrue_run({"generate", run, "--tokens", "1,2,3", "--length", "5"});
    QVERIFY2(text.status == 0, qUtf8Printable(text.err));
    QCOMPARE(text.out.trimmed().split(',').size(), 8);
    const Outcome shown = accrue_run({"show", run});
    QVERIFY2(shown.out.contains("not known") && !shown.out.contains("the plan was off"), qUtf8Printable(shown.out));
  }

  /// Another number of replicas continues with the first one's: its count of forwards, 4 a window on two ranks, then 8
  /// on one.
  void buffers_go_into_another_layout() {
    const QString run = path("two"), branch = path("one");
    const Outcome two =
        accrue_run(with_library({"run", spec("centred", {}, "[checkpoint]\nevery_updates = 3\n[run]\nupdates = 6\n"),
                                 "--quiet", "--out", run}));
    QVERIFY2(two.status == 0, qUtf8Printable(two.err));
    QCOMPARE(number_in(run, "seen"), 6 * 4);
    const Outcome one = accrue_run({"resume", run, "--from", "step-3", "--quiet", "--out", branch, "--set",
                                    "parallel.data=1", "--set", "accumulation.steps=8"});
    QVERIFY2(one.status == 0, qUtf8Printable(one.err));
    QCOMPARE(number_in(branch, "seen"), 3 * 4 + 3 * 8);
  }
};

ACCRUE_TEST_MAIN(TestOwnModels)

}  // namespace test_own_models
#include "test_own_models.moc"
