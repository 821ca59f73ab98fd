// SPDX-License-Identifier: Apache-2.0
// The derived numbers: golden lines for each dialect, ten thousand random specs against the micro-steps themselves, and
// the way through plan.json.
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRandomGenerator>
#include <QRegularExpression>
#include <QTest>

#include <numeric>
#include <random>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/preflight/run_order.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_run_plan {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

HostFacts plain_host() {
  HostFacts host;
  host.cores = 2;
  return host;
}

RunSpec spec_of(const QString& settings) {
  RunSpec spec;
  spec.model.layers = 1;
  spec.model.width = 16;
  spec.model.context = 8;
  for (const QString& line : settings.split(';', Qt::SkipEmptyParts)) {
    std::vector<Finding> findings;
    set_field(spec, line.toStdString(), findings);
    if (!findings.empty()) qFatal("%s", findings.front().text().c_str());
  }
  return spec;
}

RunPlan plan_of(const RunSpec& spec) {
  const Preflight result = preflight_files(spec, plain_host(), ".");
  if (!result.plan) qFatal("%s", result.findings.front().text().c_str());
  return *result.plan;
}

// Returns the number before a phrase of the line; -1 if the phrase is missing.
std::int64_t number_before(const QString& line, const QString& phrase) {
  const auto match = QRegularExpression("(\\d+) " + phrase).match(line);
  return match.hasMatch() ? match.captured(1).toLongLong() : -1;
}

std::vector<MicroPlan> walk(const WindowShape& shape) {
  return preview_windows(shape, 1'000'000);
}

// Counts of a training, from its micro-steps alone.
struct Counted {
  std::int64_t updates = 0;
  std::int64_t open = 0;  // micro-steps after the last update
};
Counted count(const std::vector<MicroPlan>& micros) {
  Counted counted;
  for (const MicroPlan& micro : micros) {
    counted.open = micro.update ? 0 : counted.open + 1;
    counted.updates += micro.update;
  }
  return counted;
}

std::vector<std::int64_t> updates_by_epoch(const RunPlan& plan, std::int64_t epochs) {
  WindowShape shape = plan.window;
  shape.max_updates.reset();
  shape.max_micro_steps.reset();
  shape.max_iters.reset();
  shape.knobs.run_tail = RunTail::discard;
  shape.max_epochs = epochs;
  std::vector<std::int64_t> updates(static_cast<std::size_t>(epochs));
  for (const MicroPlan& micro : walk(shape))
    if (micro.update) ++updates[static_cast<std::size_t>(micro.epoch)];
  return updates;
}

template <typename E>
E any(std::mt19937& random, int count) {
  return static_cast<E>(random() % static_cast<unsigned>(count));
}

RunSpec random_spec(std::mt19937& random) {
  RunSpec spec = spec_of("");
  AccumulationSpec& accumulation = spec.accumulation;
  accumulation.dialect = any<Dialect>(random, 5);
  accumulation.steps = 1 + random() % 9;
  accumulation.micro_batch = 1 + random() % 4;
  spec.parallel.data = 1 + random() % 3;
  spec.data.samples = 12 + random() % 120;
  spec.schedule.warmup = random() % 3 == 0 ? random() % 12 : 0;
  if (random() % 3 == 0) accumulation.knobs.tail = any<EpochTail>(random, 5);
  if (random() % 4 == 0) accumulation.knobs.run_tail = any<RunTail>(random, 2);
  if (random() % 4 == 0) accumulation.knobs.normalizer = any<Normalizer>(random, 6);
  if (random() % 4 == 0) accumulation.knobs.uneven_ranks = any<UnevenRanks>(random, 4);
  if (random() % 4 == 0) accumulation.knobs.schedule_clock = any<ScheduleClock>(random, 6);
  if (accumulation.dialect == Dialect::accelerate && random() % 2) accumulation.sync_with_dataloader = random() % 2;
  if (accumulation.dialect == Dialect::accelerate && random() % 3 == 0) accumulation.split_batches = true;
  switch (random() % 4) {
    case 0:
      spec.run.updates = 1 + random() % 60;
      break;
    case 1:
      spec.run.epochs = (1 + random() % 12) / 4.0;
      break;
    case 2:
      spec.run.samples = 1 + random() % 400;
      break;
    default:
      spec.run.tokens = 1 + random() % 4000;
      break;
  }
  return spec;
}

}  // namespace

class TestRunPlan : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_line_is_true_for_ten_thousand_random_specs() {
    std::mt19937 random(20261121);
    int planned = 0;
    for (int round = 0; round < 10'000; ++round) {
      const RunSpec spec = random_spec(random);
      const Preflight result = preflight_files(spec, plain_host(), ".");
      if (!result.plan) continue;  // e.g. a window that never fills
      ++planned;
      const RunPlan& plan = *result.plan;
      const QString line = QString::fromStdString(plan.arithmetic());
      const QByteArray shown = line.toUtf8() + "\n" + QByteArray::fromStdString(write_spec(spec));
      const auto micros = walk(plan.window);
      const Counted counted = count(micros);
      QVERIFY2(number_before(line, "micro-steps?(?:,|;)") != -1 || micros.empty(), shown);
      const auto run = QRegularExpression("; (\\d+) updates? = (\\d+) micro-step").match(line);
      QVERIFY2(run.hasMatch(), shown);
      QVERIFY2(run.captured(1).toLongLong() == counted.updates, shown);
      QVERIFY2(run.captured(2).toULongLong() == micros.size(), shown);
      const auto unused = QRegularExpression("the last (\\d+) of them never used").match(line);
      QVERIFY2((unused.hasMatch() ? unused.captured(1).toLongLong() : 0) == counted.open, shown);

      const auto product =
          QRegularExpression("^(\\d+) micro x (\\d+) accum x (\\d+) ranks? = (\\d+) samples?").match(line);
      QVERIFY2(product.hasMatch(), shown);
      QVERIFY2(product.captured(1).toLongLong() * product.captured(2).toLongLong() * product.captured(3).toLongLong() ==
                   product.captured(4).toLongLong(),
               shown);
      for (const MicroPlan& micro : micros)
        if (micro.reason == BoundaryReason::full && plan.knobs.counter_reset != CounterReset::never)
          QVERIFY2(micro.window_size == product.captured(2).toLongLong(), shown);

      const auto epochs = updates_by_epoch(plan, 3);
      if (const auto each = QRegularExpression("; (\\d+) updates? per epoch").match(line); each.hasMatch())
        for (const std::int64_t updates : epochs) QVERIFY2(updates == each.captured(1).toLongLong(), shown);
      if (const auto three = QRegularExpression("; (\\d+), (\\d+) and (\\d+) updates in").match(line); three.hasMatch())
        for (int i = 0; i < 3; ++i)
          QVERIFY2(epochs[static_cast<std::size_t>(i)] == three.captured(i + 1).toLongLong(), shown);
      if (const auto mean = QRegularExpression("; (about )?(\\d+\\.\\d+) updates per epoch").match(line);
          mean.hasMatch()) {
        const auto many = updates_by_epoch(plan, plan.window.steps);  // after N epochs a carried window is closed
        const double sum = std::accumulate(many.begin(), many.end(), 0.0);
        QVERIFY2(std::abs(sum / static_cast<double>(plan.window.steps) - mean.captured(2).toDouble()) < 0.01, shown);
      }

      auto divided = QRegularExpression(
                         "(tail|last) window(?: of the first epoch)? (\\d+) of \\d+ micro-steps, divided by "
                         "(\\d+)")
                         .globalMatch(line);
      while (divided.hasNext() && plan.knobs.normalize_when == NormalizeWhen::eager) {
        const auto part = divided.next();
        const bool last = part.captured(1) == "last";
        bool found = false;
        for (const MicroPlan& micro : micros)
          found |= micro.reason == (last ? BoundaryReason::run_end : BoundaryReason::epoch_end) &&
                   micro.window_size == part.captured(2).toLongLong() &&
                   micro.division.value == part.captured(3).toDouble();
        const bool reached = last || plan.totals.epochs_started > 1 || micros.back().epoch_ends;
        QVERIFY2(found || !reached, shown);
      }

      const auto warm =
          QRegularExpression("warm-up (?:\\d+ positions? = )?(\\d+) updates? = (\\d+) micro-steps?").match(line);
      if (warm.hasMatch()) {
        const auto at = static_cast<std::size_t>(warm.captured(2).toLongLong());
        QVERIFY2(at >= 1 && at <= micros.size(), shown);
        QVERIFY2(micros[at - 1].schedule_position >= spec.schedule.warmup, shown);
        QVERIFY2(at == 1 || micros[at - 2].schedule_position < spec.schedule.warmup, shown);
        QVERIFY2(count({micros.begin(), micros.begin() + static_cast<std::ptrdiff_t>(at)}).updates ==
                     warm.captured(1).toLongLong(),
                 shown);
      }
    }
    QVERIFY2(planned > 8000, QByteArray::number(planned));
  }

  void a_run_ends_when_its_clock_has_reached_the_limit_data() {
    const Rows<QString, int, int> row;
    row("updates", "run.updates=5", 18, 5);
    row("nothing set", "", 668, 200);
    row("epochs", "run.epochs=2", 20, 6);
    row("half an epoch", "run.epochs=0.5", 5, 2);
    row("one and a half", "run.epochs=1.5", 15, 5);
    row("samples of whole micro-steps", "run.samples=16", 8, 2);
    row("samples within a micro-step", "run.samples=17", 9, 3);
    row("samples past an epoch with a short batch", "run.samples=20", 11, 4);
    row("tokens", "run.tokens=128", 8, 2);
    row("tokens within a sample", "run.tokens=129", 9, 3);
    row("max_iters", "accumulation.dialect=mmengine;accumulation.max_iters=7", 7, 2);
    row("epochs of a dialect that drops", "accumulation.dialect=colossalai;run.epochs=1.5", 13, 3);
  }
  void a_run_ends_when_its_clock_has_reached_the_limit() {
    const auto [settings, micro_steps, updates] = current_row<QString, int, int>();
    // 19 samples in batches of 2: ten micro-steps per epoch, the last of one sample.
    const RunPlan plan = plan_of(spec_of("data.samples=19;accumulation.micro_batch=2;" + settings));
    QCOMPARE(plan.totals.micro_steps, micro_steps);
    QCOMPARE(plan.totals.updates, updates);
  }

  /// Windows that a plan passes over at once, against a walk through every micro-step.
  void a_limit_in_samples_is_what_walking_there_comes_to() {
    QRandomGenerator random(20261122);
    const auto pick = [&random](std::initializer_list<const char*> values) {
      return QString(values.begin()[random.bounded(static_cast<int>(values.size()))]);
    };
    int planned = 0;
    for (int i = 0; i < 3000; ++i) {
      RunSpec spec =
          spec_of(QString("data.samples=%1;accumulation.micro_batch=%2;accumulation.steps=%3;parallel.data=%4;"
                          "run.samples=%5;schedule.warmup=%6;accumulation.dialect=%7")
                      .arg(random.bounded(1, 200))
                      .arg(random.bounded(1, 4))
                      .arg(random.bounded(1, 9))
                      .arg(random.bounded(1, 4))
                      .arg(random.bounded(1, 3000))
                      .arg(random.bounded(0, 60))
                      .arg(pick({"accrue", "llm", "colossalai", "accelerate", "mmengine"})));
      if (random.bounded(2) == 0) {
        std::vector<Finding> findings;
        for (const QString& setting :
             {"accumulation.tail=" + pick({"flush", "carry", "drop_stop", "drop_drain", "pad_repeat"}),
              "accumulation.schedule_clock=" + pick({"update", "update_times_world", "micro_step", "epoch"})})
          set_field(spec, setting.toStdString(), findings);
      }
      const Preflight checked = preflight_files(spec, plain_host(), ".");
      if (!checked.plan) continue;
      ++planned;
      const RunPlan& plan = *checked.plan;
      WindowShape shape = plan.window;
      shape.max_micro_steps = 100'000'000;
      if (!spec.accumulation.max_iters && shape.knobs.normalizer == Normalizer::run_remainder)
        shape.max_iters = shape.max_micro_steps;
      AccumulationWindow walk(shape);
      for (std::int64_t done = 0; done < *spec.run.samples;) {
        const auto micro = walk.next();
        if (!micro) break;
        done += plan.order.samples_in_batch(micro->batch);
      }
      QCOMPARE(plan.window.max_micro_steps, std::optional(std::max<std::int64_t>(1, walk.micro_steps_done())));
      AccumulationWindow warm(plan.window);
      std::int64_t samples = 0;
      while (warm.schedule_position() < plan.curve.warmup) {
        const auto micro = warm.next();
        if (!micro) break;
        samples += plan.order.samples_in_batch(micro->batch);
      }
      QCOMPARE(plan.warmup_samples, samples);
      QCOMPARE(plan.warmup_micro_steps, warm.micro_steps_done());
      QCOMPARE(plan.warmup_updates, warm.updates_done());
    }
    QVERIFY(planned > 1000);
  }

  void tokens_of_unequal_samples_are_counted_one_by_one() {
    const RunPlan plan = plan_of(
        spec_of("model.kind=linear;model.loss=cross_entropy;model.outputs=2;data.kind=inline;data.shuffle=false;"
                "data.sequences=[[1],[1,2],[1,2,3],[1,2,3,4]];data.labels=[[1],[1,-100],[1,0,1],[0,0,0,0]];"
                "accumulation.micro_batch=1;accumulation.steps=1;run.tokens=6"));
    QCOMPARE(plan.totals.micro_steps, 4);  // 1, 2, 5 and 9 tokens
    QCOMPARE(plan.tokens_per_update, 0);
  }

  void the_schedule_ends_with_the_run() {
    RunSpec spec = spec_of(
        "data.samples=20;accumulation.micro_batch=1;parallel.data=2;accumulation.dialect=accelerate;"
        "schedule.kind=linear;optimizer.lr=1;run.epochs=1");
    const RunPlan plan = plan_of(spec);
    QCOMPARE(plan.totals.schedule_ticks, 6);  // three updates on two ranks
    QCOMPARE(plan.curve.total, 6);
    QCOMPARE(lr_at(plan.curve, plan.totals.schedule_ticks), 0.0);
    QVERIFY(lr_at(plan.curve, plan.totals.schedule_ticks - 1) > 0.0);
  }

  void numbers_of_the_model_and_the_wire() {
    const RunPlan plan =
        plan_of(spec_of("model.layers=4;model.width=128;model.context=128;parallel.data=2;"
                        "parallel.bucket_mb=1"));
    QCOMPARE(plan.parameter_count, 842496);
    // Two ranks send once what they hold, and 16 words in which they agree about the update.
    QCOMPARE(plan.wire_bytes_per_update, 842496 * 4 + 16 * 8);
    QCOMPARE(plan.gradient_buckets, 4);
    QCOMPARE(plan.memory.parameters, 842496 * 4);
    QCOMPARE(plan.memory.optimizer, 842496 * 8);
    QCOMPARE(plan.global_batch, 32);
    QCOMPARE(plan.tokens_per_update, 32 * 128);
    const RunPlan each =
        plan_of(spec_of("model.layers=4;model.width=128;model.context=128;parallel.data=2;"
                        "accumulation.reduce_when=every_micro_step"));
    QCOMPARE(each.wire_bytes_per_update, 4 * 842496 * 4 + 16 * 8);
    QCOMPARE(plan_of(spec_of("")).wire_bytes_per_update, 0);
  }

  void ranks_of_one_model_send_activations() {
    // Four stages of one replica; 4 micro-steps of 4 samples, T = 8, D = 16. An inner stage sends outputs and
    // gradients.
    const RunPlan plan = plan_of(
        spec_of("model.layers=4;model.width=16;model.context=8;model.heads=2;parallel.pipeline=4;data.samples=6000"));
    const std::int64_t once = 4 * (4 * 8) * 16 * 4, words = 3 * 8 * (3 + 16);
    const std::int64_t table = plan.spec.model.vocabulary * 16 * 4;  // which the outer stages add up
    QCOMPARE(plan.wire_bytes_per_update, words + std::max(2 * once, once + table));
  }

  void a_no_sync_scope_around_the_backward_alone_reduces_every_micro_step() {
    const auto reduces = [](const char* settings) {
      return plan_of(spec_of(QString("parallel.data=2;run.updates=4;") + settings)).knobs.reduce_when;
    };
    QCOMPARE(reduces("accumulation.no_sync_cover=backward"), ReduceWhen::every_micro_step);
    QCOMPARE(reduces("accumulation.no_sync_cover=forward"), ReduceWhen::boundary);
    QCOMPARE(reduces("accumulation.dialect=llm"), ReduceWhen::boundary);  // as the original means it
    QCOMPARE(reduces("accumulation.no_sync_cover=backward;accumulation.reduce_when=boundary"), ReduceWhen::boundary);
    QCOMPARE(reduces("accumulation.no_sync_cover=backward;accumulation.reduce_mechanism=handlers"),
             ReduceWhen::boundary);
  }

  void the_report_says_when_gradients_travel_and_why_data() {
    const Rows<QString, QString> row;
    row("reducer", "accumulation.reduce_mechanism=reducer", "while a window's last backward runs");
    row("post_backward", "accumulation.reduce_mechanism=post_backward",
        "after a window's last backward (accumulation.reduce_mechanism post_backward reduces after it by definition; "
        "only reducer overlaps the two)");
    row("handlers", "accumulation.reduce_mechanism=handlers",
        "after a window's last backward (accumulation.reduce_mechanism handlers reduces after it by definition; "
        "only reducer overlaps the two)");
    row("switched off", "accumulation.reduce_mechanism=reducer;parallel.overlap_grad_reduce=false",
        "after a window's last backward (parallel.overlap_grad_reduce is off)");
    row("a bug", "accumulation.reduce_mechanism=reducer;teaching.bug=unused_parameters",
        "after a window's last backward (teaching.bug meddles with them first)");
  }
  void the_report_says_when_gradients_travel_and_why() {
    const auto [settings, words] = current_row<QString, QString>();
    const QString report = QString::fromStdString(plan_report(plan_of(spec_of("parallel.data=2;" + settings))));
    QVERIFY2(report.contains(words), qPrintable(report));
  }

  void handlers_reduce_all_gradients_in_one_bucket() {
    const RunPlan plan =
        plan_of(spec_of("model.layers=4;model.width=128;model.context=128;parallel.data=2;parallel.bucket_mb=1;"
                        "accumulation.reduce_mechanism=handlers"));
    QCOMPARE(plan.gradient_buckets, 1);
    QCOMPARE(plan.wire_bytes_per_update, 842496 * 4 + 16 * 8);
  }

  void every_knob_is_a_field_of_the_spec_and_a_line_of_the_summary() {
    const QJsonObject knobs =
        QJsonDocument::fromJson(QByteArray::fromStdString(plan_summary_json(plan_of(spec_of("")))))
            .object()["knobs"]
            .toObject();
    qsizetype all = 0;
    for_each_knob([&](const char* name, auto, auto) {
      ++all;
      QVERIFY2(find_field(std::string("accumulation.") + name), name);
      QVERIFY2(knobs.contains(name), name);
    });
    QCOMPARE(knobs.size(), all);
  }

  void a_global_batch_that_does_not_divide_is_rounded_as_asked_data() {
    Rows<int, QString, int>();
    for (const int batch : {12, 13, 14, 15, 16, 1}) {  // micro-batches of 2 on 2 ranks
      QTest::addRow("%d round", batch) << batch << "round" << std::max(1, (batch + 2) / 4);
      QTest::addRow("%d fill", batch) << batch << "fill" << (batch + 3) / 4;
      if (batch >= 4) QTest::addRow("%d decrease", batch) << batch << "decrease" << batch / 4;
    }
  }
  void a_global_batch_that_does_not_divide_is_rounded_as_asked() {
    const auto [batch, rounding, steps] = current_row<int, QString, int>();
    const RunPlan plan = plan_of(spec_of(QString("accumulation.micro_batch=2;parallel.data=2;"
                                                 "accumulation.group_length=global_batch;"
                                                 "accumulation.global_batch=%1;accumulation.batch_rounding=%2")
                                             .arg(batch)
                                             .arg(rounding)));
    QCOMPARE(plan.window.steps, std::int64_t(steps));
    QCOMPARE(plan.global_batch, std::int64_t(4 * steps));
  }

  void a_memory_search_keeps_every_sample_of_an_update() {
    std::mt19937_64 random(7);
    int smaller = 0;
    for (int i = 0; i < 300; ++i) {
      const auto pick = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
      const int micro = pick(48);
      const int steps = pick(12);
      RunSpec spec = spec_of(QString("accumulation.micro_batch=%1;accumulation.steps=%2;run.updates=3;"
                                     "data.samples=2000;accumulation.group_length=memory_search")
                                 .arg(micro)
                                 .arg(steps));
      const RunPlan free = plan_of(spec);  // this host's memory is not known: nothing is searched for
      QCOMPARE(free.order.micro_batch, std::int64_t(micro));
      // Between what one sample takes and what all of them do.
      const double part = static_cast<double>(random() % 1000 + 1) / 1001.0;
      RunSpec single = spec;
      single.accumulation.micro_batch = 1;
      const auto least = static_cast<double>(plan_of(single).memory.total());
      const auto most = static_cast<double>(free.memory.total());
      spec.accumulation.knobs.memory_limit = (least + part * (most - least)) / 1048576.0;
      const RunPlan plan = plan_of(spec);
      QCOMPARE(plan.order.micro_batch * plan.window.steps, std::int64_t(micro) * steps);
      QCOMPARE(plan.global_batch, free.global_batch);
      QVERIFY(plan.order.micro_batch <= micro);
      smaller += plan.order.micro_batch < micro ? 1 : 0;
      const double limit = *spec.accumulation.knobs.memory_limit * 1048576.0;
      QVERIFY(static_cast<double>(plan.memory.total()) <= limit);
    }
    QVERIFY(smaller > 100);
  }

  void a_drained_loader_plans_for_what_it_hands_out_data() {
    const Rows<int, int, QString> row;
    row("ten batches", 10, 4, "1 3 5");
    row("no remainder", 8, 4, "1 3 5");
    row("N = 1 loses the last batch too", 5, 1, "4 8 12");
    row("nothing is left", 1, 1, "0 0 0");
  }
  void a_drained_loader_plans_for_what_it_hands_out() {
    const auto [samples, steps, updates] = current_row<int, int, QString>();
    QStringList counted;
    for (int epochs = 1; epochs <= 3; ++epochs)
      counted << QString::number(
          plan_of(spec_of(QString("data.samples=%1;accumulation.micro_batch=1;accumulation.steps=%2;run.epochs=%3;"
                                  "accumulation.dialect=colossalai;accumulation.replay=[\"drain_early\"]")
                              .arg(samples)
                              .arg(steps)
                              .arg(epochs)))
              .totals.updates);
    QCOMPARE(counted.join(' '), updates);
  }

  void a_bug_turns_the_knob_that_it_is_about() {
    const auto knobs = [](const char* bug) { return resolve_knobs(spec_of(QString("teaching.bug=%1").arg(bug))); };
    QCOMPARE(knobs("none").normalizer, Normalizer::tokens);
    QCOMPARE(knobs("no_division").normalizer, Normalizer::none);
    QCOMPARE(knobs("no_division").reduce_op, ReduceOp::mean);
    QCOMPARE(knobs("schedule_per_micro_step").schedule_clock, ScheduleClock::micro_step);
    QCOMPARE(knobs("no_no_sync").reduce_when, ReduceWhen::every_micro_step);
    QCOMPARE(knobs("clip_every_micro_step").clip_stage, ClipStage::every_micro_step);
  }

  void a_rank_derives_the_same_plan_from_plan_json_data() {
    QTest::addColumn<QString>("settings");
    QTest::newRow("defaults") << "";
    QTest::newRow("every dialect-own key") << "accumulation.dialect=accelerate;accumulation.split_batches=true;"
                                              "accumulation.sync_with_dataloader=false;parallel.data=2";
    QTest::newRow("samples") << "run.samples=1000;schedule.warmup=7";
    QTest::newRow("lengths") << "accumulation.group_length=by_update;accumulation.length_schedule=[[0,1],[3,8]]";
    QTest::newRow("sequences") << "model.kind=linear;model.loss=cross_entropy;model.outputs=2;data.kind=inline;"
                                  "data.sequences=[[1],[1,2.5]];data.labels=[[1],[1,-100]];"
                                  "accumulation.micro_batch=1;run.tokens=9";
    QTest::newRow("strange names") << "run.name=a \"b\" \\ c";
  }
  void a_rank_derives_the_same_plan_from_plan_json() {
    QFETCH(QString, settings);
    RunOrder order;
    order.plan = plan_of(spec_of(settings));
    order.plan.data.files = {{"2049:77:9:1700000000.000000001", "the hash"}, {"", "of a file just written"}};
    order.run_id = "20261121-142233-k3f9";
    order.run_dir = "/tmp/runs/\xC3\xA9";
    order.origin_ns = 123456789012345;
    order.resume_from = "step-100";
    order.first_seq = {7, 8};
    order.interactive = true;
    const auto back = run_order_from_json(to_json(order));
    QVERIFY2(back, back ? "" : back.error().text().c_str());
    QVERIFY(back->plan.spec == order.plan.spec);
    QVERIFY(back->plan.window == order.plan.window);
    QVERIFY(back->plan.order == order.plan.order);
    QVERIFY(back->plan.curve == order.plan.curve);
    QVERIFY(back->plan.data == order.plan.data);
    QVERIFY(back->plan.totals == order.plan.totals);
    QVERIFY(back->plan.memory == order.plan.memory);
    QVERIFY(back->plan.grid == order.plan.grid);
    QCOMPARE(back->plan.base_dir, order.plan.base_dir);
    QVERIFY(back->plan.base_dir.is_absolute());
    QCOMPARE(back->plan.threads_per_rank, order.plan.threads_per_rank);
    QVERIFY(back->plan.backend == order.plan.backend);
    QCOMPARE(plan_summary_json(back->plan), plan_summary_json(order.plan));
    QCOMPARE(back->run_id, order.run_id);
    QCOMPARE(back->run_dir, order.run_dir);
    QCOMPARE(back->origin_ns, order.origin_ns);
    QCOMPARE(back->resume_from, order.resume_from);
    QVERIFY(back->first_seq == order.first_seq);
    QCOMPARE(back->interactive, order.interactive);
    QCOMPARE(to_json(*back), to_json(order));
  }

  void a_large_inline_spec_goes_through_plan_json() {
    RunSpec spec = spec_of("model.kind=linear;accumulation.micro_batch=1;run.epochs=1");
    spec.data.kind = DataKind::inline_;
    for (int i = 0; i < 20'000; ++i) {
      spec.data.x.push_back({i / 7.0});
      spec.data.y.push_back({i / 3.0});
    }
    RunOrder order{.plan = plan_of(spec), .run_id = "inline"};
    const auto back = run_order_from_json(to_json(order));
    QVERIFY2(back, back ? "" : back.error().text().c_str());
    QVERIFY(back->plan.spec == spec);
  }

  void a_damaged_plan_is_refused_by_name_data() {
    const Rows<QString, QString, QString> row;
    row("newer", "\"v\": 1", "\"v\": 2", "the plan has format version 2, this program reads version 1");
    row("torn", "\"data\": {", "\"data\": ", "the plan is damaged");
    row("missing key", "\"run_id\"", "\"run_name\"", "key 'run_id' not found");
    row("spec that is none", "accrue = 1", "accrue = 1\\nwarp = 9", "warp: is not a key of a spec");
    row("no backend", "\"backend\": \"shm\",\n  \"threads", "\"backend\": \"auto\",\n  \"threads",
        "no backend is chosen");
    row("name that is a path", "\"run_id\": \"a-run\"", "\"run_id\": \"../../e/victim\"",
        "run_id \"../../e/victim\" is not a run's name");
    row("checkpoint that is a path", "\"resume_from\": \"\"", "\"resume_from\": \"../other/step-1\"",
        "is not a checkpoint's name");
    row("endless data", "\"samples\": 4096", "\"samples\": 9223372036854775807", "data.samples is 9223372036854775807");
    row("more samples than numbers", "\"samples\": 4096", "\"samples\": 1e300",
        "1e+300 is not a whole number of 64 bits");
    row("other samples", "\"samples\": 4096", "\"samples\": 4095", "it was changed after it was written");
    row("no threads", "\"threads_per_rank\": 1", "\"threads_per_rank\": 0", "threads_per_rank is 0");
    row("endless run", "updates = 77", "updates = 9000000000000000", "run.updates");
    row("N out of range", "\"steps_set\": []", "\"steps_set\": [{\"from\": 3, \"steps\": 0}]",
        "a number of steps of steps_set is 0");
    row("N that nobody set", "\"steps_set\": []", "\"steps_set\": [{\"from\": 3, \"steps\": 7}]",
        "it was changed after it was written");
    row("N set backwards", "\"steps_set\": []",
        "\"steps_set\": [{\"from\": 3, \"steps\": 7}, {\"from\": 3, \"steps\": 8}]", "an update of steps_set is 3");
    row("times that overflow", "\"origin_ns\": 0", "\"origin_ns\": 9223372036854775807",
        "origin_ns is 9223372036854775807");
  }
  void a_damaged_plan_is_refused_by_name() {
    const auto [from, to, words] = current_row<QString, QString, QString>();
    const RunOrder order{
        .plan =
            plan_of(spec_of("data.samples=4096;data.validation_fraction=0;launch.threads_per_rank=1;run.updates=77")),
        .run_id = "a-run"};
    QString json = QString::fromStdString(to_json(order));
    QVERIFY(json.contains(from));
    const auto back = run_order_from_json(json.replace(json.indexOf(from), from.size(), to).toStdString());
    VERIFY_FAILS(back, ErrorCode::protocol, words.toStdString());
  }

  void a_plan_of_an_earlier_version_is_named_as_such_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("words");
    QTest::newRow("key") << "[data]\\nstream = true"
                         << "an earlier version of Accrue wrote this run folder: data.stream was removed";
    QTest::newRow("choice") << "[accumulation]\\nuneven_ranks = \\\"join\\\""
                            << "accumulation.uneven_ranks = \"join\" was removed";
  }
  void a_plan_of_an_earlier_version_is_named_as_such() {
    QFETCH(QString, line);
    QFETCH(QString, words);
    RunOrder order{.plan = plan_of(spec_of("")), .run_id = "a-run"};
    order.plan.spec = {};
    QString json = QString::fromStdString(to_json(order));
    const auto back = run_order_from_json(json.replace("accrue = 1", "accrue = 1\\n" + line).toStdString());
    QVERIFY(!back);
    const QString text = QString::fromStdString(back.error().text());
    QVERIFY2(text.contains(words), qPrintable(text));
    QVERIFY2(text.contains("Resume the run with that version"), qPrintable(text));
    QVERIFY2(!text.contains("damaged"), qPrintable(text));
  }

  void the_summary_is_an_object_with_the_numbers() {
    const RunPlan plan = plan_of(spec_of("parallel.data=2;schedule.warmup=3"));
    const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(plan_summary_json(plan))).object();
    QCOMPARE(json["arithmetic"].toString().toStdString(), plan.arithmetic());
    QCOMPARE(json["global_batch"].toInt(), 32);
    QCOMPARE(json["updates"].toInt(), 200);
    QCOMPARE(json["warmup"].toObject()["micro_steps"].toInt(), 12);
    QCOMPARE(json["warmup"].toObject()["samples"].toInt(), 96);
    QCOMPARE(json["knobs"].toObject()["tail"].toString(), QString("flush"));
    QCOMPARE(json["memory_bytes_per_rank"].toObject()["total"].toInteger(), plan.memory.total());
  }

  /// The numbers of model.kind would be those of another model.
  void of_a_librarys_model_no_cost_is_planned() {
    const RunSpec spec = spec_of("parallel.data=2;megatron.custom_model_provider_function=slope");
    const PluginFacts library{
        "mine.so", "mine", std::string(64, '0'), {{"custom_model_provider_function", "slope"}}, {}};
    const RunPlan plan = *preflight_files(spec, plain_host(), ".", std::span(&library, 1)).plan;
    QCOMPARE(plan.memory.total(), std::int64_t{0});
    QCOMPARE(plan.wire_bytes_per_update, std::int64_t{0});
    const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(plan_summary_json(plan))).object();
    QCOMPARE(json["global_batch"].toInt(), 32);
    for (const char* key : {"parameters", "parameter_groups", "memory_bytes_per_rank", "gradient_buckets",
                            "wire_bytes_per_update", "stages"})
      QVERIFY2(json[QLatin1String(key)].isNull(), key);
    const QString report = QString::fromStdString(plan_report(plan));
    QVERIFY2(report.contains("not known before the run: a plug-in library makes the model \"slope\""),
             qPrintable(report));
    for (const char* number : {" KiB", " MiB", "bucket"}) QVERIFY2(!report.contains(number), qPrintable(report));
  }

  void ranks_that_are_alike_share_a_row() {
    const RunPlan plan = plan_of(spec_of("model.layers=4;parallel.data=2;parallel.pipeline=4;data.samples=6000"));
    const QString report = QString::fromStdString(plan_report(plan));
    for (const char* row : {"0 to 1 .* 4  data .*, pipeline ", "2 to 3 .* 3  data ", "4 to 5 .* 2  data ",
                            "6 to 7 .* 1  data ", "bubble +42.9 % of a window's time"})
      QVERIFY2(report.contains(QRegularExpression(row)), qPrintable(report));
    const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(plan_summary_json(plan))).object();
    QCOMPARE(json["bubble"].toDouble(), 3.0 / 7.0);
    QCOMPARE(json["stages"].toArray().size(), 4);
    const QJsonObject last = json["stages"][3].toObject();
    QCOMPARE(last["ranks"].toArray(), QJsonArray({6, 7}));
    QCOMPARE(last["chunks_in_flight"].toInt(), 1);
    QCOMPARE(last["memory_bytes"]["activations"].toInteger(), plan.stages.back().activations);
    QCOMPARE(last["wire_bytes_per_update"]["data"].toInteger(), plan.stages.back().sent(Axis::data));
    QVERIFY(!QString::fromStdString(plan_report(plan_of(spec_of("parallel.data=1")))).contains("Each rank"));
  }

  /// By hand: s = 64, b = 1, h = 128, a = 4, L = 4, V = 256, so s b h is 8 KiB, 5 a s / h is 10, s / (6 h) is 1 / 12
  /// and V / (12 h L) is 1 / 24. Ours, fused: 4 x 64 x ((2 + 8) x 128 + 4 + 4) bytes.
  void the_report_sets_published_forms_beside_its_own_data() {
    const Rows<QString, QString, QString> row;
    row("undivided", "", "322.0 KiB; by the published table, in 16 bit with dropout, 352.0 KiB", "");
    row("by rows", "parallel.tensor=2;parallel.sequence=true", "16 bit with dropout, 176.0 KiB", "");
    // (1 + 1 / 6 + 1 / 24) / (1 + 1 / 12 + 1 / 24) = 29 / 27, and 10 of 44.
    row("selective", "parallel.recompute=selective", "16 bit with dropout, 272.0 KiB",
        " 0.0 % fewer bytes of a block; by the published forms 22.7 % fewer, 7.4 % more operations");
    // 96 (1 + 1 / 12 + 1 / 32) / 72 / (27 / 24), and 42 of 44.
    row("full", "parallel.recompute=full", "16 bit with dropout, 16.0 KiB",
        "by the published forms 95.5 % fewer, 32.1 % more operations");
    row("full, the first blocks alone", "parallel.recompute=full;parallel.recompute_method=block", "", "");
    row("another model", "model.kind=mlp", "", "");
  }
  void the_report_sets_published_forms_beside_its_own() {
    const auto [settings, bytes, operations] = current_row<QString, QString, QString>();
    const QString report = QString::fromStdString(plan_report(
        plan_of(spec_of("model.layers=4;model.width=128;model.heads=4;model.context=64;model.vocabulary=256;"
                        "accumulation.micro_batch=1;" +
                        settings))));
    QCOMPARE(report.contains("activations of a block"), !bytes.isEmpty());
    QVERIFY2(report.contains(bytes), qPrintable(report));
    QCOMPARE(report.contains("by the published forms"), !operations.isEmpty());
    QVERIFY2(report.contains(operations), qPrintable(report));
  }

  void the_report_shows_every_kind_of_number() {
    const QString report =
        QString::fromStdString(plan_report(plan_of(spec_of("parallel.data=2;schedule.warmup=3;data.samples=6000"))));
    for (const char* words : {"4 micro x 4 accum x 2 ranks = 32 samples per update", "6,000 samples",
                              "3 positions = 3 updates = 12 "
                              "micro-steps = 96 samples",
                              "activations", "optimizer state", "by the rank that sends most", "in 1 bucket"})
      QVERIFY2(report.contains(words), qPrintable(report));
  }

  void planning_a_long_run_is_quick() {
    QElapsedTimer timer;
    timer.start();
    const RunPlan plan = plan_of(spec_of("data.samples=10000000;accumulation.micro_batch=1;run.updates=2000000"));
    QCOMPARE(plan.totals.micro_steps, 8'000'000);
    QVERIFY(plan.arithmetic().size() > 10);
    QVERIFY2(timer.elapsed() < 2000, qPrintable(QString::number(timer.elapsed())));
  }
};

ACCRUE_TEST_MAIN(TestRunPlan)

}  // namespace test_run_plan
#include "test_run_plan.moc"
