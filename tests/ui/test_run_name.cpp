// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "accrue/run/fields/loss_difference.h"
#include "series/run_name.h"
#include "support/test_program.h"

namespace test_run_name {

using namespace accrue;
using namespace accrue::ui;

namespace {

RunSpec spec(std::int64_t steps, double rate = 1e-3) {
  RunSpec spec;
  spec.run.name = "Demo";
  spec.accumulation.steps = steps;
  spec.optimizer.lr = rate;
  return spec;
}

QStringList lines(const char* text) {
  return QString::fromUtf8(text).split(QLatin1Char('|'));
}

QString text(const char* utf8) {
  return QString::fromUtf8(utf8);
}

}  // namespace

class TestRunName : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_name_of_its_own_stays() {
    const RunSpec four = spec(4), sixteen = spec(16);
    QCOMPARE(distinctNames({{text("Demo"), &four}, {text("Other"), &sixteen}}), lines("Demo|Other"));
  }

  void equal_names_say_what_differs() {
    const RunSpec four = spec(4), sixteen = spec(16), fast = spec(16, 0.01);
    QCOMPARE(distinctNames({{text("Demo"), &four}, {text("Demo"), &sixteen}}), lines("Demo, N = 4|Demo, N = 16"));
    QCOMPARE(
        distinctNames({{text("Demo"), &four}, {text("Demo"), &sixteen}, {text("Demo"), &fast}}),
        lines("Demo, learning rate = 0.001, N = 4|Demo, learning rate = 0.001, N = 16|Demo, learning rate = 0.01"));
  }

  void what_is_left_out_is_said_as_what_it_comes_to() {
    const RunSpec bare = spec(4);
    RunSpec each = spec(4);
    each.accumulation.knobs.reduce_when = ReduceWhen::every_micro_step;
    QCOMPARE(settingValue(bare, "accumulation.reduce_when"), QStringLiteral("boundary"));
    QCOMPARE(differencesText({{text("A"), &bare}, {text("B"), &each}}),
             QStringLiteral("reduce when = boundary, every_micro_step"));
  }

  void a_switch_is_on_or_off() {
    RunSpec without = spec(4), with = spec(4);
    with.model.batch_norm = true;
    QCOMPARE(distinctNames({{text("Demo"), &without}, {text("Demo"), &with}}),
             lines("Demo, batch norm = off|Demo, batch norm = on"));
  }

  void no_more_settings_than_tell_them_apart_and_the_seed_last() {
    std::vector<RunSpec> specs;
    for (const std::int64_t n : {4, 16})
      for (const std::int64_t seed : {1, 2, 3}) {
        specs.push_back(spec(n));
        specs.back().run.seed = seed;
        specs.back().accumulation.micro_batch = 64 / n;  // says no more than N
      }
    std::vector<NamedSpec> named;
    for (const RunSpec& each : specs) named.push_back({text("Demo"), &each});
    QCOMPARE(distinctNames(named), lines("Demo, N = 4, seed = 1|Demo, N = 4, seed = 2|Demo, N = 4, seed = 3|"
                                         "Demo, N = 16, seed = 1|Demo, N = 16, seed = 2|Demo, N = 16, seed = 3"));
  }

  void what_a_run_leaves_out_its_name_does_too() {
    const RunSpec bare = spec(4);
    RunSpec one = bare, two = bare;
    one.launch.threads_per_rank = 1;
    two.launch.threads_per_rank = 2;
    QCOMPARE(distinctNames({{text("Demo"), &bare}, {text("Demo"), &one}, {text("Demo"), &two}}),
             lines("Demo|Demo, threads per rank = 1|Demo, threads per rank = 2"));
    QCOMPARE(distinctNames({{text("Demo"), &bare}, {text("Demo"), &bare}, {text("Demo"), &one}}),
             lines("Demo|Demo (2)|Demo, threads per rank = 1"));
  }

  void a_long_list_is_said_in_words() {
    RunSpec eight = spec(4), same = spec(4), four = spec(4);
    for (int length = 1; length <= 8; ++length) eight.data.sequences.emplace_back(length, 1.0);
    four.data.sequences.assign(4, std::vector<double>(4, 1.0));
    same.model.values.assign(16, 0.25);
    QCOMPARE(settingText(eight, "data.sequences"), QStringLiteral("sequences = lengths 1 to 8"));
    QCOMPARE(settingText(four, "data.sequences"), QStringLiteral("sequences = 4 lists of 4"));
    QCOMPARE(settingText(same, "model.values"), QStringLiteral("given weights = 16 values"));
    QCOMPARE(distinctNames({{text("Demo"), &eight}, {text("Demo"), &four}}),
             lines("Demo, sequences = lengths 1 to 8|Demo, sequences = 4 lists of 4"));
  }

  void lists_that_read_alike_are_told_apart_by_something_else() {
    RunSpec one = spec(4), other = spec(16);
    one.model.values.assign(8, 0.25);
    other.model.values.assign(8, 0.5);
    QCOMPARE(distinctNames({{text("Demo"), &one}, {text("Demo"), &other}}), lines("Demo, N = 4|Demo, N = 16"));
  }

  void a_long_path_keeps_its_end() {
    RunSpec one = spec(4), other = spec(4);
    one.data.path = "/home/someone/data/of/this/year/first.csv";
    other.data.path = "/home/someone/data/of/this/year/second.csv";
    const QStringList names = distinctNames({{text("Demo"), &one}, {text("Demo"), &other}});
    QVERIFY2(names[0].endsWith(QStringLiteral("first.csv")) && names[1].endsWith(QStringLiteral("second.csv")),
             qPrintable(names.join(QLatin1Char('|'))));
  }

  void what_a_run_was_called_stays() {
    const RunSpec four = spec(4), sixteen = spec(16), fast = spec(16, 0.01);
    const QString name = text("Demo");
    QCOMPARE(distinctNames({{name, &sixteen, text("Demo, N = 16")}}), lines("Demo, N = 16"));
    QCOMPARE(
        distinctNames(
            {{name, &four, text("Demo, N = 4")}, {name, &sixteen, text("Demo, N = 16")}, {name, &fast}, {name, &four}}),
        lines("Demo, N = 4|Demo, N = 16|Demo, learning rate = 0.01|Demo, learning rate = 0.001, N = 4"));
    // Two studios may have called different runs alike.
    QCOMPARE(distinctNames({{name, &four, text("Demo (2)")}, {name, &four, text("Demo (2)")}, {name, &four}}),
             lines("Demo (2)|Demo|Demo (3)"));
  }

  void a_number_gives_way_to_what_tells_the_run_apart() {
    const RunSpec four = spec(4), sixteen = spec(16);
    const QString name = text("Demo");
    QCOMPARE(distinctNames({{name, &four}, {name, &four, text("Demo (2)")}, {name, &sixteen}}),
             lines("Demo, N = 4|Demo, N = 4 (2)|Demo, N = 16"));
  }

  void what_does_not_differ_is_numbered() {
    const RunSpec four = spec(4), sixteen = spec(16);
    QCOMPARE(distinctNames({{text("Demo"), &four}, {text("Demo"), &four}}), lines("Demo|Demo (2)"));
    QCOMPARE(distinctNames({{text("Demo"), nullptr}, {text("Demo"), &sixteen}, {text("Demo"), &four}}),
             lines("Demo|Demo, N = 16|Demo, N = 4"));
  }

  void a_name_in_the_spec_is_no_difference() {
    RunSpec renamed = spec(4);
    renamed.run.name = "another";
    const RunSpec four = spec(4);
    QVERIFY(differingKeys({&four, &renamed}).empty());
  }

  void losses_on_the_same_data_can_be_compared() {
    RunSpec other = spec(16, 0.01);
    other.parallel.data = 4;
    other.run.seed += 1;
    other.model.width *= 2;
    other.data.shuffle = !other.data.shuffle;
    QCOMPARE(loss_difference(spec(4), other), std::string());
  }

  void losses_of_other_models_or_data_cannot_data() {
    QTest::addColumn<QString>("key");
    QTest::addColumn<RunSpec>("one");
    QTest::addColumn<RunSpec>("other");
    const auto row = [](const char* key, const RunSpec& one, const auto& change) {
      RunSpec other = one;
      change(other);
      QTest::newRow(key) << QString::fromLatin1(key) << one << other;
    };
    RunSpec dense = spec(4);
    dense.model.kind = ModelKind::mlp;
    RunSpec bert = spec(4);
    bert.model.kind = ModelKind::bert;
    row("model.kind", spec(4), [](RunSpec& other) { other.model.kind = ModelKind::mlp; });
    row("model.vocabulary", spec(4), [](RunSpec& other) { other.model.vocabulary *= 2; });
    row("model.context", spec(4), [](RunSpec& other) { other.model.context *= 2; });
    row("model.label_smoothing", spec(4), [](RunSpec& other) { other.model.label_smoothing = 0.1; });
    row("model.binary_head", bert, [](RunSpec& other) { other.model.binary_head = false; });
    row("model.loss", dense, [](RunSpec& other) { other.model.loss = LossKind::cross_entropy; });
    row("data.kind", spec(4), [](RunSpec& other) { other.data.kind = DataKind::csv; });
    row("data.samples", spec(4), [](RunSpec& other) { other.data.samples *= 2; });
  }

  void losses_of_other_models_or_data_cannot() {
    QFETCH(QString, key);
    QFETCH(RunSpec, one);
    QFETCH(RunSpec, other);
    QCOMPARE(QString::fromStdString(loss_difference(one, other)), key);
    QCOMPARE(QString::fromStdString(loss_difference(other, one)), key);
  }

  void a_loss_that_is_written_out_is_the_models_own() {
    RunSpec dense = spec(4), tokens = spec(4);
    dense.model.kind = ModelKind::mlp;
    tokens.model.kind = ModelKind::gpt;
    RunSpec mse = dense, cross_entropy = tokens;
    mse.model.loss = LossKind::mse;
    cross_entropy.model.loss = LossKind::cross_entropy;
    QCOMPARE(loss_difference(dense, mse), std::string());
    QCOMPARE(loss_difference(tokens, cross_entropy), std::string());
  }
};

ACCRUE_TEST_MAIN(TestRunName)

}  // namespace test_run_name
#include "test_run_name.moc"
