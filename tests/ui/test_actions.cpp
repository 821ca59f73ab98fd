// SPDX-License-Identifier: GPL-3.0-or-later
// Names, keys and help of everything one can reach.
#include <QAbstractScrollArea>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMap>
#include <QMenu>
#include <QMenuBar>
#include <QSignalSpy>
#include <QToolBar>

#include "kit/command_table.h"
#include "plots/plot_area.h"
#include "points/smoothing.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_actions {

using namespace accrue;
using namespace accrue::ui;

namespace {

void collect(const QMenu* menu, QList<QAction*>& actions) {
  for (QAction* action : menu->actions()) {
    if (action->menu())
      collect(action->menu(), actions);
    else if (!action->isSeparator())
      actions.append(action);
  }
}

QList<QAction*> menuActions(const MainWindow& window) {
  QList<QAction*> actions;
  for (const QAction* top : window.menuBar()->actions()) collect(top->menu(), actions);
  return actions;
}

QChar mnemonic(const QString& text) {
  const qsizetype at = text.indexOf(QLatin1Char('&'));
  return at < 0 || at + 1 >= text.size() ? QChar() : text[at + 1].toLower();
}

}  // namespace

class TestActions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_open_menu_keeps_its_letters() {
    StudioFixture studio;
    studio.show();
    auto* menu = studio.find<QMenu>("learnMenu");
    disconnect(studio.action("demoAction"), nullptr, nullptr, nullptr);  // it would train
    QSignalSpy compared(studio.action("compareRunsAction"), &QAction::triggered);
    QSignalSpy chosen(studio.action("demoAction"), &QAction::triggered);
    studio.action("compareRunsAction")->setEnabled(true);
    QTest::keyClick(studio.window.get(), Qt::Key_L, Qt::AltModifier);
    QTRY_VERIFY_WITH_TIMEOUT(menu->isVisible(), patience_ms);
    QTest::keyClick(menu, Qt::Key_D);
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(compared.count(), 0);
  }

  void no_key_means_two_things() {
    StudioFixture studio;
    QMap<QString, QString> owners;
    for (const QAction* action : studio.window->findChildren<QAction*>()) {
      if (action->shortcutContext() != Qt::WindowShortcut) continue;
      for (const QKeySequence& keys : action->shortcuts()) {
        const QString text = keys.toString();
        QVERIFY2(!owners.contains(text),
                 qPrintable(QStringLiteral("%1: %2 and %3").arg(text, owners.value(text), action->objectName())));
        owners.insert(text, action->objectName());
      }
    }
    QVERIFY(owners.size() > 15);
  }

  void no_key_means_one_thing_in_the_runs_and_another_in_a_plot() {
    StudioFixture studio;
    QMap<QString, QString> in_plots;
    for (const QAction* action : studio.window->actions().all())
      if (const QString key = action->text().section(QLatin1Char('\t'), 1); !key.isEmpty())
        in_plots.insert(key, action->objectName());
    QVERIFY(in_plots.contains(QStringLiteral("S")));
    for (const QAction* action : studio.window->actions().all())
      for (const QKeySequence& keys : action->shortcuts())
        QVERIFY2(!in_plots.contains(keys.toString()),
                 qPrintable(action->objectName() + QStringLiteral(", ") + in_plots.value(keys.toString())));
  }

  void every_command_has_a_name_and_a_help_text() {
    StudioFixture studio;
    for (const QAction* action : studio.window->actions().all()) {
      QVERIFY2(!action->objectName().isEmpty(), qPrintable(action->text()));
      QVERIFY2(!action->statusTip().isEmpty() || action->isCheckable(), qPrintable(action->objectName()));
      // Lessons and menus name commands that are buttons without a text.
      const QString name = action->text().section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&'));
      if (action != studio.action("runAction"))
        QVERIFY2(action->toolTip().startsWith(name.section(QChar(0x2026), 0, 0)), qPrintable(action->toolTip()));
    }
  }

  void every_command_is_in_a_menu() {
    StudioFixture studio;
    const QList<QAction*> in_menus = menuActions(*studio.window);
    for (QAction* action : studio.window->actions().all())
      QVERIFY2(in_menus.contains(action), qPrintable(action->objectName()));
  }

  void every_command_with_an_icon_has_one_that_exists() {
    StudioFixture studio;
    for (const QAction* action : studio.window->actions().all()) {
      if (action->icon().isNull()) continue;
      const QImage image = action->icon().pixmap(24, 24).toImage();
      bool painted = false;
      for (int y = 0; y < image.height() && !painted; ++y)
        for (int x = 0; x < image.width() && !painted; ++x) painted = qAlpha(image.pixel(x, y)) > 0;
      QVERIFY2(painted, qPrintable(action->objectName()));
    }
  }

  void mnemonics_of_a_menu_differ() {
    StudioFixture studio;
    QSet<QChar> top_letters;
    for (const QAction* top : studio.window->menuBar()->actions()) {
      const QChar top_letter = mnemonic(top->text());
      QVERIFY2(!top_letters.contains(top_letter), qPrintable(top->text()));
      top_letters.insert(top_letter);
      QMap<QChar, QString> letters;
      for (const QAction* action : top->menu()->actions()) {
        const QChar letter = mnemonic(action->text());
        if (letter.isNull()) continue;
        QVERIFY2(!letters.contains(letter),
                 qPrintable(QStringLiteral("%1: %2 and %3").arg(top->text(), letters.value(letter), action->text())));
        letters.insert(letter, action->text());
      }
    }
  }

  void docks_and_bars_have_names() {
    StudioFixture studio;
    for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>()) QVERIFY(!dock->objectName().isEmpty());
    for (const QToolBar* bar : studio.window->findChildren<QToolBar*>()) QVERIFY(!bar->objectName().isEmpty());
  }

  void everything_focusable_has_a_name() {
    OpenStudio studio;
    QStringList unnamed;
    for (QWidget* widget : studio.window->findChildren<QWidget*>()) {
      if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisibleTo(studio.window.get())) continue;
      if (widget->objectName().startsWith(QStringLiteral("qt_"))) continue;
      QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
      const QString name = face ? face->text(QAccessible::Name) : QString();
      const bool inside = qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) != nullptr;
      if (name.isEmpty() && !inside)
        unnamed.append(QStringLiteral("%1 \"%2\" in %3")
                           .arg(QLatin1String(widget->metaObject()->className()), widget->objectName(),
                                widget->parentWidget()->objectName()));
    }
    QVERIFY2(unnamed.isEmpty(), qPrintable(unnamed.join(QLatin1Char('\n'))));
  }

  void a_command_is_found_by_its_words_and_given_by_keyboard_alone() {
    StudioFixture studio;
    studio.show();
    studio.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto* palette = studio.find("commandPalette");
    QVERIFY(palette && palette->isVisible());
    auto* words = studio.find<QLineEdit>("commandWords");
    auto* list = studio.find<QListWidget>("commandList");
    QTRY_VERIFY_WITH_TIMEOUT(words->hasFocus(), patience_ms);
    for (const QAction* action : studio.window->actions().all()) {
      const QString name = action->text().section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&'));
      const bool listed = !list->findItems(name, Qt::MatchContains).isEmpty();
      if (action->isEnabled() && action != studio.window->actions()[Command::palette])
        QVERIFY2(listed, qPrintable(name));
    }
    QVERIFY(list->findItems(QStringLiteral("Kill"), Qt::MatchStartsWith).isEmpty());  // nothing runs
    QTest::keyClicks(words, QStringLiteral("dark theme"));
    QCOMPARE(list->currentItem()->text(), QStringLiteral("Theme: Dark"));
    QCOMPARE(QAccessible::queryAccessibleInterface(words)->text(QAccessible::Description),
             QStringLiteral("Theme: Dark"));
    words->clear();
    QTest::keyClicks(words, QStringLiteral("x axis:"));
    QTest::keyClick(words, Qt::Key_Down);
    QCOMPARE(list->currentItem()->text(), QStringLiteral("X axis: Update (2)"));
    // Commands with the words in their name come before those with the words in their help.
    for (const auto& [typed, found] :
         {std::pair("planner", "Panel: Planner"), std::pair("accumulation steps", "Field: Accumulation steps")}) {
      words->clear();
      QTest::keyClicks(words, QLatin1String(typed));
      QVERIFY2(list->currentItem()->text().startsWith(QLatin1String(found)), qPrintable(list->currentItem()->text()));
    }
    words->clear();
    QTest::keyClicks(words, QStringLiteral("gallery"));
    QTest::keyClick(words, Qt::Key_Return);
    QVERIFY(!palette->isVisible());
    QVERIFY(studio.find("galleryDock")->isVisible());
    // A field, by another tool's name.
    QTRY_VERIFY_WITH_TIMEOUT(studio.window->isActiveWindow(), patience_ms);
    studio.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(palette->isVisible() && words->hasFocus(), patience_ms);
    QTest::keyClicks(words, QStringLiteral("tp_degree"));
    QCOMPARE(list->currentItem()->text(), QStringLiteral("Field: Tensor-parallel ranks"));
    QTest::keyClick(words, Qt::Key_Return);
    QVERIFY(!palette->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(studio.find("field.parallel.tensor")->hasFocus(), patience_ms);
    // Nothing is found, nothing is given.
    QTRY_VERIFY_WITH_TIMEOUT(studio.window->isActiveWindow(), patience_ms);
    studio.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(palette->isVisible() && words->hasFocus(), patience_ms);
    QTest::keyClicks(words, QStringLiteral("no such command"));
    QVERIFY(!list->currentItem());
    QCOMPARE(list->item(0)->text(), QStringLiteral("No command or field has these words"));
    QTest::keyClick(words, Qt::Key_Return);
    QVERIFY(palette->isVisible());
    QTest::keyClick(words, Qt::Key_Escape);
    QVERIFY(!palette->isVisible());
  }

  void the_smoothing_factor_stands_at_its_slider() {
    StudioFixture studio;
    auto* factor = studio.find<QLabel>("smoothingWeight");
    QCOMPARE(factor->text(), QStringLiteral("off"));
    studio.window->plots()->setSmoothing(0.9);
    QCOMPARE(factor->text().toDouble(), 0.9);
    studio.action("moreSmoothingAction")->trigger();
    QVERIFY2(factor->text().toDouble() > 0.9, qPrintable(factor->text()));
    QCOMPARE(factor->text(), QString::number(studio.window->plots()->smoothing(), 'g', 3));
    QVERIFY(factor->toolTip().contains(smoothingFormula(studio.window->plots()->smoothing())));
  }

  void the_manual_lists_every_command() {
    initAccrueResources();
    QFile page(QStringLiteral(":/manual/commands.md"));
    QVERIFY(page.open(QIODevice::ReadOnly));
    const QStringList lines = QString::fromUtf8(page.readAll()).split(QLatin1Char('\n'));
    QStringList listed, wanted;
    for (const QString& line : lines)
      if (line.startsWith(QLatin1String("| *")) || line.startsWith(QLatin1String("## "))) listed.append(line);
    const auto plain = [](const char* text) { return QString::fromUtf8(text).remove(QLatin1Char('&')); };
    const auto cell = [](const QString& text) { return text.isEmpty() ? text : QLatin1Char(' ') + text; };
    for (const MenuRow& row : menuTable()) {
      QString keys = QString::fromUtf8(row.keys).replace(QLatin1Char(' '), QLatin1String(", "));
      if (row.use == CommandUse::inRuns) keys += QLatin1String(" in the runs");
      if (!keys.isEmpty() && (row.use == CommandUse::inPlots || row.use == CommandUse::checkableInPlots))
        keys += QLatin1String(" in a plot");
      if (row.kind == MenuRow::menu) wanted.append(QStringLiteral("## ") + plain(row.text));
      if (row.kind == MenuRow::command)
        wanted.append(QStringLiteral("| *%1* |%2 |%3 |").arg(plain(row.text), cell(keys), cell(plain(row.help))));
    }
    for (qsizetype i = 0; i < std::max(listed.size(), wanted.size()); ++i) QCOMPARE(listed.value(i), wanted.value(i));
  }

  void the_sheet_lists_every_key() {
    StudioFixture studio;
    studio.show();
    studio.press(Qt::Key_Slash, Qt::ControlModifier);
    QWidget* sheet = studio.find("shortcutSheet");
    QVERIFY(sheet && sheet->isVisible());
    QStringList texts;
    for (const QLabel* label : sheet->findChildren<QLabel*>()) texts.append(label->text());
    for (const QAction* action : studio.window->actions().all())
      for (const QKeySequence& keys : action->shortcuts())
        QVERIFY2(texts.join(QLatin1Char(' ')).contains(keys.toString(QKeySequence::NativeText)),
                 qPrintable(keys.toString()));
    // Those that need the focus in the runs stand under that.
    const qsizetype in_runs = texts.indexOf(QStringLiteral("In the runs table"));
    QVERIFY(in_runs > 0);
    QVERIFY(texts.indexOf(studio.window->actions()[Command::deleteRun]->iconText()) > in_runs);
    QVERIFY(texts.indexOf(studio.window->actions()[Command::run]->iconText()) < in_runs);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestActions)

}  // namespace test_actions
#include "test_actions.moc"
