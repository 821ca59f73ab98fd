// SPDX-License-Identifier: GPL-3.0-or-later
// The gradient pool: what the events of ranks fill it with, and what it says in words.
#include <QHelpEvent>
#include <QScopeGuard>
#include <QTest>
#include <QToolTip>

#include "kit/text_scale.h"
#include "live/gradient_pool.h"
#include "made_run.h"
#include "series/event_text.h"
#include "series/rank_status.h"
#include "support/test_program.h"

namespace test_pool {

using namespace accrue;
using namespace accrue::ui;

namespace {

RunPlan planOf(EpochTail tail, std::int64_t batches = 10, std::int64_t ranks = 2, std::int64_t epochs = 2) {
  RunPlan plan = accrue::test::MadeRun{.ranks = ranks, .batchesPerEpoch = batches}.plan();
  plan.grid.data = ranks;
  plan.window.knobs.tail = tail;
  plan.window.max_updates.reset();
  plan.window.max_epochs = epochs;
  return plan;
}

RunEvent micro(std::int64_t rank, const MicroPlan& plan, std::int64_t tokens) {
  const std::int64_t at = plan.micro_step;
  return {rank, at, at, accrue::test::MadeRun::microSteps(plan, 1.0, tokens, 4, at, 1)};
}

/// Micro-step `step` of windows of four that flush.
RunEvent micro(std::int64_t rank, std::int64_t step, std::int64_t tokens) {
  AccumulationWindow window(planOf(EpochTail::flush).window);
  window.seek(step - 1);
  return micro(rank, window.next().value(), tokens);
}

RunEvent reduced(std::int64_t rank, std::int64_t update, std::int64_t step) {
  return {rank, step, step,
          Sync{{update}, {step}, {"data"}, {"all_reduce"}, {CollectivePurpose::gradients}, {64}, {0}, {1}}};
}

RunEvent updated(std::int64_t update, std::int64_t step, const char* reason = "full",
                 StepOutcome outcome = StepOutcome::updated, std::int64_t dropped = 0) {
  Update body;
  body.update = update;
  body.micro_step = step;
  body.grad_norm = 0.82;
  body.reason = reason;
  body.outcome = outcome;
  body.steps = 4;
  body.dropped_batches = dropped;
  return {0, step, step, body};
}

PoolView viewOf(const RankTracker& tracker) {
  return {tracker.inWindow(), tracker.lastEnd(), tracker.drained()};
}

/// All ranks through micro-steps (from, to], and the updates that end their windows.
void train(RankTracker& tracker, const RunPlan& plan, std::int64_t to) {
  AccumulationWindow window(plan.window);
  for (auto step = window.next(); step && step->micro_step <= to; step = window.next()) {
    if (step->micro_step <= tracker.ranks().at(0).micro_step) continue;
    for (std::int64_t rank = 0; rank < plan.window.world; ++rank) tracker.take({micro(rank, *step, 8)});
    const bool drops = step->epoch_ends && plan.window.knobs.tail == EpochTail::drop_stop;
    const std::int64_t dropped = drops ? plan.window.batches_per_epoch - step->batch - 1 : 0;
    if (step->update)
      tracker.take({updated(step->window + 1, step->micro_step, std::string(to_string(step->reason)).c_str(),
                            StepOutcome::updated, dropped)});
  }
}

}  // namespace

class TestPool : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void slots_fill_with_their_share_of_tokens() {
    const RunPlan plan = planOf(EpochTail::flush);
    RankTracker tracker(plan);
    tracker.take({micro(0, 1, 31), micro(0, 2, 5), micro(1, 1, 36)});
    const auto ranks = tracker.inWindow();
    QCOMPARE(ranks.at(0).slots, (std::vector<PoolSlot>{{31, 1}, {5, 1}}));
    QCOMPARE(ranks.at(1).slots, (std::vector<PoolSlot>{{36, 1}}));
    GradientPool pool;
    pool.setView(viewOf(tracker));
    QCOMPARE(pool.text(), QStringLiteral("rank 0: 2 of 4, 36 items; rank 1: 1 of 4, 36 items"));
    QVERIFY(!tracker.drained());
  }

  void tanks_level_out_at_sync_and_drain_at_step() {
    const RunPlan plan = planOf(EpochTail::flush);
    RankTracker tracker(plan);
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 8), micro(1, step, 8)});
    QVERIFY(!tracker.ranks().at(0).isReduced());
    tracker.take({reduced(0, 1, 4), reduced(1, 1, 4)});
    QVERIFY(tracker.ranks().at(0).isReduced());
    GradientPool pool;
    pool.setView(viewOf(tracker));
    QCOMPARE(pool.text(), QStringLiteral("rank 0: 4 of 4, reduced; rank 1: 4 of 4, reduced"));
    tracker.take({updated(1, 4)});
    QVERIFY(tracker.drained());
    pool.setView(viewOf(tracker));
    QCOMPARE(pool.text(), QStringLiteral("rank 0: 4 of 4, drained; rank 1: 4 of 4, drained"));
    QCOMPARE(windowEndText(*tracker.lastEnd()), QStringLiteral("Update 1 is done: its gradient had norm 0.820"));
    // The next window begins from nothing.
    tracker.take({micro(0, 5, 7)});
    QVERIFY(!tracker.drained());
    QCOMPARE(tracker.inWindow().at(0).slots, (std::vector<PoolSlot>{{7, 1}}));
    QVERIFY(tracker.inWindow().at(1).slots.empty());
    QVERIFY(!tracker.inWindow().at(0).isReduced());
    // Nor does the moment between the two, which is all that both ranks have told.
    QCOMPARE(tracker.atOneMoment().at(0).filled, std::int64_t{0});
    QVERIFY(!allReduced(tracker.atOneMoment()));
  }

  void a_full_window_is_full_before_its_last_micro_steps_are_told() {
    RankTracker tracker(planOf(EpochTail::flush));
    tracker.take({micro(0, 1, 8), micro(1, 1, 8), micro(0, 2, 8), micro(1, 2, 8), updated(1, 4)});
    QVERIFY(tracker.drained());
    for (const auto& [rank, status] : tracker.inWindow()) QCOMPARE(status.filled, std::int64_t{4});
  }

  void a_rank_that_is_held_in_the_next_window_has_begun_it() {
    RankTracker tracker(planOf(EpochTail::flush));
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 8), micro(1, step, 8)});
    tracker.take({reduced(0, 1, 4), reduced(1, 1, 4), updated(1, 4)});
    QVERIFY(tracker.drained());
    Held held{.update = 2, .micro_step = 5, .phase = StepPhase::forward, .position = 1, .size = 4};
    tracker.take({{0, 1, 1, held}, {1, 1, 1, held}});
    QVERIFY(!tracker.drained());
    QCOMPARE(tracker.window(), std::int64_t{2});
    for (const auto& [rank, status] : tracker.inWindow()) {
      QCOMPARE(status.filled, std::int64_t{0});
      QVERIFY(status.slots.empty() && !status.isReduced());
    }
    tracker.take({micro(0, 5, 8)});
    QCOMPARE(tracker.inWindow().at(0).filled, std::int64_t{1});
    // Between two updates it is held in none.
    tracker.take({micro(0, 6, 8), micro(0, 7, 8), micro(0, 8, 8), updated(2, 8)});
    held = {.update = 3, .micro_step = 8, .phase = StepPhase::none, .position = 0, .size = 4};
    tracker.take({{0, 1, 1, held}});
    QVERIFY(tracker.drained());
  }

  void an_overflow_is_said_and_the_tank_is_empty() {
    const RunPlan plan = planOf(EpochTail::flush, 10, 1);
    RankTracker tracker(plan);
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 8)});
    tracker.take({updated(1, 4, "full", StepOutcome::skipped_overflow)});
    QVERIFY(tracker.drained());
    QVERIFY(windowEndText(*tracker.lastEnd()).startsWith(QStringLiteral("Update 1 skipped: overflow")));
  }

  void a_short_window_is_said_to_be_flushed() {
    const RunPlan plan = planOf(EpochTail::flush);
    RankTracker tracker(plan);
    train(tracker, plan, 10);
    QVERIFY2(windowEndText(*tracker.lastEnd()).endsWith(QStringLiteral("flushed at epoch end: 2 of 4")),
             qPrintable(windowEndText(*tracker.lastEnd())));
    QVERIFY(carriedText(tracker.ranks().at(0)).isEmpty());
  }

  void what_an_epoch_left_is_said_to_be_carried() {
    const RunPlan plan = planOf(EpochTail::carry);
    RankTracker tracker(plan);
    train(tracker, plan, 10);
    QVERIFY(!tracker.drained());
    QCOMPARE(tracker.inWindow().at(0).filled, 2);
    QVERIFY(carriedText(tracker.inWindow().at(0)).isEmpty());
    train(tracker, plan, 11);
    QCOMPARE(carriedText(tracker.inWindow().at(0)), QStringLiteral("carried: 2 micro-steps from epoch 1"));
    train(tracker, plan, 13);
    QVERIFY(carriedText(tracker.inWindow().at(0)).isEmpty());
  }

  void dropped_batches_are_said() {
    const RunPlan plan = planOf(EpochTail::drop_stop);
    RankTracker tracker(plan);
    train(tracker, plan, 4);
    QCOMPARE(tracker.lastEnd()->dropped_batches, 0);
    train(tracker, plan, 8);
    QCOMPARE(tracker.lastEnd()->dropped_batches, 2);
    QVERIFY(windowEndText(*tracker.lastEnd()).endsWith(QStringLiteral("dropped 2 batches at the end of epoch 1")));
  }

  void a_long_window_shares_slots() {
    RunPlan plan = planOf(EpochTail::flush, 1000, 1);
    plan.window.steps = 256;
    RankTracker tracker(plan);
    AccumulationWindow window(plan.window);
    for (std::int64_t step = 1; step <= 256; ++step) tracker.take({micro(0, window.next().value(), 1)});
    const auto& slots_of = tracker.ranks().at(0).slots;
    QCOMPARE(slots_of.size(), static_cast<std::size_t>(RankTracker::most_slots));
    for (const PoolSlot& slot : slots_of) QCOMPARE(slot, (PoolSlot{4, 4}));
  }

  /// Two replicas of two stages of two tensor ranks: ranks 4 and 6, of the last stage, report.
  void ranks_without_the_loss_follow_their_replica() {
    RunPlan plan = planOf(EpochTail::flush);
    plan.grid = {.data = 2, .pipeline = 2, .tensor = 2};
    RankTracker tracker(plan);
    tracker.take({micro(4, 1, 31), micro(4, 2, 5), micro(6, 1, 36)});
    const auto ranks = tracker.inWindow();
    QCOMPARE(ranks.size(), std::size_t{8});
    for (const auto& [rank, status] : ranks) {
      const bool first = rank % 4 < 2;
      QCOMPARE(status.has_loss, rank == 4 || rank == 6);
      QCOMPARE(status.filled, first ? 2 : 1);
      QCOMPARE(status.slots, first ? (std::vector<PoolSlot>{{31, 1}, {5, 1}}) : (std::vector<PoolSlot>{{36, 1}}));
    }
    GradientPool pool;
    pool.setView(viewOf(tracker));
    QVERIFY2(
        pool.text().startsWith(QStringLiteral("rank 0: 2 of 4, 36 items; rank 1: 2 of 4, 36 items; rank 2: 1 of 4")),
        qPrintable(pool.text()));
    for (std::int64_t step = 3; step <= 4; ++step) tracker.take({micro(4, step, 8)});
    for (std::int64_t step = 2; step <= 4; ++step) tracker.take({micro(6, step, 8)});
    tracker.take({updated(1, 4)});
    QVERIFY(tracker.drained());
  }

  /// A run that is joined without its plan learns the places from its ranks.
  void places_come_from_the_ranks_too() {
    RankTracker tracker;
    tracker.take({{0, 0, 0, RankReady{.pipeline = 0}}, {1, 0, 0, RankReady{.pipeline = 1}}, micro(1, 1, 8)});
    QCOMPARE(tracker.inWindow().at(0).filled, 1);
  }

  void a_lost_rank_is_said() {
    const RunPlan plan = planOf(EpochTail::flush);
    RankTracker tracker(plan);
    tracker.take({micro(0, 1, 8), micro(1, 1, 8), {1, 2, 2, RankFailed{}}});
    GradientPool pool;
    pool.setView(viewOf(tracker));
    QVERIFY(pool.text().endsWith(QStringLiteral("rank 1: 1 of 4, lost")));
  }

  void updates_say_their_outcome_and_reason_in_words() {
    QVERIFY(
        eventSentence(updated(3, 10, "epoch_end")).endsWith(QStringLiteral("Flushed at epoch end: a short window.")));
    QVERIFY(eventSentence(updated(3, 10, "run_end")).endsWith(QStringLiteral("Flushed at run end: a short window.")));
    QVERIFY(!eventSentence(updated(3, 10)).contains(QStringLiteral("Flushed")));
    const RunEvent overflow = updated(3, 10, "full", StepOutcome::skipped_overflow);
    QVERIFY(eventSentence(overflow).startsWith(QStringLiteral("Update 3 skipped, overflow:")));
    QCOMPARE(eventSeverity(overflow), 1);
    QVERIFY(
        eventSentence(updated(3, 10, "full", StepOutcome::skipped_empty)).contains(QStringLiteral("skipped, empty")));
  }

  void the_norm_of_the_sum_stands_in_the_slot_where_a_rank_was_held() {
    RankTracker tracker(planOf(EpochTail::flush));
    tracker.take({micro(0, 1, 8), micro(1, 1, 8), micro(0, 2, 8)});
    Held held{.update = 1, .micro_step = 2, .phase = StepPhase::backward, .position = 2, .size = 4};
    held.gradient_norm = 0.82;
    tracker.take({{0, 3, 3, held}});
    const auto ranks = tracker.inWindow();
    QCOMPARE(ranks.at(0).slots, (std::vector<PoolSlot>{{8, 1}, {8, 1, 0.82}}));
    QCOMPARE(ranks.at(1).slots, (std::vector<PoolSlot>{{8, 1}}));
    GradientPool pool;
    pool.setView(viewOf(tracker));
    QVERIFY(pool.text().startsWith(QStringLiteral("rank 0: 2 of 4, norm 0.820, 16 items")));
    // It is the sum's no longer once another micro-step is in it.
    tracker.take({micro(0, 3, 8)});
    QCOMPARE(tracker.inWindow().at(0).sum_norm, 0.0);
  }

  void a_norm_is_written_in_large_text_too_and_a_tooltip_tells_it() {
    setTextScale(2.0);
    const auto usual = qScopeGuard([] { setTextScale(1.0); });
    RankTracker tracker(planOf(EpochTail::flush));
    tracker.take({micro(0, 1, 8), micro(1, 1, 8), micro(0, 2, 8)});
    Held held{.update = 1, .micro_step = 2, .phase = StepPhase::backward, .position = 2, .size = 4};
    held.gradient_norm = 0.82;
    tracker.take({{0, 3, 3, held}});
    GradientPool pool;
    PoolView view = viewOf(tracker);
    pool.setView(view);
    pool.resize(pool.minimumSizeHint());
    pool.show();
    const QImage with = pool.grab().toImage();
    const QRect tank = pool.tankRect(0);
    const QPoint at(tank.left() + tank.width() * 3 / 8, tank.center().y());
    QHelpEvent help(QEvent::ToolTip, at, pool.mapToGlobal(at));
    QApplication::sendEvent(&pool, &help);
    QVERIFY2(QToolTip::text().startsWith(
                 QStringLiteral("rank 0, slot 2: 8 of 16 items so far; norm of the sum so far 0.820\n")),
             qPrintable(QToolTip::text()));
    QToolTip::hideText();
    view.ranks.at(0).slots[1].norm = 0.0;
    pool.setView(view);
    QVERIFY(pool.grab().toImage() != with);
  }

  void a_tooltip_that_rests_tells_the_newest_micro_step() {
    RankTracker tracker(planOf(EpochTail::flush));
    tracker.take({micro(0, 1, 8), micro(1, 1, 8)});
    GradientPool pool;
    pool.setView(viewOf(tracker));
    pool.resize(pool.sizeHint());
    pool.show();
    const QPoint at = pool.tankRect(0).topLeft() + QPoint(2, 2);
    QHelpEvent help(QEvent::ToolTip, at, pool.mapToGlobal(at));
    QApplication::sendEvent(&pool, &help);
    const auto says = [](const char* text) { return QToolTip::text().startsWith(QLatin1String(text)); };
    QVERIFY2(says("rank 0, slot 1: 8 of 8 items so far"), qPrintable(QToolTip::text()));
    tracker.take({micro(0, 2, 8), micro(1, 2, 8)});
    pool.setView(viewOf(tracker));
    QVERIFY2(says("rank 0, slot 1: 8 of 16 items so far"), qPrintable(QToolTip::text()));
    QToolTip::hideText();
    tracker.take({micro(0, 3, 8), micro(1, 3, 8)});
    pool.setView(viewOf(tracker));
    QTRY_VERIFY(!QToolTip::isVisible());
  }

  /// A share of what has come so far would fall with every micro-step.
  void a_share_is_told_of_a_whole_window_alone() {
    RankTracker tracker(planOf(EpochTail::flush, 10, 1));
    GradientPool pool;
    pool.resize(pool.sizeHint());
    pool.show();
    const QPoint at = pool.tankRect(0).topLeft() + QPoint(2, 2);
    for (std::int64_t step = 1; step <= 4; ++step) {
      tracker.take({micro(0, step, 8)});
      pool.setView(viewOf(tracker));
      QHelpEvent help(QEvent::ToolTip, at, pool.mapToGlobal(at));
      QApplication::sendEvent(&pool, &help);
      const bool tells_share = QToolTip::text().startsWith(QStringLiteral("rank 0, slot 1: 25 % of the items"));
      QVERIFY2(tells_share == (step == 4), qPrintable(QToolTip::text()));
    }
  }

  void a_share_is_written_with_its_sign_or_not_at_all() {
    RankTracker tracker(planOf(EpochTail::flush, 10, 1));
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 8)});
    GradientPool pool;
    pool.setView(viewOf(tracker));
    // The colours of the first slot, which its bar fills.
    const auto colours = [&pool](int slot) {
      pool.resize(4 * slot, pool.sizeHint().height());
      const QImage image = pool.grab().toImage();
      const QRect tank = pool.tankRect(0);
      QSet<QRgb> found;
      for (int y = tank.top() + 4; y < tank.bottom() - 4; ++y)
        for (int x = tank.left() + 2; x < tank.left() + slot - 4; ++x) found.insert(image.pixel(x, y));
      return found.size();
    };
    const QFontMetrics metrics(pool.font());
    const int number = metrics.horizontalAdvance(QStringLiteral("25"));
    QVERIFY(colours(metrics.horizontalAdvance(QStringLiteral("25 %")) + 8) > 1);
    QCOMPARE(colours(number + 6), 1);
  }

  void unscale_and_clip_say_what_they_make_of_the_norm() {
    RankTracker tracker(planOf(EpochTail::flush, 10, 1));
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 2)});
    const auto hold = [&tracker](StepPhase phase, double norm, double factor, double clip) {
      Held held{.update = 1, .micro_step = 4, .phase = phase, .position = 4, .size = 4};
      held.gradient_norm = norm;
      held.factor = factor;
      held.clip = clip;
      tracker.take({{0, 9, 9, held}});
      return tracker.inWindow().at(0);
    };
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(boundaryText(hold(StepPhase::backward, 816.0, unknown, unknown)).isEmpty());
    QCOMPARE(boundaryText(hold(StepPhase::unscale, 816.0, 0.125, unknown)),
             QStringLiteral("Unscale: norm of the sum 816 \u00d7 0.125 = 102"));
    const RankStatus clipped = hold(StepPhase::clip, 816.0, 0.125, 0.5);
    QCOMPARE(boundaryText(clipped),
             QStringLiteral("Unscale: norm of the sum 816 \u00d7 0.125 = 102; clip: 102 \u00d7 0.500 = 51.0"));
    QCOMPARE(usedNorm(clipped), 51.0);
    tracker.take({micro(0, 5, 2)});
    QVERIFY(boundaryText(tracker.inWindow().at(0)).isEmpty());
  }

  void an_ended_window_shows_no_rank_behind() {
    RankTracker tracker(planOf(EpochTail::flush));
    for (std::int64_t step = 1; step <= 4; ++step) tracker.take({micro(0, step, 8)});
    for (std::int64_t step = 1; step <= 3; ++step) tracker.take({micro(1, step, 8)});
    QCOMPARE(tracker.inWindow().at(1).filled, std::int64_t{3});
    tracker.take({updated(1, 4)});  // before the other rank's last report
    QVERIFY(tracker.drained());
    QCOMPARE(tracker.inWindow().at(1).filled, std::int64_t{4});
  }

  void all_ranks_are_shown_after_a_micro_step_that_each_has_reported() {
    RankTracker tracker(planOf(EpochTail::flush, 10, 3));
    for (std::int64_t step = 1; step <= 3; ++step) tracker.take({micro(0, step, 8)});
    for (std::int64_t step = 1; step <= 2; ++step) tracker.take({micro(1, step, 6)});
    tracker.take({micro(2, 1, 5)});
    for (const auto& [rank, status] : tracker.atOneMoment()) {
      QCOMPARE(status.filled, std::int64_t{1});
      QCOMPARE(status.micro_step, std::int64_t{1});
      QCOMPARE(status.slots.size(), std::size_t{1});
      QCOMPARE(status.window_tokens, status.slots.front().tokens);
    }
    QCOMPARE(tracker.inWindow().at(0).filled, std::int64_t{3});
    // A rank that is lost holds up no other.
    tracker.take({{2, 9, 9, RankFailed{}}});
    QCOMPARE(tracker.atOneMoment().at(0).filled, std::int64_t{2});
    QCOMPARE(tracker.atOneMoment().at(0).window_tokens, std::int64_t{16});
    QCOMPARE(tracker.atOneMoment().at(2).filled, std::int64_t{1});
  }

  void tanks_are_high_enough_to_read_and_four_ranks_fit() {
    for (const std::int64_t ranks : {1, 2, 4}) {
      RankTracker tracker(planOf(EpochTail::flush, 10, ranks));
      GradientPool pool;
      pool.setView(viewOf(tracker));
      const QSize least = pool.minimumSizeHint();
      QVERIFY(least.height() <= 220);
      pool.resize(200, least.height());
      QList<QRect> tanks;
      for (std::size_t place = 0; place < static_cast<std::size_t>(ranks); ++place) {
        const QRect tank = pool.tankRect(place);
        QVERIFY(tank.height() >= 72 && tank.width() >= 72);
        QVERIFY(pool.rect().contains(tank));
        for (const QRect& other : tanks) QVERIFY(!other.intersects(tank));
        tanks.append(tank);
      }
      pool.resize(200, 2 * least.height());
      QVERIFY(pool.tankRect(0).height() > 72);  // they take the height that there is
    }
  }

  void the_widget_draws_every_state() {
    const RunPlan plan = planOf(EpochTail::flush);
    RankTracker tracker(plan);
    GradientPool pool;
    pool.resize(260, 120);
    QSet<QByteArray> pictures;
    const auto picture = [&] {
      pool.setView(viewOf(tracker));
      const QImage image = pool.grab().toImage();
      pictures.insert(QByteArray(reinterpret_cast<const char*>(image.constBits()), image.sizeInBytes()));
    };
    picture();
    for (std::int64_t step = 1; step <= 4; ++step) {
      tracker.take({micro(0, step, 8 * step), micro(1, step, 8)});
      picture();
    }
    tracker.take({reduced(0, 1, 4), reduced(1, 1, 4)});
    picture();
    tracker.take({updated(1, 4)});
    picture();
    QCOMPARE(pictures.size(), 7);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPool)

}  // namespace test_pool
#include "test_pool.moc"
