// SPDX-License-Identifier: Apache-2.0
// Parts of a run that a plug-in library registers and a spec names, with accrue-run and real ranks: the numbers follow
// by hand, or are those of a run without the library; what does not fit is refused by name.
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <csignal>

#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_plugin_libraries {

using namespace accrue::test;

class TestPluginLibraries : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  static QString library(const char* name = "examples/libplugin_library.so") {
    return QFileInfo(programPath("../" + QByteArray(name))).canonicalFilePath();
  }
  QString path(const QString& name) const { return temporary_.filePath(name); }
  static QString toy() { return sourcePath("resources/presets/toy.accrue"); }

  Outcome accrue_run(const QStringList& arguments) const {
    return Program(programPath("accrue-run"), arguments,
                   {"XDG_RUNTIME_DIR=" + path("runtime"), "XDG_DATA_HOME=" + path("data")})
        .finish(60000);
  }
  static QStringList with_sets(QStringList arguments, const QStringList& sets) {
    for (const QString& set : sets) arguments << "--set" << set;
    return arguments;
  }
  /// The last update of a run of the preset.
  QJsonObject last_update(const QStringList& sets, const char* name = "examples/libplugin_library.so") {
    const QString dir = path(QStringLiteral("run%1").arg(++count_));
    QStringList arguments{"run", toy(), "--quiet", "--out", dir};
    if (name != nullptr) arguments << "--plugin" << library(name);
    const Outcome ended = accrue_run(with_sets(arguments, sets));
    if (ended.status != 0) qFatal("%s", qUtf8Printable(ended.err));
    QFile events(dir + "/events.jsonl");
    if (!events.open(QIODevice::ReadOnly)) qFatal("no events");
    QJsonObject last;
    for (const QByteArray& line : events.readAll().split('\n'))
      if (const auto event = QJsonDocument::fromJson(line).object(); event["kind"].toString() == "update") last = event;
    return last;
  }
  static double weight(const QJsonObject& update) { return update["weights"].toArray().at(0).toDouble(); }
  static QString named(const char* field, const char* name) {
    return QStringLiteral("megatron.%1=%2").arg(QLatin1String(field), QLatin1String(name));
  }
  /// By default the plug-in of Megatron-LM clips and decays the rate.
  static QStringList plain(int steps = 4) {
    return {"megatron.gradient_clipping=0", "megatron.lr_decay_style=constant",
            QStringLiteral("megatron.num_micro_batches=%1").arg(steps),
            QStringLiteral("accumulation.steps=%1").arg(steps)};
  }

 private Q_SLOTS:
  /// Half the loss at twice the rate is the same update, to the last bit.
  void a_loss_of_the_library_trains() {
    const auto own = last_update({}, nullptr);
    const auto half = last_update(plain() << named("custom_loss_function", "half_square") << "optimizer.lr=0.04");
    QCOMPARE(weight(half), weight(own));
    QCOMPARE(half["loss"].toDouble(), own["loss"].toDouble() / 2);
  }

  void two_ranks_train_as_one() {
    const QString loss = named("custom_loss_function", "half_square");
    const auto two = last_update(plain(2) << loss << "parallel.data=2");
    QVERIFY(std::abs(weight(two) - weight(last_update(plain() << loss))) < 1e-12);
  }

  /// By hand: x = 1..8, y = 3 x, w = 0. The gradient of the mean square is -2 * 25.5 * 3 = -153, the rate 0.02.
  void a_get_batch_function_gives_the_batches() {
    const auto update = last_update(plain() << named("custom_get_batch_function", "thirds"));
    QVERIFY(std::abs(weight(update) - 3.06) < 1e-12);
  }

  /// By hand: w = 0.5, x = 1..4, y = 2 x. The gradient of half the mean square is 7.5 * -1.5, the rate 0.02.
  void a_model_and_data_of_the_library_train_on_two_ranks() {
    const QStringList sets = plain(2) << named("custom_model_provider_function", "slope")
                                      << named("custom_megatron_datasets_provider_function", "doubles")
                                      << named("custom_loss_function", "half_square") << "data.kind=synthetic"
                                      << "data.x=[]"
                                      << "data.y=[]"
                                      << "data.samples=4"
                                      << "data.validation_fraction=0"
                                      << "accumulation.micro_batch=1"
                                      << "parallel.data=2";
    QVERIFY(std::abs(weight(last_update(sets)) - 0.725) < 1e-12);
    // Data sets that say how many samples they have: the spec does not.
    QStringList sized = QStringList(sets) << named("custom_megatron_datasets_provider_function", "four_doubles");
    sized.removeAll("data.samples=4");
    QVERIFY(std::abs(weight(last_update(sized)) - 0.725) < 1e-12);
    // Started at 3: 3 - 0.02 * 7.5 * 1.
    const QStringList prepared = QStringList(sets) << named("custom_prepare_model_function", "from_three");
    QVERIFY(std::abs(weight(last_update(prepared)) - 2.85) < 1e-12);
  }

  /// By hand: the first step of AdamW takes a weight from 1 to 1 - 0.1 * 0.1 - 0.1, by its decay and its rate. A weight
  /// without a gradient is not decayed, and its moments do not move it on.
  void a_parameter_that_no_backward_reached_is_left_alone_data() {
    const Rows<int, int> row;
    row("N = 1", 1, 1);
    row("N = 2", 2, 1);
    row("N = 1 on two ranks", 1, 2);
    row("N = 2 on two ranks", 2, 2);
  }
  void a_parameter_that_no_backward_reached_is_left_alone() {
    const auto [steps, ranks] = current_row<int, int>();
    QStringList x;
    for (int i = 1; i <= 20; ++i) x << QStringLiteral("[%1]").arg(i);
    const QString points = QStringLiteral("=[%1]").arg(x.join(QLatin1Char(',')));
    const auto update = last_update(
        plain(steps) << named("custom_model_provider_function", "heads") << named("custom_loss_function", "mean_output")
                     << "data.x" + points << "data.y" + points << "accumulation.micro_batch=1"
                     << QStringLiteral("parallel.data=%1").arg(ranks) << "optimizer.kind=adamw"
                     << "optimizer.lr=0.1"
                     << "optimizer.weight_decay=0.1",
        "bin/accrue_faulty_plugin.so");
    const auto weights = update["weights"].toArray();
    QCOMPARE(weights.size(), 3);
    QVERIFY2(weights[0].toDouble() < 0.7, qPrintable(QString::number(weights[0].toDouble())));
    QVERIFY2(std::abs(weights[1].toDouble() - 0.89) < 1e-7,
             qPrintable(QString::number(weights[1].toDouble(), 'g', 17)));
    QCOMPARE(weights[2].toDouble(), 1.0);
  }

  /// A GPT of zeros has a loss of log 256 at every token; samples without key tokens weigh 1.
  void a_train_step_is_made_with_its_keywords() {
    const QString spec = path("gpt.accrue");
    QFile file(spec);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(
        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 1\nwidth = 8\nheads = 1\ncontext = 4\nvocabulary = 256\n"
        "init = \"zeros\"\ndtype = \"float64\"\n[data]\nkind = \"synthetic\"\nsamples = 8\nvalidation_fraction = 0\n"
        "[accumulation]\nmicro_batch = 2\n[run]\nupdates = 1\n[megatron]\nnum_micro_batches = 2\n"
        "custom_train_step_class = \"key_tokens\"\n"
        "custom_train_step_kwargs = [\"keytoken_id = 999\", \"alpha = 0.25\"]\n");
    file.close();
    const QString dir = path("gpt");
    const Outcome ended = accrue_run({"run", spec, "--quiet", "--out", dir, "--plugin", library()});
    QVERIFY2(ended.status == 0, qUtf8Printable(ended.err));
    const Outcome shown = accrue_run({"show", dir, "--json"});
    const double loss = QJsonDocument::fromJson(shown.out.toUtf8()).object()["loss"].toDouble();
    QVERIFY2(std::abs(loss - std::log(256.0)) < 1e-9, qPrintable(shown.out));
    // The same gradient as that of one batch: what is checked is the library's loss.
    const Outcome verified = accrue_run({"verify", spec, "--plugin", library()});
    QVERIFY2(verified.status == 0, qUtf8Printable(verified.out + verified.err));
  }

  void arguments_of_a_step_are_those_that_it_takes_data() {
    const Rows<QString, QString> row;
    row("a misspelt one beside all that are needed", "[\"keytoken_id = 9\", \"alpha = 0.25\", \"alhpa = 0.5\"]",
        "alhpa is none of the arguments of \"key_tokens\", which are alpha, keytoken_id");
    row("a misspelt one in place of one that is needed", "[\"keytoken_id = 9\", \"alhpa = 0.25\"]",
        "alpha is missing; what is given: alhpa, keytoken_id");
    row("none", "[]", "keytoken_id is missing");
    row("a word for a number", "[\"keytoken_id = 9\", \"alpha = much\"]", "alpha must be a number, found \"much\"");
    row("a number with more behind it", "[\"keytoken_id = 9x\", \"alpha = 0.25\"]",
        "keytoken_id must be a whole number, found \"9x\"");
    row("a number beyond counting", "[\"keytoken_id = 99999999999999999999\", \"alpha = 0.25\"]",
        "keytoken_id must be a whole number");
  }
  void arguments_of_a_step_are_those_that_it_takes() {
    const auto [given, words] = current_row<QString, QString>();
    const Outcome ended = accrue_run(with_sets(
        {"run", sourcePath("resources/presets/megatron-gpt.accrue"), "--quiet", "--out",
         path(QStringLiteral("run%1").arg(++count_)), "--plugin", library()},
        {"parallel.data=1", "data.kind=synthetic", "data.path=", named("custom_train_step_class", "key_tokens"),
         "megatron.custom_train_step_kwargs=" + given}));
    QCOMPARE(ended.status, 2);
    QVERIFY2(ended.err.contains(words), qUtf8Printable(ended.err));
  }

  /// On a rank of two: all end at once, and the reason is the library's.
  void what_throws_on_one_rank_ends_all_data() {
    const Rows<QStringList, QString> row;
    row("a loss, on the last stage", {"parallel.pipeline=2", named("custom_loss_function", "undefined")},
        "the logarithm of nothing is not defined");
    const QString differ =
        "rank 1 (data 0, stage 0, tensor 1) has another batch than rank 0 (data 0, stage 0, tensor 0): tensor-parallel "
        "ranks read for themselves, and must get the same batch";
    row("batches that differ", {"parallel.tensor=2", named("custom_get_batch_function", "of_this_process")}, differ);
    // Running out of memory is reported as such, whatever code requested it.
    row("a loss without memory", {named("custom_loss_function", "without_memory")},
        "error (out_of_memory): custom_loss_function \"without_memory\" ran out of memory");
    row("a loss that is too large", {named("custom_loss_function", "large")},
        "error (out_of_memory): custom_loss_function \"large\" threw: ");
    row("a batch without memory on a device", {named("custom_get_batch_function", "without_device_memory")},
        "error (out_of_memory): custom_get_batch_function \"without_device_memory\" threw: ");
    row("a model that is too large", {named("custom_model_provider_function", "large")},
        "error (out_of_memory): the model of custom_model_provider_function \"large\" threw: ");
    row("a model whose shapes do not fit", {named("custom_model_provider_function", "unfit")},
        "error (internal): the model of custom_model_provider_function \"unfit\" threw: mat1 and mat2");
    row("train steps that differ", {"parallel.tensor=2", named("custom_train_step_class", "of_this_process")}, differ);
  }
  void what_throws_on_one_rank_ends_all() {
    const auto [sets, words] = current_row<QStringList, QString>();
    const QString spec = path("faults.accrue"), dir = path(QStringLiteral("run%1").arg(++count_));
    QFile file(spec);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(
        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 16\nheads = 2\ncontext = 8\n"
        "[data]\nkind = \"synthetic\"\nsamples = 64\n[accumulation]\nsteps = 4\nmicro_batch = 2\n"
        "[megatron]\nnum_micro_batches = 4\n[run]\nupdates = 4\n");
    file.close();
    QElapsedTimer since;
    since.start();
    const Outcome ended = accrue_run(
        with_sets({"run", spec, "--quiet", "--out", dir, "--plugin", library("bin/accrue_faulty_plugin.so")}, sets));
    QVERIFY2(ended.status == 3, qUtf8Printable(QString::number(ended.status) + ended.err));
    QVERIFY2(ended.err.contains(words), qUtf8Printable(ended.err));
    QVERIFY(since.elapsed() < 30000);  // no collective's time-out, which is a minute
  }

  /// It trains a part of the run, and lengths in the fields are parts of the whole.
  void verify_takes_the_fields_that_a_run_takes_data() {
    const Rows<QStringList> row;
    row("decay", {"megatron.lr_decay_style=WSD", "megatron.other_megatron_args=[\"lr_wsd_decay_iters = 100\"]"});
    row("warm-up", {"megatron.lr_warmup_iters=100"});
    row("warm-up of a hook's run", {"megatron.lr_warmup_iters=100", "megatron.lr_decay_style=constant",
                                    "megatron.gradient_clipping=0", "megatron.custom_loss_function=half_square"});
  }
  void verify_takes_the_fields_that_a_run_takes() {
    const auto [sets] = current_row<QStringList>();
    const Outcome verified =
        accrue_run(with_sets({"verify", toy(), "--updates", "2", "--plugin", library()},
                             QStringList{"run.epochs=", "accumulation.steps=1", "megatron.train_iters=1000"} + sets));
    QVERIFY2(verified.status == 0, qUtf8Printable(verified.out + verified.err));
  }

  void what_does_not_fit_is_refused_by_name_data() {
    const Rows<QStringList, QString, QString> row;
    const QString loss = "half_square";
    row("no library", {}, loss, "none was given");
    row("unknown name", {library()}, "half_sqare", "expected \"half_square\"");
    row("twice", {library(), "COPY"}, loss, "two plug-in libraries register custom_loss_function \"half_square\"");
    row("another interface", {library("bin/accrue_unfit_plugin.so")}, loss, "plug-in interface 0, this is 4");
    row("another Accrue", {library("bin/accrue_stale_plugin.so")}, loss, "built with Accrue 0.0.1, this is ");
    row("no symbol", {library("bin/accrue_mute_plugin.so")}, loss, "exports no accrue_plugin_abi");
    row("no library at all", {sourcePath("README.md")}, loss, "cannot be loaded");
    row("not there", {"/nowhere/lib.so"}, loss, "cannot be read: No such file or directory. Check the path");
  }
  void what_does_not_fit_is_refused_by_name() {
    const auto [libraries, name, words] = current_row<QStringList, QString, QString>();
    QStringList arguments{"plan", toy(), "--set", "megatron.custom_loss_function=" + name};
    for (QString each : libraries) {
      if (each == "COPY") {
        each = path("copy.so");
        QVERIFY(QFile::copy(library(), each));
      }
      arguments << "--plugin" << each;
    }
    const Outcome ended = accrue_run(arguments);
    QCOMPARE(ended.status, 2);
    QVERIFY2(ended.err.contains(words), qUtf8Printable(ended.err));
  }

  void a_resumed_run_keeps_to_its_library() {
    const QString own = path("own.so"), dir = path("resumed");
    QVERIFY(QFile::copy(library(), own));
    Program run(programPath("accrue-run"),
                with_sets({"run", toy(), "--out", dir, "--plugin", own},
                          plain() << named("custom_loss_function", "half_square") << "run.epochs=1000000"
                                  << "run.record_weights=false"
                                  << "checkpoint.every_updates=20"),
                {"XDG_RUNTIME_DIR=" + path("runtime"), "XDG_DATA_HOME=" + path("data")});
    QTRY_VERIFY_WITH_TIMEOUT(!QDir(dir + "/checkpoints").entryList({"step-*"}).isEmpty(), 30000);
    run.signal(SIGINT);
    QCOMPARE(run.finish().status, 130);
    QFile plan(dir + "/plan.json");
    QVERIFY(plan.open(QIODevice::ReadOnly));
    const auto recorded = QJsonDocument::fromJson(plan.readAll()).object()["plugins"].toArray().at(0).toObject();
    QCOMPARE(recorded["name"].toString(), QStringLiteral("Accrue's sample"));
    QCOMPARE(recorded["sha256"].toString().size(), 64);
    // A branch takes the libraries of its run along. An epoch is an update; it makes three more.
    qint64 newest = 0;
    for (const QString& step : QDir(dir + "/checkpoints").entryList({"step-*"}))
      newest = std::max(newest, step.section('-', 1).toLongLong());
    const QString epochs = QStringLiteral("run.epochs=%1").arg(newest + 3);
    const Outcome branch = accrue_run({"resume", dir, "--quiet", "--out", path("branch"), "--set", epochs});
    QVERIFY2(branch.status == 0, qUtf8Printable(branch.err));
    // The run itself finds its library by the record; one that was moved is named, and known by its contents.
    const QString moved = path("moved.so");
    QVERIFY(QFile::rename(own, moved));
    const Outcome gone = accrue_run({"resume", dir, "--quiet"});
    QCOMPARE(gone.status, 2);
    QVERIFY2(gone.err.contains("is not there any more"), qUtf8Printable(gone.err));
    const Outcome strange = accrue_run({"resume", dir, "--quiet", "--plugin", sourcePath("README.md")});
    QCOMPARE(strange.status, 2);
    QVERIFY2(strange.err.contains("did not begin with this plug-in library"), qUtf8Printable(strange.err));
    Program goes_on(programPath("accrue-run"), {"resume", dir, "--plugin", moved},
                    {"XDG_RUNTIME_DIR=" + path("runtime"), "XDG_DATA_HOME=" + path("data")});
    const auto goes_beyond = [&] {
      const QStringList steps = QDir(dir + "/checkpoints").entryList({"step-*"});
      return std::ranges::any_of(steps,
                                 [&](const QString& each) { return each.section('-', 1).toLongLong() > newest; });
    };
    QTRY_VERIFY_WITH_TIMEOUT(goes_beyond(), 30000);
    goes_on.signal(SIGINT);
    QCOMPARE(goes_on.finish().status, 130);
    QFile changed(moved);  // the record now finds it here
    QVERIFY(changed.open(QIODevice::Append));
    changed.write("x");
    changed.close();
    const Outcome again = accrue_run({"resume", dir, "--quiet"});
    QCOMPARE(again.status, 2);
    QVERIFY2(again.err.contains("\"Accrue's sample\" is another than the run began with"), qUtf8Printable(again.err));
    // So does a branch that is given no library.
    const Outcome refused = accrue_run({"resume", dir, "--quiet", "--out", path("branch2"), "--set", epochs});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("is another than the run began with"), qUtf8Printable(refused.err));
  }
};

ACCRUE_TEST_MAIN(TestPluginLibraries)

}  // namespace test_plugin_libraries
#include "test_plugin_libraries.moc"
