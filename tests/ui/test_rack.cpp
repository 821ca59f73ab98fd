// SPDX-License-Identifier: GPL-3.0-or-later
// The plug-in rack and the rank grid: what a switch writes, what locks it, what it says it costs; which cells light up.
#include <QAbstractSpinBox>
#include <QCheckBox>
#include <QDockWidget>
#include <QScrollArea>

#include "accrue/run/whatif/plugins.h"
#include "plan/memory_bar.h"
#include "plan/plugin_card.h"
#include "plan/plugin_matrix.h"
#include "plan/rank_cells.h"
#include "shell/centre_page.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_rack {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Two of its heads, blocks and token kinds: can be divided by two along each axis.
RunSpec dividedSpec(std::int64_t data = 2, std::int64_t tensor = 1, std::int64_t pipeline = 1) {
  RunSpec spec = smallSpec(1000, data);
  spec.model.layers = 2;
  spec.parallel.tensor = tensor;
  spec.parallel.pipeline = pipeline;
  return spec;
}

/// With the rack or the grid in front, and the numbers of this spec in it.
class OpenRack : public OpenStudio {
 public:
  explicit OpenRack(const RunSpec& spec = dividedSpec()) : OpenStudio(spec) {
    for (const char* dock : {"rackDock", "ranksDock"}) find<QDockWidget>(dock)->raise();
    QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("pluginMemory.data")->isVisible(), patience_ms);
  }
  QCheckBox* box(const char* plugin) const {
    return find<QCheckBox>(QStringLiteral("pluginSwitch.%1").arg(QLatin1String(plugin)));
  }
  PluginCard* card(const char* plugin) const {
    return find<PluginCard>(QStringLiteral("pluginCard.%1").arg(QLatin1String(plugin)));
  }
  RankCells* cells() const { return find<RankCells>("rankCells"); }
  void pointAt(std::int64_t rank) const { QTest::mouseMove(cells(), cells()->cellRect(rank).center()); }
};

}  // namespace

class TestRack : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_switch_writes_the_spec_and_undo_takes_it_back() {
    OpenRack studio;
    const RunSpec before = studio.document.spec();
    QTest::mouseClick(studio.box("tensor"), Qt::LeftButton, {}, QPoint(8, studio.box("tensor")->height() / 2));
    QCOMPARE(studio.document.spec().parallel.tensor, 2);
    QVERIFY(studio.box("tensor")->isChecked());
    studio.box("sequence")->setFocus();
    QTRY_VERIFY_WITH_TIMEOUT(studio.box("sequence")->isEnabled(), patience_ms);
    studio.box("sequence")->setFocus();
    studio.press(Qt::Key_Space);
    QVERIFY(studio.document.spec().parallel.sequence);
    studio.box("tensor")->click();
    QVERIFY(studio.document.spec() == before);
    for (int i = 0; i < 3; ++i) studio.press(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(studio.document.spec() == before);
    QVERIFY(!studio.document.undoStack()->canUndo());
    QVERIFY(!studio.box("tensor")->isChecked());
  }

  void a_plugin_that_cannot_be_had_is_locked_and_says_why() {
    OpenRack studio;
    QVERIFY(studio.card("sequence")->isLocked());
    QCOMPARE(studio.card("sequence")->reason(),
             QStringLiteral("parallel.sequence does nothing without tensor-parallel ranks"));
    QCOMPARE(studio.box("sequence")->accessibleDescription(), studio.card("sequence")->reason());
    QVERIFY(!studio.card("tensor")->isLocked());
    studio.set("evaluate.exactness_every", std::int64_t{5});
    QTRY_VERIFY_WITH_TIMEOUT(studio.card("tensor")->isLocked(), patience_ms);
    QVERIFY(studio.card("tensor")->reason().startsWith(
        QStringLiteral("evaluate.exactness_every needs an undivided model")));
    const RunSpec before = studio.document.spec();
    QTest::mouseClick(studio.box("tensor"), Qt::LeftButton, {}, QPoint(8, studio.box("tensor")->height() / 2));
    QVERIFY(studio.document.spec() == before);
    // The reason stays while another edit is being checked.
    studio.set("accumulation.steps", std::int64_t{8});
    QVERIFY(!studio.card("tensor")->reason().isEmpty());
    studio.set("evaluate.exactness_every", std::int64_t{0});
    QTRY_VERIFY_WITH_TIMEOUT(!studio.card("tensor")->isLocked(), patience_ms);
    QVERIFY(studio.card("tensor")->reason().isEmpty());
  }

  void a_plugin_that_is_on_and_refused_can_be_switched_off() {
    RunSpec spec = dividedSpec();
    spec.parallel.tensor = 2;
    spec.evaluate.exactness_every = 5;
    OpenStudio studio(spec);
    studio.find<QDockWidget>("rackDock")->raise();
    auto* card = studio.find<PluginCard>("pluginCard.tensor");
    QTRY_VERIFY_WITH_TIMEOUT(card->reason().startsWith(QStringLiteral("evaluate.exactness_every")), patience_ms);
    QVERIFY(!card->isLocked());
  }

  void a_cards_numbers_are_those_of_the_plans() {
    OpenRack studio;
    const auto cost = [&studio](const RunSpec& spec) {
      return cost_of(*preflight_files(spec, studio.preflight->hostFacts(), ".").plan);
    };
    const RunSpec& spec = studio.document.spec();
    for (const char* name : {"data", "tensor", "pipeline", "zero"}) {
      const auto plugin =
          std::ranges::find(all_plugins(), std::string_view(name), [](Capability c) { return to_string(c); });
      const RunSpec other = switched(spec, *plugin);
      const bool on = is_on(*plugin, spec);
      const RankCost with = cost(on ? spec : other), without = cost(on ? other : spec);
      const auto text = [&](const char* label) {
        return studio.find<QLabel>(QStringLiteral("%1.%2").arg(QLatin1String(label), QLatin1String(name)))->text();
      };
      const QString memory = signedBytesText(with.total() - without.total());
      QVERIFY2(text("pluginMemory").contains(memory), qPrintable(text("pluginMemory") + memory));
      const QString wire = signedBytesText(sent_bytes(with) - sent_bytes(without));
      QVERIFY2(text("pluginWire").contains(wire), qPrintable(text("pluginWire") + wire));
    }
    QVERIFY(studio.find<QLabel>("pluginTotal")->text().contains(bytesOf(cost(spec).total())));
  }

  void a_changed_theme_reaches_the_numbers() {
    OpenRack studio;
    for (const ThemeMode mode : {ThemeMode::light, ThemeMode::dark}) {
      studio.theme->setMode(mode);
      const ThemeColors& colors = mode == ThemeMode::dark ? darkColors() : lightColors();
      for (const char* label : {"pluginMemory.data", "pluginWire.data"})
        QTRY_VERIFY_WITH_TIMEOUT(studio.find<QLabel>(label)->text().contains(colors.muted.name()), patience_ms);
    }
  }

  void signs_are_written() {
    QCOMPARE(signedBytesText(2048), QStringLiteral("+2.0 KiB"));
    QCOMPARE(signedBytesText(-20), QStringLiteral("\u221220 B"));
    QCOMPARE(signedBytesText(0), QStringLiteral("0 B"));
  }

  void a_card_whose_key_a_field_of_megatron_sets_shows_it_and_is_locked() {
    OpenRack studio;
    QVERIFY(!studio.box("tensor")->isChecked());
    studio.set("megatron.tp_degree", std::int64_t{2});
    QCOMPARE(studio.document.spec().parallel.tensor, 1);
    QVERIFY(studio.box("tensor")->isChecked());
    QVERIFY(studio.card("tensor")->isLocked());
    QCOMPARE(studio.card("tensor")->reason(), QStringLiteral("Set by tp_degree of the Megatron-LM plug-in"));
    auto* ranks = studio.find<QAbstractSpinBox>("plugin.parallel.tensor");
    QCOMPARE(ranks->text(), QStringLiteral("2"));
    QVERIFY(!ranks->isEnabled());
    // Its costs are those of the run with it, less those of the run without it.
    QTRY_VERIFY_WITH_TIMEOUT(studio.find<QLabel>("pluginMemory.tensor")->isVisible(), patience_ms);
    QVERIFY(studio.card("tensor")->isLocked());
    studio.press(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(!studio.box("tensor")->isChecked());
    QTRY_VERIFY_WITH_TIMEOUT(!studio.card("tensor")->isLocked(), patience_ms);
  }

  void a_cards_field_edits_the_spec() {
    OpenRack studio;
    QWidget* field = studio.find("plugin.parallel.data");
    QVERIFY(field->isVisible());
    field->setFocus();
    QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(field, QStringLiteral("4"));
    QCOMPARE(studio.document.spec().parallel.data, 4);
    // Text that is not a number is reported, and removed when the field loses the focus.
    QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(field, QStringLiteral("x"));
    QVERIFY(!studio.card("data")->reason().isEmpty());
    studio.box("data")->setFocus();
    QVERIFY(studio.card("data")->reason().isEmpty());
    QCOMPARE(studio.document.spec().parallel.data, 4);
  }

  void the_matrix_says_each_pair_by_keyboard() {
    OpenRack studio;
    studio.find<QAbstractButton>("pluginMatrixFold")->click();
    auto* matrix = studio.find<PluginMatrix>("pluginMatrix");
    QVERIFY(matrix->isVisible());
    matrix->setFocus();
    auto* said = studio.find<QLabel>("pluginPair");
    QCOMPARE(said->text(), QStringLiteral("Data parallelism and Tensor parallelism go together"));
    studio.press(Qt::Key_Down);
    studio.press(Qt::Key_Down);
    QCOMPARE(said->text(),
             QStringLiteral("Sequence parallelism needs Tensor parallelism: parallel.sequence does nothing "
                            "without tensor-parallel ranks"));
    QTest::mouseClick(matrix, Qt::LeftButton, {}, matrix->cellCentre(Capability::zero, Capability::bug));
    QCOMPARE(said->text(),
             QStringLiteral("ZeRO excludes Deliberate bug: teaching.bug needs the whole gradient on every "
                            "rank: parallel.zero must be 0"));
    QCOMPARE(matrix->accessibleDescription(), said->text());
  }

  void pointing_at_a_rank_lights_its_groups_and_no_other_cells() {
    OpenRack studio(dividedSpec(2, 2, 2));
    RankCells* cells = studio.cells();
    QCOMPARE(cells->grid().world(), 8);
    QVERIFY(cells->lit(Axis::tensor).empty());
    studio.pointAt(5);  // second stage, first replica, second tensor rank
    QCOMPARE(cells->current(), 5);
    QCOMPARE(cells->lit(Axis::tensor), (RankList{4, 5}));
    QCOMPARE(cells->lit(Axis::data), (RankList{5, 7}));
    QCOMPARE(cells->lit(Axis::pipeline), (RankList{1, 5}));
    QCOMPARE(studio.find<QLabel>("rankName")->text(), QStringLiteral("Rank 5: stage 1, tensor rank 1, replica 0"));
    const QString groups = studio.find<QLabel>("rankGroups")->accessibleName();
    for (const char* said : {"tensor group 4 5,", "data group 5 7,", "pipeline group 1 5,"})
      QVERIFY2(groups.contains(QLatin1String(said)), qPrintable(groups));
    // Highlighted cells differ from the others: cells outside the groups are dimmed.
    const QImage lit = cells->grab().toImage();
    QTest::mouseMove(cells, QPoint(cells->width() - 1, cells->height() - 1));
    QVERIFY(cells->lit(Axis::tensor).empty());
    const QImage plain = cells->grab().toImage();
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const QPoint inside = cells->cellRect(rank).topLeft() + QPoint(5, 10);
      const bool in_a_group = QList<std::int64_t>{1, 4, 5, 7}.contains(rank);
      QCOMPARE(lit.pixelColor(inside) == plain.pixelColor(inside), in_a_group);
    }
  }

  void the_arrow_keys_reach_every_rank() {
    OpenRack studio(dividedSpec(2, 2, 2));
    RankCells* cells = studio.cells();
    cells->setFocus();
    QVERIFY(!cells->lit(Axis::tensor).empty());
    studio.press(Qt::Key_Home);
    QSet<std::int64_t> reached;
    for (int stage = 0; stage < 2; ++stage) {
      for (int step = 0; step < 4; ++step) {
        reached.insert(cells->current());
        studio.press(stage == 0 ? Qt::Key_Right : Qt::Key_Left);
      }
      studio.press(Qt::Key_Down);
    }
    QCOMPARE(reached.size(), 8);
  }

  void cells_neither_overlap_nor_leave_the_widget_data() {
    QTest::addColumn<int>("data");
    QTest::addColumn<int>("tensor");
    QTest::addColumn<int>("pipeline");
    QTest::newRow("one") << 1 << 1 << 1;
    QTest::newRow("eight") << 2 << 2 << 2;
    QTest::newRow("replicas") << 64 << 1 << 1;
    QTest::newRow("stages") << 1 << 1 << 64;
    QTest::newRow("tensor ranks") << 1 << 64 << 1;
    QTest::newRow("four by four by four") << 4 << 4 << 4;
    QTest::newRow("more than are drawn") << 16 << 8 << 8;
  }
  void cells_neither_overlap_nor_leave_the_widget() {
    QFETCH(int, data);
    QFETCH(int, tensor);
    QFETCH(int, pipeline);
    RankCells cells;
    cells.setGrid({.data = data, .pipeline = pipeline, .tensor = tensor});
    for (const int width : {190, 420}) {
      cells.resize(width, cells.height());
      QVERIFY(!cells.grab().isNull());
      const std::int64_t drawn = std::min<std::int64_t>(cells.grid().world(), RankCells::most_drawn);
      QRegion taken;
      for (std::int64_t rank = 0; rank < drawn; ++rank) {
        const QRect cell = cells.cellRect(rank);
        QVERIFY2(cells.rect().contains(cell), qPrintable(QString::number(rank)));
        QVERIFY(!taken.intersects(cell));
        QVERIFY(cell.width() >= cells.fontMetrics().horizontalAdvance(QStringLiteral("63")));
        taken += cell;
      }
    }
  }

  void cells_of_stages_and_tensor_ranks_differ_in_colour() {
    const RankGrid grid{.pipeline = 8, .tensor = 4};
    for (const ThemeColors& colors : {lightColors(), darkColors()}) {
      QSet<QRgb> seen;
      for (std::int64_t rank = 0; rank < grid.world(); ++rank) {
        const QColor fill = rankColor(colors, grid, grid.coordinate(rank));
        QVERIFY(!seen.contains(fill.rgb()));
        seen.insert(fill.rgb());
        QVERIFY(std::max(contrastRatio(Qt::black, fill), contrastRatio(Qt::white, fill)) >= 4.5);
      }
    }
  }

  void more_ranks_than_are_drawn_are_said() {
    RunSpec spec = dividedSpec(128);
    OpenRack studio(spec);
    auto* more = studio.find<QLabel>("rankGridMore");
    QVERIFY(more->isVisible());
    QCOMPARE(more->text(), QStringLiteral("The first 64 of 128 ranks are drawn."));
    studio.set("parallel.data", std::int64_t{64});
    QTRY_VERIFY_WITH_TIMEOUT(!more->isVisible(), patience_ms);
    QVERIFY(studio.cells()->rect().contains(studio.cells()->cellRect(63)));
  }

  void a_ranks_memory_is_its_stages_in_the_plan_by_kind() {
    OpenRack studio(dividedSpec(2, 1, 2));
    const std::vector<RankCost>& stages = studio.preflight->result().plan->stages;
    QVERIFY(stages[0] != stages[1]);
    const auto* bar = studio.find<MemoryBar>("memoryBar");
    for (const std::int64_t rank : {0, 3}) {
      studio.pointAt(rank);
      const RankCost& cost = stages[static_cast<std::size_t>(rank / 2)];
      for (const MemoryKind& kind : memoryKinds())
        QVERIFY(bar->text().contains(QStringLiteral("%1 %2").arg(kind.name, bytesOf(cost.*kind.bytes))));
      QVERIFY(studio.find<QLabel>("rankShare")->text().startsWith(bytesOf(cost.total())));
      QVERIFY(studio.find<QLabel>("rankGroups")->text().contains(bytesOf(cost.sent(Axis::data))));
    }
  }

  void each_cell_draws_what_its_rank_holds() {
    RankCells cells;
    cells.setGrid({.pipeline = 2});
    cells.resize(200, 60);
    RankCost first, second;
    first.parameters = 300, first.gradients = 100, first.process = 1'000'000;  // the process is said, not drawn
    second.parameters = 100;
    cells.setMemory({first, second});
    const QImage image = cells.grab().toImage().convertToFormat(QImage::Format_RGB32);
    const ThemeColors colors = themeColors(cells.palette());
    const auto pixels = [&](std::int64_t rank, int kind) {
      const QRect cell = cells.cellRect(rank);
      int count = 0;
      for (int x = cell.left() + 2; x <= cell.right() - 2; ++x)
        count += image.pixel(x, cell.top() + 4) == seriesColor(colors, kind).rgb() ? 1 : 0;
      return count;
    };
    const int whole = cells.cellRect(0).width() - 4;
    QCOMPARE(pixels(0, 0), whole * 3 / 4);
    QCOMPARE(pixels(0, 1), whole - whole * 3 / 4);
    QCOMPARE(pixels(1, 0), whole / 4);
    QCOMPARE(pixels(1, 1), 0);
  }

  void the_grid_follows_a_live_run() {
    RunningStudio studio("micro_ms=20");
    studio.find<QDockWidget>("ranksDock")->raise();
    auto* title = studio.find<QLabel>("rankGridTitle");
    QTRY_COMPARE_WITH_TIMEOUT(title->text(), QStringLiteral("The run: 2 replicas"), patience_ms);
    // An edit is of the set-up, not of the run.
    studio.set("parallel.data", std::int64_t{4});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    QCOMPARE(studio.find<RankCells>("rankCells")->grid().world(), 2);
    auto* state = studio.find<QLabel>("rankState");
    QTRY_VERIFY_WITH_TIMEOUT(state->text().startsWith(QStringLiteral("Now: ")), patience_ms);
    studio.endRun();
    QTRY_COMPARE_WITH_TIMEOUT(title->text(), QStringLiteral("The set-up: 4 replicas"), patience_ms);
    QVERIFY(!state->isVisible());
  }

  void a_lost_rank_and_each_phase_look_different() {
    RankCells cells;
    cells.setGrid({.data = 2});
    cells.resize(200, 60);
    QSet<QByteArray> pictures;
    for (const char* phase : {"forward", "backward", "step", "reduce", "data", "lost"}) {
      std::map<std::int64_t, RankStatus> states;
      states[1].phase = phase;
      states[1].lost = std::string_view(phase) == "lost";
      cells.setStates(states);
      const QImage image = cells.grab().toImage();
      pictures.insert(QByteArray(reinterpret_cast<const char*>(image.constBits()), image.sizeInBytes()));
    }
    QCOMPARE(pictures.size(), 6);
  }

  void both_fit_a_small_window() {
    OpenRack studio(dividedSpec(2, 2, 2));
    QVERIFY(studio.window->minimumSizeHint().width() <= 1024 && studio.window->minimumSizeHint().height() <= 600);
    studio.find<CentrePage>("centrePage")->showPlots();
    studio.find<QAbstractButton>("pluginMatrixFold")->click();
    studio.window->resize(1024, 600);
    QTRY_COMPARE(studio.window->size(), QSize(1024, 600));
    for (const char* name : {"pluginRack", "rankGridPanel"}) {
      QWidget* panel = studio.find(name);
      for (const QWidget* child : panel->findChildren<QWidget*>()) {
        if (!child->isVisible() || child->objectName().startsWith(QStringLiteral("qt_"))) continue;
        const int right = child->mapTo(panel, QPoint(child->width(), 0)).x();
        QVERIFY2(
            right <= panel->width(),
            qPrintable(QStringLiteral("%1 ends at %2 of %3").arg(child->objectName()).arg(right).arg(panel->width())));
      }
    }
  }

  void every_pane_is_reached_by_keyboard() {
    OpenRack studio;
    QSet<QString> reached;
    studio.find<QDockWidget>("setupDock")->raise();
    for (int i = 0; i < 6; ++i) {
      studio.press(Qt::Key_F6);
      for (QWidget* at = QApplication::focusWidget(); at; at = at->parentWidget())
        if (qobject_cast<QDockWidget*>(at)) reached.insert(at->objectName());
    }
    QVERIFY(reached.contains(QStringLiteral("rackDock")));
    QVERIFY(reached.contains(QStringLiteral("ranksDock")));
  }

 private:
  static QString bytesOf(std::int64_t bytes) { return signedBytesText(bytes).remove(QLatin1Char('+')); }
};

ACCRUE_WINDOW_TEST_MAIN(TestRack)

}  // namespace test_rack
#include "test_rack.moc"
