// SPDX-License-Identifier: GPL-3.0-or-later
// Names, keys and help of everything one can reach. `ui_panels test_actions --write-page FILE` writes the manual's page
// of commands, resources/manual/commands.md.
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
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kit/actions.h"
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

/// Commands and choices, without the panels.
QList<QAction*> commandActions(const StudioFixture& studio) {
  const Actions& actions = studio.window->actions();
  QList<QAction*> commands;
  for (const ListedCommand& each : actions.list())
    if (each.action && !actions.panels().contains(each.action)) commands.append(each.action);
  return commands;
}

QString pageRow(const ListedCommand& command) {
  const auto cell = [](const QString& text) { return text.isEmpty() ? text : QLatin1Char(' ') + text; };
  const QMap<KeyPlace, QString> places = {{KeyPlace::anywhere, QString()},
                                          {KeyPlace::inRuns, QStringLiteral(" in the runs")},
                                          {KeyPlace::inQueue, QStringLiteral(" in the queue")},
                                          {KeyPlace::inPlots, QStringLiteral(" in a plot")},
                                          {KeyPlace::onStartPage, QStringLiteral(" on the start page")},
                                          {KeyPlace::inManual, QStringLiteral(" in the manual")}};
  const QString name = command.action ? QStringLiteral("*%1*").arg(command.name()) : command.name();
  QString keys = command.keys().join(QStringLiteral(", "));
  if (!keys.isEmpty()) keys += places[command.row->place];
  return QStringLiteral("| %1 |%2 |%3 |").arg(name, cell(keys), cell(command.help()));
}

/// The manual's page of commands, as the table has them.
QString commandsPage(const Actions& actions) {
  QStringList lines = QStringLiteral(R"(# Commands and keys

After this page you can find any command of the studio, by its keys or by what it does.

Ctrl+Shift+P finds each command in italics by its name. A key of a plot works while a plot has the focus, and a key of the runs while the runs table has it.)")
                          .split(QLatin1Char('\n'));
  for (const MenuRow& menu : menuTable()) {
    if (menu.kind != MenuRow::menu) continue;
    const QString title = QString::fromUtf8(menu.text).remove(QLatin1Char('&'));
    lines << QString() << QStringLiteral("## ") + title << QString()
          << QStringLiteral("| command | keys | what it does |") << QStringLiteral("|---|---|---|");
    for (const ListedCommand& each : actions.list())
      if (each.menu == title) lines << pageRow(each);
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
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

  void no_key_of_a_plot_means_another_thing_elsewhere() {
    StudioFixture studio;
    QMap<QString, QString> in_plots;
    for (const ListedCommand& each : studio.window->actions().list())
      if (each.row->place == KeyPlace::inPlots)
        for (const QString& key : each.keys()) {
          QVERIFY2(!in_plots.contains(key), qPrintable(each.name() + QStringLiteral(", ") + in_plots.value(key)));
          in_plots.insert(key, each.name());
        }
    for (const char* key : {"S", "2", "Esc", "Shift+Backspace"}) QVERIFY2(in_plots.contains(QLatin1String(key)), key);
    for (const QAction* action : studio.window->findChildren<QAction*>())
      for (const QKeySequence& keys : action->shortcuts())
        QVERIFY2(!in_plots.contains(keys.toString()),
                 qPrintable(action->objectName() + QStringLiteral(", ") + in_plots.value(keys.toString())));
  }

  void every_command_has_a_name_and_a_help_text() {
    StudioFixture studio;
    for (const QAction* action : commandActions(studio)) {
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
    for (QAction* action : commandActions(studio))
      QVERIFY2(in_menus.contains(action), qPrintable(action->objectName()));
  }

  void every_command_with_an_icon_has_one_that_exists() {
    StudioFixture studio;
    for (const QAction* action : commandActions(studio)) {
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
    for (const QAction* action : commandActions(studio)) {
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

  void the_manual_lists_every_command_and_key() {
    initAccrueResources();
    QFile page(QStringLiteral(":/manual/commands.md"));
    QVERIFY(page.open(QIODevice::ReadOnly));
    StudioFixture studio;
    const QStringList listed = QString::fromUtf8(page.readAll()).split(QLatin1Char('\n'));
    const QStringList wanted = commandsPage(studio.window->actions()).split(QLatin1Char('\n'));
    for (qsizetype i = 0; i < std::max(listed.size(), wanted.size()); ++i)
      QVERIFY2(listed.value(i) == wanted.value(i),
               qPrintable(QStringLiteral("line %1 is \"%2\", and should be \"%3\": write the page with "
                                         "ui_panels test_actions --write-page resources/manual/commands.md")
                              .arg(i + 1)
                              .arg(listed.value(i), wanted.value(i))));
    for (const char* row :
         {"| *Layout: Compare* | Ctrl+2 |", "| *Panel: Set-up* | Alt+1 |", "| *X axis: Sample* | 3 in a plot |"})
      QVERIFY2(std::ranges::any_of(wanted, [row](const QString& line) { return line.startsWith(QLatin1String(row)); }),
               row);
  }

  void the_sheet_lists_every_key() {
    StudioFixture studio;
    studio.show();
    studio.press(Qt::Key_Slash, Qt::ControlModifier);
    QWidget* sheet = studio.find("shortcutSheet");
    QVERIFY(sheet && sheet->isVisible());
    QStringList texts;
    for (const QLabel* label : sheet->findChildren<QLabel*>()) texts.append(label->text());
    for (const QAction* action : commandActions(studio) + studio.window->actions().panels())
      for (const QKeySequence& keys : action->shortcuts())
        QVERIFY2(texts.join(QLatin1Char(' ')).contains(keys.toString(QKeySequence::NativeText)),
                 qPrintable(keys.toString()));
    // And those that no menu has.
    for (const char* name : {"Pan, five times as far with Shift", "Pause or continue", "Choose a card"})
      QVERIFY2(texts.contains(QLatin1String(name)), name);
    // Those that need the focus in the runs stand under that.
    const qsizetype in_runs = texts.indexOf(QStringLiteral("In the runs table"));
    QVERIFY(in_runs > 0);
    QVERIFY(texts.indexOf(studio.window->actions()[Command::deleteRun]->iconText()) > in_runs);
    QVERIFY(texts.indexOf(studio.window->actions()[Command::run]->iconText()) < in_runs);
  }
};

int writePage(const char* file) {
  StudioFixture studio;
  QFile page(QString::fromLocal8Bit(file));
  const QByteArray text = commandsPage(studio.window->actions()).toUtf8();
  if (page.open(QIODevice::WriteOnly) && page.write(text) == text.size() && page.flush()) return 0;
  std::fprintf(stderr, "%s: %s\n", file, qPrintable(page.errorString()));
  return 1;
}

int run_actions(int argc, char** argv) {
  const bool writes = argc == 3 && std::strcmp(argv[1], "--write-page") == 0;
  if (writes) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setAttribute(Qt::AA_Use96Dpi, true);
  if (writes) return writePage(argv[2]);
  TestActions tests;
  return QTest::qExec(&tests, argc, argv);
}

const accrue::test::TestFile test_file(__FILE__, &run_actions);

}  // namespace test_actions
#include "test_actions.moc"
