// SPDX-License-Identifier: Apache-2.0
// The five dialects side by side: ten batches in windows of four, over one and two epochs, on one and two ranks, and
// what a comparison does with overrides, refusals and long runs.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/whatif/dialect_comparison.h"
#include "support/test_program.h"

namespace test_dialect_comparison {

using namespace accrue;

using Numbers = std::vector<std::int64_t>;

namespace {

/// Ten batches of one sample on each rank, N = 4.
RunSpec ten_batches(std::int64_t epochs, std::int64_t world = 1) {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = spec.model.outputs = 1;
  spec.data.kind = DataKind::inline_;
  spec.data.shuffle = false;
  for (std::int64_t b = 1; b <= 10 * world; ++b) {
    spec.data.x.push_back({static_cast<double>(b)});
    spec.data.y.push_back({2.0 * static_cast<double>(b)});
  }
  spec.optimizer.kind = OptimizerKind::sgd;
  spec.optimizer.lr = 0.005;
  spec.accumulation.steps = 4;
  spec.accumulation.micro_batch = 1;
  spec.parallel.data = world;
  spec.run.updates.reset();
  spec.run.epochs = static_cast<double>(epochs);
  return spec;
}

DialectComparison comparison_of(const RunSpec& spec, std::int64_t most_steps = 64) {
  HostFacts host;
  host.cores = 2;
  const auto data = scan_data(spec, ".");
  if (!data) qFatal("%s", data.error().text().c_str());
  return compare_dialects(spec, host, *data, ".", most_steps);
}

Numbers updates_of(const DialectPlan& answer) {
  Numbers numbers;
  for (const ComparedUpdate& update : answer.updates) numbers.push_back(update.micro_step);
  return numbers;
}

Numbers positions_of(const DialectPlan& answer) {
  Numbers numbers;
  for (const ComparedUpdate& update : answer.updates) numbers.push_back(update.lr_position);
  return numbers;
}

Numbers reductions_of(const DialectPlan& answer) {
  Numbers numbers;
  for (const ComparedMicroStep& step : answer.steps)
    if (step.plan.sync) numbers.push_back(step.plan.micro_step);
  return numbers;
}

/// "4" for every micro-step, "" where samples or items divide.
QStringList divisors_of(const DialectPlan& answer) {
  QStringList divisors;
  for (const ComparedMicroStep& step : answer.steps)
    divisors.append(step.plan.division.counts() ? QStringLiteral("items") : QString::number(step.plan.division.value));
  return divisors;
}

QStringList repeated(const char* text, int times, const char* then = nullptr, int more = 0) {
  QStringList list;
  for (int i = 0; i < times; ++i) list.append(QLatin1String(text));
  for (int i = 0; i < more; ++i) list.append(QLatin1String(then));
  return list;
}

struct Expected {
  Numbers updates;
  Numbers positions;
  QStringList divisors;
  std::vector<BatchFate> fates;
  const char* letters;
};

}  // namespace

class TestDialectComparison : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ten_batches_part_the_dialects_data() {
    QTest::addColumn<Dialect>("dialect");
    QTest::addColumn<int>("epochs");
    QTest::addColumn<Expected>("expected");
    using enum BatchFate;
    const auto row = [](const char* name, Dialect dialect, int epochs, const Expected& expected) {
      QTest::newRow(name) << dialect << epochs << expected;
    };
    row("llm, 1", Dialect::llm, 1, {{4, 8}, {0, 1}, repeated("4", 10), {left_in_gradients}, "bbbBSZL bbbBSZL bb|"});
    row("llm, 2", Dialect::llm, 2,
        {{4, 8, 12, 16, 20},
         {0, 1, 2, 3, 4},
         repeated("4", 20),
         {carried, full_window},
         "bbbBSZL bbbBSZL bb|bBSZL bbbBSZL bbbBSZL|"});
    row("colossalai, 1", Dialect::colossalai, 1, {{4, 8}, {0, 1}, repeated("4", 8), {never_seen}, "bbbBSLZ bbbBSLZ |"});
    row("colossalai, 2", Dialect::colossalai, 2,
        {{4, 8, 12, 16},
         {0, 1, 2, 3},
         repeated("4", 16),
         {never_seen, never_seen},
         "bbbBSLZ bbbBSLZ | bbbBSLZ bbbBSLZ |"});
    row("accelerate, 1", Dialect::accelerate, 1,
        {{4, 8, 10}, {0, 1, 2}, repeated("4", 10), {short_update}, "bbbBSLZ bbbBSLZ bBSLZ|"});
    row("accelerate, 2", Dialect::accelerate, 2,
        {{4, 8, 10, 14, 18, 20},
         {0, 1, 2, 3, 4, 5},
         repeated("4", 20),
         {short_update, short_update},
         "bbbBSLZ bbbBSLZ bBSLZ| bbbBSLZ bbbBSLZ bBSLZ|"});
    row("mmengine, 1", Dialect::mmengine, 1,
        {{4, 8, 10}, {3, 7, 9}, repeated("4", 8, "2", 2), {short_update}, "bLbLbLBSZL bLbLbLBSZL bLBSZL|"});
    row("mmengine, 2", Dialect::mmengine, 2,
        {{4, 8, 12, 16, 20},
         {3, 7, 11, 15, 19},
         repeated("4", 20),
         {carried, full_window},
         "bLbLbLBSZL bLbLbLBSZL bLbL|bLBSZL bLbLbLBSZL bLbLbLBSZL|"});
    row("accrue, 1", Dialect::accrue, 1,
        {{4, 8, 10}, {0, 1, 2}, repeated("items", 10), {short_update}, "bbbBSLZ bbbBSLZ bBSLZ|"});
    row("accrue, 2", Dialect::accrue, 2,
        {{4, 8, 10, 14, 18, 20},
         {0, 1, 2, 3, 4, 5},
         repeated("items", 20),
         {short_update, short_update},
         "bbbBSLZ bbbBSLZ bBSLZ| bbbBSLZ bbbBSLZ bBSLZ|"});
  }

  void ten_batches_part_the_dialects() {
    QFETCH(Dialect, dialect);
    QFETCH(int, epochs);
    QFETCH(Expected, expected);
    const DialectComparison comparison = comparison_of(ten_batches(epochs));
    QCOMPARE(comparison.dialects.size(), all_dialects.size());
    const DialectPlan& answer = *comparison.of(dialect);
    QVERIFY(answer.plan);
    QCOMPARE(updates_of(answer), expected.updates);
    QCOMPARE(answer.plan->totals.updates, static_cast<std::int64_t>(expected.updates.size()));
    QCOMPARE(positions_of(answer), expected.positions);
    QCOMPARE(reductions_of(answer), expected.updates);
    QCOMPARE(divisors_of(answer), expected.divisors);
    QCOMPARE(QString::fromStdString(answer.letters), QLatin1String(expected.letters));
    std::vector<BatchFate> fates;
    for (const LastBatches& last : answer.last_batches) fates.push_back(last.fate);
    QVERIFY2(fates == expected.fates, answer.fate().c_str());
    const bool drops = dialect == Dialect::colossalai;
    QCOMPARE(answer.steps.at(7).plan.dropped_after, drops ? 2 : 0);
    QCOMPARE(answer.chosen, dialect == Dialect::accrue);
  }

  void two_ranks_move_only_accelerates_schedule_twice() {
    const DialectComparison one = comparison_of(ten_batches(1));
    const DialectComparison two = comparison_of(ten_batches(1, 2));
    for (const Dialect dialect : all_dialects) {
      QCOMPARE(updates_of(*two.of(dialect)), updates_of(*one.of(dialect)));
      if (dialect == Dialect::accelerate) continue;
      QCOMPARE(positions_of(*two.of(dialect)), positions_of(*one.of(dialect)));
    }
    const DialectPlan& accelerate = *two.of(Dialect::accelerate);
    QCOMPARE(positions_of(accelerate), (Numbers{0, 2, 4}));
    Numbers after;
    for (const ComparedMicroStep& step : accelerate.steps) after.push_back(step.plan.schedule_position);
    QCOMPARE(after, (Numbers{0, 0, 0, 2, 2, 2, 2, 4, 4, 6}));
  }

  void accelerate_without_flush_leaves_the_tail_in_the_gradients() {
    RunSpec spec = ten_batches(1);
    spec.accumulation.dialect = Dialect::accelerate;
    spec.accumulation.sync_with_dataloader = false;
    const DialectComparison one = comparison_of(spec);
    QCOMPARE(updates_of(*one.of(Dialect::accelerate)), (Numbers{4, 8}));
    QCOMPARE(one.of(Dialect::accelerate)->last_batches.at(0).fate, BatchFate::left_in_gradients);
    spec.run.epochs = 2;
    const DialectComparison two = comparison_of(spec);
    QCOMPARE(updates_of(*two.of(Dialect::accelerate)), (Numbers{4, 8, 12, 16, 20}));
  }

  void last_batches_are_told_in_words() {
    const auto fate = [](const DialectComparison& comparison, Dialect dialect) {
      return QString::fromStdString(comparison.of(dialect)->fate());
    };
    const DialectComparison one = comparison_of(ten_batches(1));
    QCOMPARE(
        fate(one, Dialect::llm),
        QStringLiteral("At the end of the run, batches 9 and 10 stay in the gradients and never reach the weights."));
    QCOMPARE(fate(one, Dialect::colossalai), QStringLiteral("At the end of the run, batches 9 and 10 are never seen."));
    QCOMPARE(
        fate(one, Dialect::accelerate),
        QStringLiteral("At the end of the run, batches 9 and 10 make an update of 2, divided by 4 (half weight)."));
    QCOMPARE(
        fate(one, Dialect::mmengine),
        QStringLiteral("At the end of the run, batches 9 and 10 make an update of 2, divided by 2 (full weight)."));
    QVERIFY(fate(one, Dialect::accrue).contains(QStringLiteral("make an update of 2, divided by its own items")));
    const DialectComparison two = comparison_of(ten_batches(2));
    QVERIFY(fate(two, Dialect::llm)
                .startsWith(QStringLiteral(
                    "At the end of epoch 1, batches 9 and 10 stay in the gradients; the next 2 batches complete")));
    RunSpec eleven = ten_batches(1);
    eleven.accumulation.steps = 3;  // 10 = 3 x 3 + 1
    QCOMPARE(fate(comparison_of(eleven), Dialect::colossalai),
             QStringLiteral("At the end of the run, batch 10 is never seen."));
  }

  void the_rate_is_the_one_before_the_schedule_moves() {
    RunSpec spec = ten_batches(1);
    spec.schedule.kind = ScheduleKind::exponential;
    spec.schedule.gamma = 0.5;
    const DialectComparison comparison = comparison_of(spec);
    const DialectPlan& accelerate = *comparison.of(Dialect::accelerate);
    QCOMPARE(accelerate.updates.at(0).lr, 0.005);
    QCOMPARE(accelerate.updates.at(2).lr, 0.00125);
    QCOMPARE(accelerate.steps.back().lr, 0.000625);
    QCOMPARE(comparison.of(Dialect::mmengine)->updates.at(0).lr, 0.000625);
  }

  void overrides_of_another_dialect_are_dropped_with_a_note() {
    RunSpec spec = ten_batches(1);
    spec.accumulation.dialect = Dialect::accelerate;
    spec.accumulation.sync_with_dataloader = false;
    spec.accumulation.knobs.normalizer = Normalizer::none;
    std::vector<std::string> notes;
    const RunSpec llm = under_dialect(spec, Dialect::llm, &notes);
    QVERIFY(!llm.accumulation.sync_with_dataloader);
    QVERIFY(!llm.accumulation.knobs.normalizer);
    QCOMPARE(notes.size(), std::size_t{2});
    QVERIFY(QString::fromStdString(notes[0]).contains(QStringLiteral("normalizer = \"none\"")));
    QVERIFY(QString::fromStdString(notes[1]).contains(QStringLiteral("Accelerate's own")));
    const DialectComparison comparison = comparison_of(spec);
    QCOMPARE(comparison.of(Dialect::llm)->notes, notes);
    QCOMPARE(divisors_of(*comparison.of(Dialect::llm)).front(), QStringLiteral("4"));
    QVERIFY(comparison.of(Dialect::accelerate)->notes.empty());
  }

  void the_length_of_a_window_is_kept() {
    RunSpec spec = ten_batches(1);
    spec.accumulation.knobs.group_length = GroupLength::global_batch;
    spec.accumulation.knobs.global_batch = 5;
    for (const DialectPlan& answer : comparison_of(spec).dialects) QCOMPARE(updates_of(answer), (Numbers{5, 10}));
  }

  void the_own_dialect_keeps_everything() {
    RunSpec spec = ten_batches(2);
    spec.accumulation.knobs.tail = EpochTail::carry;
    spec.accumulation.knobs.reduce_when = ReduceWhen::every_micro_step;
    std::vector<std::string> notes;
    QVERIFY(under_dialect(spec, Dialect::accrue, &notes) == spec);
    QVERIFY(notes.empty());
    const DialectComparison comparison = comparison_of(spec);
    QCOMPARE(comparison.of(Dialect::accrue)->steps.front().letters, std::string("B"));
    QCOMPARE(comparison.of(Dialect::accelerate)->steps.front().letters, std::string("b"));
  }

  void a_refusal_is_said_and_the_others_answer() {
    RunSpec spec = ten_batches(1);
    spec.accumulation.max_iters = 10;  // MMEngine's own key under Accrue's rules
    const DialectComparison comparison = comparison_of(spec);
    const DialectPlan& accrue = *comparison.of(Dialect::accrue);
    QVERIFY(!accrue.plan);
    QVERIFY(has_errors(accrue.findings));
    QVERIFY(QString::fromStdString(dialect_text(accrue)).contains(QStringLiteral("refused")));
    QVERIFY(comparison.of(Dialect::mmengine)->plan);
    QCOMPARE(updates_of(*comparison.of(Dialect::mmengine)), (Numbers{4, 8, 10}));
    QVERIFY(comparison.of(Dialect::llm)->plan);
  }

  void a_long_run_shows_its_beginning_the_end_of_an_epoch_and_its_end() {
    RunSpec spec = ten_batches(1);
    spec.data.kind = DataKind::synthetic;
    spec.data.x.clear();
    spec.data.y.clear();
    spec.data.samples = 1001;  // 250 windows of four and one batch
    spec.run.epochs = 300;
    const DialectComparison comparison = comparison_of(spec, 40);
    for (const DialectPlan& answer : comparison.dialects) {
      QVERIFY2(answer.plan, dialect_text(answer).c_str());
      Numbers shown;
      for (const ComparedMicroStep& step : answer.steps) shown.push_back(step.plan.micro_step);
      QVERIFY(shown.size() <= 44);
      QVERIFY(std::ranges::is_sorted(shown, std::ranges::less_equal()) ||
              std::ranges::adjacent_find(shown) == shown.end());
      QCOMPARE(shown.front(), 1);
      QCOMPARE(shown.back(), answer.plan->totals.micro_steps);
      const bool drops = answer.dialect == Dialect::colossalai;
      QVERIFY(std::ranges::find(shown, drops ? 1000 : 1001) != shown.end());
      // The middle of the preview equals the result of walking there.
      const auto whole = preview_windows(answer.plan->window, 1100);
      for (const ComparedMicroStep& step : answer.steps)
        if (step.plan.micro_step <= 1100)
          QCOMPARE(step.plan, whole.at(static_cast<std::size_t>(step.plan.micro_step - 1)));
    }
  }

  void an_epoch_shorter_than_a_window_has_an_answer() {
    RunSpec spec = ten_batches(2);
    spec.accumulation.steps = 12;
    const DialectComparison comparison = comparison_of(spec);
    QCOMPARE(updates_of(*comparison.of(Dialect::llm)), (Numbers{12}));
    QVERIFY(QString::fromStdString(comparison.of(Dialect::llm)->fate()).contains(QStringLiteral("the next 2 batches")));
    QCOMPARE(updates_of(*comparison.of(Dialect::accelerate)), (Numbers{10, 20}));
    QVERIFY(QString::fromStdString(comparison.of(Dialect::accelerate)->fate())
                .contains(QStringLiteral("divided by 12 (10/12 of the weight of a full one)")));
  }

  void padding_says_what_is_repeated() {
    RunSpec spec = ten_batches(1);
    spec.accumulation.knobs.tail = EpochTail::pad_repeat;
    const DialectComparison comparison = comparison_of(spec);
    const LastBatches& last = comparison.of(Dialect::accrue)->last_batches.at(0);
    QCOMPARE(last.fate, BatchFate::filled_up);
    QCOMPARE(last.batches, 2);
    QCOMPARE(last.window_size, 4);
    QVERIFY(QString::fromStdString(last.text).contains(QStringLiteral("filled up with the epoch's first 2 batches")));
  }

  void json_and_text_say_the_same() {
    const DialectComparison comparison = comparison_of(ten_batches(1));
    const auto json = QJsonDocument::fromJson(QByteArray::fromStdString(dialect_json(comparison)));
    const QJsonArray dialects = json.object()[QStringLiteral("dialects")].toArray();
    QCOMPARE(dialects.size(), 5);
    const QString text = QString::fromStdString(dialect_report(comparison));
    for (const QJsonValue& value : dialects) {
      const QJsonObject dialect = value.toObject();
      QVERIFY(text.contains(dialect[QStringLiteral("letters")].toString()));
      QVERIFY(text.contains(dialect[QStringLiteral("system")].toString()));
      QCOMPARE(dialect[QStringLiteral("steps")].toArray().size(),
               dialect[QStringLiteral("dialect")] == QStringLiteral("colossalai") ? 8 : 10);
      for (const QJsonValue& last : dialect[QStringLiteral("last_batches")].toArray())
        QVERIFY(text.contains(last.toObject()[QStringLiteral("text")].toString()));
    }
  }

  /// The same answers as for a spec that names no part of a library.
  void the_parts_of_a_library_are_known_under_every_dialect() {
    RunSpec spec = ten_batches(1);
    const DialectComparison plain = comparison_of(spec);
    spec.megatron.custom_loss_function = "focal";
    for (const DialectPlan& answer : comparison_of(spec).dialects) QVERIFY(!answer.plan);
    const std::vector<PluginFacts> libraries{{"/mine.so", "mine", "hash", {{"custom_loss_function", "focal"}}, ""}};
    HostFacts host;
    host.cores = 2;
    const auto known = compare_dialects(spec, host, *scan_data(spec, "."), ".", compared_steps, libraries);
    for (const DialectPlan& answer : known.dialects)
      QCOMPARE(updates_of(answer), updates_of(*plain.of(answer.dialect)));
  }
};

ACCRUE_TEST_MAIN(TestDialectComparison)

}  // namespace test_dialect_comparison
#include "test_dialect_comparison.moc"
