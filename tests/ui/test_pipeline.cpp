// SPDX-License-Identifier: GPL-3.0-or-later
// The pipeline view: that it draws the core's schedule and the run's own operations, follows the document, and pairs
// the two halves.
#include <QDockWidget>
#include <QLabel>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <cmath>

#include "canvas/plot_header.h"
#include "made_run.h"
#include "plan/pipeline_panel.h"
#include "shell/start_page.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/number_edit.h"
#include "widgets/value_drag.h"

namespace test_pipeline {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

using enum PipelineAction;

RunSpec specOf(std::int64_t steps, std::int64_t stages, std::int64_t chunks = 1) {
  RunSpec spec = smallSpec();
  spec.accumulation.steps = steps;
  spec.parallel.data = 1;
  spec.parallel.pipeline = stages;
  spec.parallel.virtual_pipeline = chunks;
  return spec;
}

/// A shown panel over a document of its own.
struct OpenPanel {
  explicit OpenPanel(const RunSpec& spec) : preflight(&document), panel(&document, &preflight) {
    document.reset(spec, QStringLiteral("test"));
    panel.resize(1000, 420);
    panel.show();
  }
  bool isPlanned() const { return panel.planner().isCurrent() && panel.planned()->timeline().blocks() > 0; }
  NumberEdit* number(const char* key) {
    return panel.findChild<NumberEdit*>(QStringLiteral("pipeline.%1").arg(QLatin1String(key)));
  }
  /// Of the planned half, then of the measured one.
  PlotHeader* header(int half) { return panel.findChildren<PlotHeader*>().at(half); }
  QString hovered(int half) {
    // The measured half says first whose window it is.
    const auto& items = header(half)->items();
    return items.size() == (half == 1 ? 2u : 1u) ? items.back().text : QString();
  }

  SpecDocument document;
  PreflightRunner preflight;
  PipelinePanel panel;
};

constexpr std::int64_t ms = 1'000'000;

/// Two stages, two micro-steps a window; stage 1 computes backwards slowly. Times of update 2 in ms, from 100:
/// stage 0: F1 0-10, F2 10-20, B1 60-80, B2 110-130; stage 1: F1 12-20, B1 20-58, F2 58-66, B2 66-104.
std::vector<RunEvent> twoStages() {
  using enum ComputeKind;
  std::vector<RunEvent> events;
  for (std::int64_t stage = 0; stage < 2; ++stage) events.push_back({stage, 0, 0, RankReady{.pipeline = stage}});
  const auto window = [&](std::int64_t update, std::int64_t origin) {
    const std::int64_t first = 2 * update - 1;
    const auto report = [&](std::int64_t rank, std::vector<ComputeKind> kinds, std::vector<std::int64_t> order,
                            std::vector<std::int64_t> begin, std::vector<std::int64_t> end) {
      for (std::int64_t& m : order) m += first;
      for (auto* times : {&begin, &end})
        for (std::int64_t& time : *times) time = (time + origin) * ms;
      std::vector<std::int64_t> chunks(kinds.size(), 0);
      events.push_back({rank, update, 0, Operations{kinds, order, chunks, begin, end}});
    };
    report(0, {forward, forward, backward, backward, step}, {0, 1, 0, 1, 1}, {0, 10, 60, 110, 134},
           {10, 20, 80, 130, 140});
    report(1, {forward, backward, forward, backward, step}, {0, 0, 1, 1, 1}, {12, 20, 58, 66, 134},
           {20, 58, 66, 104, 138});
    for (std::int64_t rank = 0; rank < 2; ++rank)
      events.push_back({rank, update + 10, (origin + 140) * ms,
                        Update{.update = update, .micro_step = first + 1, .seconds = 1e-3 * double(origin + 140)}});
  };
  window(1, -100 + 100);
  window(2, 200);
  return events;
}

}  // namespace

class TestPipeline : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_field_of_megatron_sets_what_is_drawn() {
    RunSpec spec = specOf(4, 1);
    spec.model.layers = 2;
    spec.megatron.pp_degree = 2;
    OpenPanel open(spec);
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    QCOMPARE(open.panel.planner().result().shape.stages, std::int64_t{2});
    QCOMPARE(open.number("parallel.pipeline")->text(), QStringLiteral("2"));
    QVERIFY(!open.number("parallel.pipeline")->isEnabled());
    open.panel.setEditable(false);
    open.panel.setEditable(true);
    QVERIFY(!open.number("parallel.pipeline")->isEnabled());
    open.document.reset(specOf(4, 1), QStringLiteral("without"));
    QVERIFY(open.number("parallel.pipeline")->isEnabled());
    QCOMPARE(open.number("parallel.pipeline")->text(), QStringLiteral("1"));
  }

  void blocks_drawn_are_the_operations_of_the_core_data() {
    QTest::addColumn<qint64>("stages");
    QTest::addColumn<qint64>("chunks");
    QTest::addColumn<QString>("badge");
    QTest::newRow("four stages") << qint64{4} << qint64{1} << QStringLiteral("33.00 where 24.00 is ideal, bubble 27.3");
    QTest::newRow("two chunks") << qint64{4} << qint64{2} << QStringLiteral("28.50 where 24.00 is ideal, bubble 15.8");
    QTest::newRow("one stage") << qint64{1} << qint64{1} << QStringLiteral("24.00 where 24.00 is ideal, bubble 0.0");
  }
  void blocks_drawn_are_the_operations_of_the_core() {
    QFETCH(qint64, stages);
    QFETCH(qint64, chunks);
    QFETCH(QString, badge);
    const RunSpec spec = specOf(8, stages, chunks);
    OpenPanel open(spec);
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    const PipelineView& view = *open.panel.planned();
    const PipelineTimeline expected = pipeline_timeline(pipeline_shape(spec.parallel, 8)).value();
    QVERIFY(view.timeline().lanes == expected.lanes);
    QVERIFY2(open.header(0)->badge().startsWith(badge), qPrintable(open.header(0)->badge()));
    QVERIFY(!open.panel.measured()->isVisible());
    // Each block has the colour of its kind at the time that the schedule gives it.
    const QImage image = open.panel.planned()->grab().toImage();
    const ThemeColors colors = themeColors(open.panel.palette());
    const auto isFilled = [&](const QPointF& at, const QColor& tint, double cover) {
      const QColor wanted = mixed(tint, colors.surface, cover);
      const QColor found = image.pixelColor(at.toPoint());
      return std::abs(found.red() - wanted.red()) + std::abs(found.green() - wanted.green()) +
                 std::abs(found.blue() - wanted.blue()) <=
             6;
    };
    for (std::size_t stage = 0; stage < expected.lanes.size(); ++stage)
      for (const PipelineBlock& block : expected.lanes[stage]) {
        const QRectF rect = view.blockRect(stage, block);
        QVERIFY(rect.width() >= 6.0);
        const QPointF inside = rect.topLeft() + QPointF(2, 2);
        QVERIFY(block.action == forward ? isFilled(inside, colors.forward, 0.3)
                                        : isFilled(inside, colors.backward, 0.5));
      }
  }

  void the_legend_has_the_colours_that_are_drawn() {
    OpenPanel open(specOf(8, 4, 2));
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    const PipelineView& view = *open.panel.planned();
    const auto said = [&](int half) {
      QStringList names;
      for (const HeaderItem& item : open.header(half)->items()) names << item.text;
      return names.join(QLatin1Char(' '));
    };
    QCOMPARE(said(0), QStringLiteral("forward backward which chunk waiting"));
    for (const bool dark : {false, true}) {
      open.panel.setPalette(widgetPalette(dark ? darkColors() : lightColors()));
      const QImage image = open.panel.planned()->grab().toImage();
      const auto& blocks = view.timeline().lanes.front();
      for (const PipelineAction action : {forward, backward}) {
        const auto block = std::ranges::find(blocks, action, &PipelineBlock::action);
        const QPointF inside = view.blockRect(0, *block).topLeft() + QPointF(2, 2);
        QCOMPARE(open.header(0)->items().at(action == forward ? 0 : 1).color, image.pixelColor(inside.toPoint()));
      }
    }
    open.document.reset(specOf(8, 4), QStringLiteral("one chunk"));
    QTRY_COMPARE_WITH_TIMEOUT(said(0), QStringLiteral("forward backward waiting"), patience_ms);
  }

  void one_stage_alternates_forward_and_backward() {
    OpenPanel open(specOf(3, 1));
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    const auto& lane = open.panel.planned()->timeline().lanes.at(0);
    QCOMPARE(lane.size(), std::size_t{6});
    for (std::size_t i = 0; i < lane.size(); ++i) {
      QCOMPARE(lane[i].action, i % 2 == 0 ? forward : backward);
      QCOMPARE(lane[i].micro_step, static_cast<std::int64_t>(i / 2));
    }
  }

  void editing_redraws_and_undo_takes_it_back() {
    OpenPanel open(specOf(8, 4));
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    const auto blocks = [&] { return open.panel.planned()->timeline().blocks(); };
    QCOMPARE(blocks(), std::size_t{2 * 4 * 8});
    open.number("accumulation.steps")->stepBy(1);
    QCOMPARE(open.document.spec().accumulation.steps, 9);
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 4 * 9}, patience_ms);
    open.number("parallel.pipeline")->stepBy(-1);
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 3 * 9}, patience_ms);
    open.number("parallel.virtual_pipeline")->stepBy(1);
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 3 * 9 * 2}, patience_ms);
    QVERIFY(open.document.undoStack()->canUndo());
    while (open.document.undoStack()->canUndo()) open.document.undoStack()->undo();
    QCOMPARE(open.number("accumulation.steps")->value(), std::optional(SpecValue(std::int64_t{8})));
    QCOMPARE(open.number("parallel.pipeline")->value(), std::optional(SpecValue(std::int64_t{4})));
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 4 * 8}, patience_ms);
  }

  void dragging_a_name_sideways_redraws_the_schedule_while_it_moves() {
    OpenPanel open(specOf(8, 4));
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    const auto blocks = [&open] { return open.isPlanned() ? open.panel.planned()->timeline().blocks() : 0; };
    auto* name = open.panel.findChild<QLabel*>(QStringLiteral("pipeline.accumulation.steps.name"));
    const QPoint start = name->rect().center();
    const auto dragTo = [&](int steps) {
      // Half a step more does not count yet.
      const int way = steps * ValueDrag::step_width + (steps > 0 ? 1 : -1) * ValueDrag::step_width / 2;
      QTest::mouseMove(name, start + QPoint(way, 0));
    };
    QTest::mousePress(name, Qt::LeftButton, {}, start);
    dragTo(4);
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 4 * 12}, patience_ms);
    QCOMPARE(open.document.spec().accumulation.steps, 12);
    dragTo(-2);
    QTRY_COMPARE_WITH_TIMEOUT(blocks(), std::size_t{2 * 4 * 6}, patience_ms);
    QTest::mouseRelease(name, Qt::LeftButton, {}, start);
    dragTo(9);
    QCOMPARE(open.document.spec().accumulation.steps, 6);
    // The way beyond a limit does not count.
    QTest::mousePress(name, Qt::LeftButton, {}, start);
    dragTo(-20);
    QCOMPARE(open.document.spec().accumulation.steps, 1);
    dragTo(-18);
    QCOMPARE(open.document.spec().accumulation.steps, 3);
    QTest::mouseRelease(name, Qt::LeftButton, {}, start);
    open.panel.setEditable(false);
    QTest::mousePress(name, Qt::LeftButton, {}, start);
    dragTo(3);
    QTest::mouseRelease(name, Qt::LeftButton, {}, start);
    QCOMPARE(open.document.spec().accumulation.steps, 3);
  }

  void too_many_blocks_are_said_to_be_too_many() {
    OpenPanel open(specOf(20'000, 4));
    QTRY_VERIFY_WITH_TIMEOUT(open.panel.planner().isCurrent(), patience_ms);
    const auto* problem = open.panel.findChild<QLabel*>(QStringLiteral("pipelineProblem"));
    QVERIFY(problem->isVisible());
    QVERIFY2(problem->text().contains(QStringLiteral("too many to draw")), qPrintable(problem->text()));
    QVERIFY(!open.panel.planned()->isVisible());
    open.document.undoStack()->clear();
    open.number("accumulation.steps")->setValue(std::int64_t{12'500});
    Q_EMIT open.number("accumulation.steps")->textEdited();
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    QCOMPARE(open.panel.planned()->timeline().blocks(), std::size_t{PipelinePlanner::most_blocks});
    QVERIFY(!problem->isVisible());
    QVERIFY(!open.panel.planned()->grab().isNull());
  }

  void measured_blocks_fall_where_the_events_say() {
    OpenPanel open(specOf(2, 2));
    RunSeries run(QStringLiteral("run"), 0);
    run.setSpec(open.document.spec());
    run.append(twoStages());
    open.panel.setRun(&run);
    const PipelineView& view = *open.panel.measured();
    QVERIFY(view.isVisible());
    const auto& lanes = view.timeline().lanes;
    QCOMPARE(lanes.size(), std::size_t{2});
    const std::vector<std::vector<std::array<double, 2>>> expected{{{0, 10}, {10, 20}, {60, 80}, {110, 130}},
                                                                   {{12, 20}, {20, 58}, {58, 66}, {66, 104}}};
    const double pixels = view.blockRect(0, lanes[0][3]).right() - view.blockRect(0, lanes[0][0]).left();
    for (std::size_t stage = 0; stage < 2; ++stage) {
      QCOMPARE(lanes[stage].size(), std::size_t{4});
      for (std::size_t i = 0; i < 4; ++i) {
        const auto [begin, end] = expected[stage][i];
        QVERIFY(std::abs(lanes[stage][i].begin * 1e3 - begin) < 1e-3);
        QVERIFY(std::abs(lanes[stage][i].end * 1e3 - end) < 1e-3);
        const QRectF rect = view.blockRect(stage, lanes[stage][i]);
        const double left = view.blockRect(0, lanes[0][0]).left();
        QVERIFY(std::abs(rect.left() - left - begin / 130.0 * pixels) <= 1.5);
        QVERIFY(std::abs(rect.right() - left - end / 130.0 * pixels) <= 1.5);
      }
    }
    // Busy 60 ms and 92 ms of 130 ms each.
    QVERIFY(std::abs(view.timeline().bubble() - (1.0 - 152.0 / 260.0)) < 1e-6);
    QCOMPARE(view.timeline().stash(0), 2);
    QCOMPARE(view.timeline().stash(1), 1);
    QVERIFY2(open.header(1)->badge().contains(QStringLiteral("bubble 41.5")), qPrintable(open.header(1)->badge()));
    // The plan is drawn at the measured pace, on the same scale: forwards of 36 ms in all, backwards of 116 ms.
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    QVERIFY(std::abs(open.panel.planner().result().pace.forward - 0.036 / 4.0) < 1e-9);
    QVERIFY(std::abs(open.panel.planner().result().pace.backward - 0.116 / 4.0) < 1e-9);
    QVERIFY(open.panel.planned()->range() == view.range());
    QVERIFY(std::abs(view.range().second - 0.140) < 1e-6);  // the optimizer's step ends last
  }

  void a_hidden_panel_forgets_the_window_of_a_run_that_is_gone() {
    OpenPanel open(specOf(2, 2));
    {
      RunSeries run(QStringLiteral("run"), 0);
      run.setSpec(open.document.spec());
      run.append(twoStages());
      open.panel.setRun(&run);
      QVERIFY(open.panel.measured()->isVisible());
      open.panel.hide();
      open.panel.setRun(nullptr);
    }
    // The plan is drawn anew meanwhile, as on opening another set-up.
    QSignalSpy planned(&open.panel.planner(), &PipelinePlanner::finished);
    QVERIFY(planned.count() > 0 || planned.wait(patience_ms));
    open.panel.show();
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    QVERIFY(!open.header(1)->title().isEmpty());
  }

  void another_window_can_be_chosen() {
    OpenPanel open(specOf(2, 2));
    RunSeries run(QStringLiteral("run"), 0);
    run.append(twoStages());
    open.panel.setRun(&run);
    auto* update = open.panel.findChild<QSpinBox*>(QStringLiteral("pipelineUpdate"));
    auto* newest = open.panel.findChild<QAbstractButton*>(QStringLiteral("pipelineNewest"));
    QCOMPARE(update->value(), 2);
    QVERIFY(newest->isChecked());
    update->setValue(1);
    QVERIFY(!newest->isChecked());
    QVERIFY(open.panel.measured()->isVisible());
    QCOMPARE(open.panel.measured()->timeline().blocks(), std::size_t{8});
    newest->click();
    QCOMPARE(update->value(), 2);
  }

  /// Of two replicas with one stage each, every one has a window of its own.
  void a_replica_can_be_chosen() {
    const MadeRun made{.updates = 6};
    RunSeries run(QStringLiteral("run"), 0);
    std::vector<RunEvent> events{{0, 0, 0, RankReady{.data = 0}}, {1, 0, 0, RankReady{.data = 1}}};
    for (RunEvent& event : events) run.append({event});
    run.append(made.events(6));
    for (const std::int64_t replica : {0, 1}) {
      const auto window = measuredPipeline(run, 3, replica, 0);
      QVERIFY(window && window->whole);
      const auto& lane = window->timeline.lanes.at(0);
      QCOMPARE(lane.size(), std::size_t{8});
      for (std::size_t i = 0; i < 4; ++i) {
        const double begin = 0.024 * static_cast<double>(i);
        QVERIFY(std::abs(lane[2 * i].begin - begin) < 1e-6 && std::abs(lane[2 * i].end - begin - 0.008) < 1e-6);
        QVERIFY(std::abs(lane[2 * i + 1].end - begin - 0.024) < 1e-6);
      }
      QVERIFY(std::abs(window->timeline.bubble()) < 1e-6);
      QVERIFY(std::abs(window->steps.at(0).at(0).first - 0.1) < 1e-6);
    }
    QVERIFY(!measuredPipeline(run, 3, 2, 0));
    QVERIFY(!measuredPipeline(run, 7, 0, 0));
  }

  void a_window_with_lost_reports_is_not_the_newest_whole_one() {
    RunSeries run(QStringLiteral("run"), 0);
    std::vector<RunEvent> events = twoStages();
    std::erase_if(events, [](const RunEvent& event) {
      const auto* spans = std::get_if<Operations>(&event.body);
      return spans && event.rank == 1 && spans->micro_step.front() == 3;
    });
    run.append(events);
    QCOMPARE(newestPipeline(run, 0, 0)->update, 1);
    const auto window = measuredPipeline(run, 2, 0, 0);
    QVERIFY(window && !window->whole);
  }

  void pointing_at_a_block_marks_its_counterpart() {
    OpenPanel open(specOf(2, 2));
    RunSeries run(QStringLiteral("run"), 0);
    run.append(twoStages());
    open.panel.setRun(&run);
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    PipelineView* measured = open.panel.measured();
    const PipelineSpot spot{1, backward, 0, 0};
    QTest::mouseMove(measured, measured->blockRect(1, *measured->find(spot)).center().toPoint());
    QTRY_VERIFY_WITH_TIMEOUT(measured->lit() == spot, patience_ms);
    QVERIFY(open.panel.planned()->lit() == spot);
    QVERIFY2(open.hovered(1).startsWith(QStringLiteral("stage 1, backward of micro-step 1: 38.0")),
             qPrintable(open.hovered(1)));
    QVERIFY2(open.hovered(0).startsWith(QStringLiteral("stage 1, backward of micro-step 1: 29.0")),
             qPrintable(open.hovered(0)));
    // The keyboard walks along the stage.
    QTest::keyClick(open.panel.planned(), Qt::Key_Right);
    QVERIFY(measured->lit() == (PipelineSpot{1, forward, 1, 0}));
  }

  void both_halves_zoom_together_and_come_back() {
    OpenPanel open(specOf(2, 2));
    RunSeries run(QStringLiteral("run"), 0);
    run.append(twoStages());
    open.panel.setRun(&run);
    QTRY_VERIFY_WITH_TIMEOUT(open.isPlanned(), patience_ms);
    PipelineView* planned = open.panel.planned();
    const auto whole = planned->range();
    QWheelEvent wheel(planned->rect().center(), planned->mapToGlobal(planned->rect().center()), {}, {0, 240},
                      Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(planned, &wheel);
    QVERIFY(planned->range().second - planned->range().first < whole.second - whole.first);
    QVERIFY(planned->range() == open.panel.measured()->range());
    QTest::keyClick(planned, Qt::Key_A);
    QVERIFY(planned->range() == whole);
  }

  void the_dock_follows_the_selected_run() {
    RunningStudio studio("micro_ms=5");
    studio.find<QDockWidget>("pipelineDock")->raise();
    auto* panel = studio.window->findChild<PipelinePanel*>();
    QTRY_VERIFY_WITH_TIMEOUT(panel->measured()->timeline().blocks() == 8, patience_ms);
    const auto* update = panel->findChild<QSpinBox*>(QStringLiteral("pipelineUpdate"));
    const int first = update->value();
    QTRY_VERIFY_WITH_TIMEOUT(update->value() > first, patience_ms);
    studio.endRun();
  }

  void every_example_of_the_start_page_opens_and_is_free_of_errors() {
    StudioFixture studio;
    studio.show();
    for (const char* name : {"startTenBatches", "startEightPoints", "startLargerBatch", "startTensorTwo",
                             "startPipelineTwo", "startZeroTwo", "startGridEight"}) {
      auto* card = studio.find<QPushButton>(name);
      QVERIFY2(card, name);
      card->click();
      QCOMPARE(studio.document.displayName(), card->text());
      QCOMPARE(QString::fromStdString(studio.document.spec().run.name), card->text());  // as the run will be called
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      QVERIFY2(studio.preflight->result().plan, name);
      const bool divided = QByteArray(name).endsWith("Two") || QByteArray(name).endsWith("Eight");
      QVERIFY(!divided || studio.preflight->result().plan->grid.world() >= 2);
    }
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPipeline)

}  // namespace test_pipeline
#include "test_pipeline.moc"
