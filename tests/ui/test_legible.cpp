// SPDX-License-Identifier: GPL-3.0-or-later
// The studio for people who see it from the last row, who hear it, or who meet its words for the first time: text size,
// presenter layout, glossary, narrator, and names for everything that can have the focus.
#include <QAccessible>
#include <QDockWidget>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QMenuBar>
#include <QMessageBox>
#include <QTableWidget>
#include <QTextBrowser>

#include "models/glossary.h"
#include "pages/glossary_sheet.h"
#include "pages/narrator.h"
#include "pages/view_size.h"
#include "plots/plot_canvas.h"
#include "studio_fixture.h"
#include "style/text_scale.h"
#include "support/test_program.h"

namespace test_legible {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Widgets that Tab reaches and that a screen reader could not name.
QStringList unnamed(const QWidget* window) {
  QStringList found;
  for (QWidget* widget : window->findChildren<QWidget*>()) {
    if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisibleTo(window)) continue;
    if (widget->objectName().startsWith(QStringLiteral("qt_"))) continue;
    QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
    const bool inside = qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) != nullptr;
    if (inside || (face && !face->text(QAccessible::Name).isEmpty())) continue;
    found.append(
        QStringLiteral("%1 \"%2\"").arg(QLatin1String(widget->metaObject()->className()), widget->objectName()));
  }
  return found;
}

/// The first visible node of that role and name, under this one.
QAccessibleInterface* node(QAccessibleInterface* from, QAccessible::Role role, const QString& name) {
  if (!from) return nullptr;
  if (from->role() == role && from->text(QAccessible::Name) == name && !from->state().invisible) return from;
  for (int child = 0; child < from->childCount(); ++child)
    if (QAccessibleInterface* found = node(from->child(child), role, name)) return found;
  return nullptr;
}

/// Presses a button as a screen reader does.
bool press(const StudioFixture& studio, const char* name) {
  QAccessibleInterface* button =
      node(QAccessible::queryAccessibleInterface(studio.window.get()), QAccessible::Button, QLatin1String(name));
  if (!button || button->state().disabled || !button->actionInterface()) return false;
  button->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
  return true;
}

}  // namespace

class TestLegible : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cleanup() { setTextScale(1.0); }

  void text_grows_and_shrinks_in_widgets_and_plots() {
    StudioFixture studio;
    studio.show();
    QWidget* const own = studio.find("windowPhase");
    QWidget* const inherited = studio.find("setupPanel");
    auto* canvas = studio.window->findChild<PlotCanvas*>();
    QVERIFY(own && inherited && canvas);
    const double before = own->font().pointSizeF();
    const double inherited_before = inherited->font().pointSizeF();
    const double axis_before = canvas->xAxis->tickLabelFont().pointSizeF();
    studio.press(Qt::Key_Plus, Qt::ControlModifier);
    QCOMPARE(textScale(), 1.1);
    QVERIFY(std::abs(own->font().pointSizeF() - 1.1 * before) < 0.05);
    QVERIFY(std::abs(inherited->font().pointSizeF() - 1.1 * inherited_before) < 0.05);
    QTRY_VERIFY(std::abs(canvas->xAxis->tickLabelFont().pointSizeF() - 1.1 * axis_before) < 0.05);
    studio.press(Qt::Key_Minus, Qt::ControlModifier);
    studio.press(Qt::Key_Minus, Qt::ControlModifier);
    QCOMPARE(textScale(), 0.9);
    studio.press(Qt::Key_0, Qt::ControlModifier);
    QVERIFY(std::abs(own->font().pointSizeF() - before) < 0.05);
  }

  void plots_and_tables_make_room_for_larger_text() {
    StudioFixture studio;
    studio.show();
    auto* canvas = studio.window->findChild<PlotCanvas*>();
    auto* table = studio.find<QTableWidget>("inspectorValues");
    const int row = table->verticalHeader()->defaultSectionSize();
    const int left = canvas->axisRect()->margins().left();
    setTextScale(1.8);
    QTRY_VERIFY(canvas->axisRect()->margins().left() > left);
    QCOMPARE(canvas->axisRect()->margins().left(), PlotCanvas::leftMargin());
    QVERIFY(PlotCanvas::axisMargin() >= 8 + QFontMetrics(canvas->xAxis->tickLabelFont()).height());
    QTRY_VERIFY(table->verticalHeader()->defaultSectionSize() > row);
    QVERIFY(table->verticalHeader()->defaultSectionSize() >= QFontMetrics(table->font()).height());
  }

  void no_button_in_the_window_takes_a_menus_letter() {
    StudioFixture studio;
    const auto letter = [](const QString& text) { return QKeySequence::mnemonic(text).toString(); };
    QStringList menus;
    for (const QAction* menu : studio.window->menuBar()->actions()) menus.append(letter(menu->text()));
    QVERIFY(!menus.contains(QString()));
    for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>())
      for (const QAbstractButton* button : dock->findChildren<QAbstractButton*>())
        QVERIFY2(!menus.contains(letter(button->text())), qPrintable(button->text()));
  }

  void the_size_of_text_is_remembered() {
    auto home = std::make_shared<QTemporaryDir>();
    {
      StudioFixture studio(home, "");
      studio.show();
      studio.press(Qt::Key_Plus, Qt::ControlModifier);
      studio.window->close();
    }
    setTextScale(1.0);
    const StudioFixture again(home, "");
    QCOMPARE(textScale(), 1.1);
  }

  void docks_have_their_sizes_again_with_text_of_the_normal_size() {
    OpenStudio studio;
    auto* dock = studio.find<QDockWidget>("setupDock");
    studio.window->resize(1366, 768);
    const auto give = [&](int width) {
      studio.window->resizeDocks({dock}, {width}, Qt::Horizontal);
      QTRY_COMPARE(dock->width(), width);
    };
    give(400);
    studio.press(Qt::Key_Plus, Qt::ControlModifier);
    give(480);
    studio.press(Qt::Key_Plus, Qt::ControlModifier);
    QCoreApplication::processEvents();
    QVERIFY2(dock->width() >= 480, qPrintable(QString::number(dock->width())));
    studio.press(Qt::Key_0, Qt::ControlModifier);
    QTRY_COMPARE(dock->width(), 400);
    // Another layout is not undone.
    give(520);
    studio.press(Qt::Key_Plus, Qt::ControlModifier);
    studio.action("resetLayoutAction")->trigger();
    QTRY_VERIFY(dock->width() < 500);
    studio.press(Qt::Key_0, Qt::ControlModifier);
    QCoreApplication::processEvents();
    QVERIFY2(dock->width() < 500, qPrintable(QString::number(dock->width())));
  }

  void sizes_have_an_end() {
    QCOMPARE(nextTextScale(largestText, 1), largestText);
    QCOMPARE(nextTextScale(smallestText, -1), smallestText);
  }

  void the_presenter_layout_shows_the_plots_and_the_window_and_goes_again() {
    OpenStudio studio;
    const auto shown = [&] {
      QStringList names;
      for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>())
        if (dock->isVisibleTo(studio.window.get())) names.append(dock->objectName());
      names.sort();
      return names;
    };
    const QStringList before = shown();
    studio.action("presenterAction")->trigger();
    QCOMPARE(shown(), QStringList{QStringLiteral("windowDock")});
    QVERIFY(textScale() > 1.0);
    studio.action("presenterAction")->trigger();
    QCOMPARE(shown(), before);
    QCOMPARE(textScale(), 1.0);
    // A line of text is a fortieth of the screen: 27 px of 1080.
    QCOMPARE(ViewSize::presenterScale(1080.0, 15.0), 1.8);
    QCOMPARE(ViewSize::presenterScale(400.0, 15.0), 1.0);
  }

  void the_glossary_has_the_programs_words() {
    initAccrueResources();
    const auto& entries = glossary();
    QVERIFY(entries.size() > 60);
    for (const char* word : {"micro-step", "window", "N", "boundary", "update", "tail", "phase", "lamp", "sentinel"})
      QVERIFY2(
          std::ranges::any_of(entries, [&](const auto& entry) { return entry.words.contains(QLatin1String(word)); }),
          word);
    const int steps = glossaryEntryFor(entries, QStringLiteral("What is a micro-step?"));
    QCOMPARE(entries[static_cast<std::size_t>(steps)].words.front(), QStringLiteral("micro-step"));
    QCOMPARE(glossaryEntryFor(entries, QStringLiteral("nothing of the kind")), -1);
    QVERIFY(!entries.front().meaning.contains(QLatin1Char('`')));
    QVERIFY(std::ranges::is_sorted(entries, {}, [](const auto& entry) { return entry.words.front().toLower(); }));
    for (const char* word :
         {"\u2016 \u2016", "tank", "slot", "sync strip", "mean of means", "unscale", "clip", "schedule"})
      QVERIFY2(std::ranges::any_of(entries,
                                   [&](const auto& entry) { return entry.words.front() == QString::fromUtf8(word); }),
               word);
  }

  void f1_opens_the_glossary_at_the_word_of_the_field() {
    OpenStudio studio;
    QWidget* field = nullptr;
    for (QWidget* widget : studio.window->findChildren<QWidget*>())
      if (widget->accessibleName() == QLatin1String("Micro-batch") && widget->focusPolicy() != Qt::NoFocus)
        field = widget;
    QVERIFY(field);
    field->setFocus();
    studio.press(Qt::Key_F1);
    auto* words = studio.find<QListWidget>("glossaryWords");
    QVERIFY(words && words->isVisible());
    QCOMPARE(words->currentItem()->text(), QStringLiteral("micro-batch"));
    QTRY_VERIFY_WITH_TIMEOUT(studio.find("glossarySearch")->hasFocus(), patience_ms);  // in a window of its own
    QVERIFY(studio.find<QTextBrowser>("glossaryMeaning")->toPlainText().contains(QStringLiteral("one micro-step")));
    // By another tool's name.
    QTest::keyClicks(studio.find("glossarySearch"), QStringLiteral("accumulative_counts"));
    QCOMPARE(words->currentItem()->text(), QStringLiteral("N"));
    QCOMPARE(unnamed(studio.find("glossarySheet")), QStringList());
  }

  void the_narrator_tells_states_at_once_and_progress_rarely() {
    OpenStudio studio(smallSpec(100'000), "micro_ms=2");
    auto* narrator = studio.window->findChild<Narrator*>();
    QSignalSpy said(narrator, &Narrator::said);
    studio.action("narrateAction")->trigger();
    QVERIFY(studio.find<QLabel>("narration")->isVisible());
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run()->last().update > 40, patience_ms);
    const auto progress = [&] {
      return std::ranges::count_if(
          said, [](const auto& row) { return row.at(0).toString().startsWith(QLatin1String("Update ")); });
    };
    QVERIFY2(progress() <= 2, qPrintable(QString::number(progress())));
    studio.press(Qt::Key_F8);
    QTRY_VERIFY_WITH_TIMEOUT(narrator->sentence().startsWith(QStringLiteral("Paused, ")), patience_ms);
    QAccessibleInterface* face = QAccessible::queryAccessibleInterface(studio.find("narration"));
    QCOMPARE(face->text(QAccessible::Name), narrator->sentence());
    studio.endRun();
    QTRY_VERIFY_WITH_TIMEOUT(narrator->sentence().startsWith(QStringLiteral("Stopped, ")), patience_ms);
    studio.action("narrateAction")->trigger();
    QVERIFY(!studio.find("narration")->isVisible());
  }

  void everything_focusable_has_a_name_in_every_dock_and_state() {
    OpenStudio studio(smallSpec(), "micro_ms=2");
    const auto look = [&](const char* state) {
      for (QDockWidget* dock : studio.window->findChildren<QDockWidget*>()) {
        dock->show();
        dock->raise();
        QTRY_VERIFY(dock->isVisible());
        const QStringList found = unnamed(studio.window.get());
        QVERIFY2(found.isEmpty(),
                 qPrintable(QStringLiteral("%1, %2: %3")
                                .arg(QLatin1String(state), dock->objectName(), found.join(QStringLiteral("; ")))));
      }
    };
    look("idle");
    studio.press(Qt::Key_F10);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    look("paused");
    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    look("running");
    studio.endRun();
    look("finished");
  }

  void a_run_is_trained_stepped_and_stopped_by_the_accessibility_tree_alone() {
    OpenStudio studio(smallSpec(100'000), "micro_ms=5");
    QVERIFY(press(studio, "Run"));
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run()->last().update >= 1, patience_ms);
    QVERIFY(press(studio, "Pause"));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QVERIFY(press(studio, "Next phase"));
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::paused && studio.control->held().newest() &&
                                 studio.control->held().newest()->phase == StepPhase::forward,
                             patience_ms);
    // The inspector's table says it, cell by cell.
    studio.find<QDockWidget>("inspectorDock")->raise();
    auto* table = QAccessible::queryAccessibleInterface(studio.find("inspectorPhases"));
    QVERIFY(table && table->tableInterface());
    QTRY_VERIFY_WITH_TIMEOUT(table->tableInterface()->rowCount() > 0 && table->tableInterface()->columnCount() > 1,
                             patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(table->tableInterface()->cellAt(0, 0)->text(QAccessible::Name),
                              QStringLiteral("\u25b6 forward"), patience_ms);
    QVERIFY(table->tableInterface()->cellAt(0, 1)->text(QAccessible::Name).startsWith(QStringLiteral("loss ")));
    QVERIFY(press(studio, "Continue"));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QVERIFY(press(studio, "Stop"));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
  }

  void message_boxes_have_the_studios_icons() {
    StudioFixture studio;
    QMessageBox box(QMessageBox::Question, QStringLiteral("Title"), QStringLiteral("Text"));
    const QImage ours = themedIcon(QStringLiteral("question")).pixmap(24, 24).toImage();
    QVERIFY(!ours.isNull());
    QCOMPARE(QApplication::style()->standardIcon(QStyle::SP_MessageBoxQuestion).pixmap(24, 24).toImage(), ours);
    QVERIFY(!box.iconPixmap().isNull());
    box.setStandardButtons(QMessageBox::Cancel);
    QVERIFY(box.button(QMessageBox::Cancel)->icon().isNull());
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestLegible)

}  // namespace test_legible
#include "test_legible.moc"
