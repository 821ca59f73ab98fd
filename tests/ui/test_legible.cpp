// SPDX-License-Identifier: GPL-3.0-or-later
// The studio for people who see it from the last row, who hear it, or who meet its words for the first time: text size,
// presenter layout, glossary, narrator, and names for everything that can have the focus.
#include <QAccessible>
#include <QDockWidget>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenuBar>
#include <QMessageBox>
#include <QScreen>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTextBrowser>

#include "canvas/plot_canvas.h"
#include "kit/text_scale.h"
#include "plots/loss_plot.h"
#include "shell/view_size.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "teach/glossary.h"
#include "teach/glossary_sheet.h"
#include "teach/manual.h"
#include "teach/narrator.h"

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

/// The window as a screen reader knows it: nodes by role and name, and nothing else.
class Tree {
 public:
  explicit Tree(const StudioFixture& studio) : root_(QAccessible::queryAccessibleInterface(studio.window.get())) {}

  /// The first visible node; nullptr without one.
  QAccessibleInterface* find(QAccessible::Role role, const char* name) const {
    return under(root_, role, QLatin1String(name));
  }
  /// Presses a button, a tab or a menu command, as a screen reader does.
  bool press(QAccessible::Role role, const char* name) const {
    QAccessibleInterface* pressed = find(role, name);
    if (!pressed || pressed->state().disabled || !pressed->actionInterface()) return false;
    pressed->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
    return true;
  }
  QAccessibleValueInterface* value(const char* name) const {
    QAccessibleInterface* box = find(QAccessible::SpinBox, name);
    return box ? box->valueInterface() : nullptr;
  }
  /// Puts a text in place of another.
  bool write(const char* name, const char* text) const {
    QAccessibleInterface* box = find(QAccessible::SpinBox, name);
    if (!box || !box->editableTextInterface() || !box->textInterface()) return false;
    box->editableTextInterface()->replaceText(0, box->textInterface()->characterCount(), QLatin1String(text));
    return true;
  }
  /// Returns the choice of the box with that label; on Linux a box of choices is found by its label.
  QString chosen(const char* label) const {
    QString said;
    everyNode(root_, [&](QAccessibleInterface* node) {
      if (node->role() != QAccessible::ComboBox) return;
      for (const auto& [other, relation] : node->relations(QAccessible::Label))
        if (other->text(QAccessible::Name) == QLatin1String(label)) said = node->text(QAccessible::Value);
    });
    return said;
  }
  QString cell(const char* table, int row, int column) const {
    return textAt(find(QAccessible::Table, table), row, column);
  }
  /// Returns the text of a column for the run with this N; empty if there is none.
  QString cellOfRun(const char* steps, const char* column) const {
    QAccessibleInterface* runs = find(QAccessible::Tree, "Runs");
    const int wanted = columnOf(runs, "N"), asked = columnOf(runs, column);
    if (wanted < 0 || asked < 0) return {};
    // A cell says its column, too: "N: 4".
    const auto said = [runs](int row, int column) {
      return textAt(runs, row, column).section(QStringLiteral(": "), 1);
    };
    for (int row = 0; row < runs->tableInterface()->rowCount(); ++row)
      if (said(row, wanted) == QLatin1String(steps)) return said(row, asked);
    return {};
  }

 private:
  static QAccessibleInterface* under(QAccessibleInterface* from, QAccessible::Role role, const QString& name) {
    if (!from) return nullptr;
    // A command's name may end with the key that a plot takes for it.
    const QString said = from->text(QAccessible::Name).section(QLatin1Char('\t'), 0, 0);
    // One of a menu can be chosen while the menu is closed.
    const bool there = role == QAccessible::MenuItem || !from->state().invisible;
    if (from->role() == role && said == name && there) return from;
    for (int child = 0; child < from->childCount(); ++child)
      if (QAccessibleInterface* found = under(from->child(child), role, name)) return found;
    return nullptr;
  }
  template <typename Act>
  static void everyNode(QAccessibleInterface* from, const Act& act) {
    if (!from) return;
    act(from);
    for (int child = 0; child < from->childCount(); ++child) everyNode(from->child(child), act);
  }
  static QString textAt(QAccessibleInterface* table, int row, int column) {
    if (!table || !table->tableInterface()) return {};
    if (row >= table->tableInterface()->rowCount() || column >= table->tableInterface()->columnCount()) return {};
    QAccessibleInterface* cell = table->tableInterface()->cellAt(row, column);
    return cell ? cell->text(QAccessible::Name) : QString();
  }
  static int columnOf(QAccessibleInterface* table, const char* name) {
    if (!table || !table->tableInterface()) return -1;
    for (int column = 0; column < table->tableInterface()->columnCount(); ++column)
      if (table->tableInterface()->columnDescription(column) == QLatin1String(name)) return column;
    return -1;
  }

  QAccessibleInterface* root_;
};

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
    studio.window->resize(1366, 768);
    QCoreApplication::processEvents();
    const QStringList before = shown();
    const int width = studio.find("setupDock")->width();
    studio.action("presenterAction")->trigger();
    QCOMPARE(shown(), QStringList{QStringLiteral("windowDock")});
    QVERIFY(textScale() > 1.0);
    studio.action("presenterAction")->trigger();
    QCOMPARE(shown(), before);
    QCOMPARE(textScale(), 1.0);
    QTRY_COMPARE_WITH_TIMEOUT(studio.find("setupDock")->width(), width, patience_ms);
    // A line of text is a fortieth of the screen: 27 px of 1080.
    QCOMPARE(ViewSize::presenterScale(1080.0, 15.0), 1.8);
    QCOMPARE(ViewSize::presenterScale(400.0, 15.0), 1.0);
  }

  void the_presenter_layout_enlarges_the_smallest_text_too() {
    RunningStudio studio("micro_ms=5");
    studio.action("presenterAction")->trigger();
    const double fortieth = studio.window->screen()->size().height() / 40.0;
    auto* canvas = studio.window->findChild<PlotCanvas*>();
    const auto high = [](const QFont& font) { return QFontMetricsF(font).height(); };
    QTRY_VERIFY_WITH_TIMEOUT(high(canvas->xAxis->tickLabelFont()) > fortieth - 1.0, patience_ms);
    for (const char* name : {"windowTitle", "windowSync", "windowLampText"})
      QVERIFY2(high(studio.find(name)->font()) > fortieth - 1.0, name);
    studio.action("presenterAction")->trigger();
    studio.endRun();
  }

  void text_of_another_size_has_its_place_before_it_is_painted() {
    RunningStudio studio("micro_ms=5");
    const PlotHeader& header = studio.window->findChild<LossPlot*>()->header();
    const int before = header.height();
    for (int press = 0; press < 2; ++press) {
      studio.action("largerTextAction")->trigger();
      QVERIFY(header.height() > before);
      QCOMPARE(header.height(), header.sizeHint().height());
    }
    studio.endRun();
  }

  void the_presenter_layout_has_a_key_of_the_curves() {
    RunningStudio studio("micro_ms=5");
    const QWidget* key = studio.find("runKey");
    QVERIFY(key && !key->isVisible());  // the runs table is the key
    studio.action("presenterAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(key->isVisible() && key->height() > 0, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(key->accessibleDescription(), studio.control->run()->name(), patience_ms);
    QVERIFY(key->height() < studio.window->height() / 4);
    studio.action("presenterAction")->trigger();
    QVERIFY(!key->isVisible());
    studio.action("presenterAction")->trigger();
    studio.action("resetLayoutAction")->trigger();
    QVERIFY(!key->isVisible());
    studio.endRun();
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

  void the_manual_is_searched_and_read() {
    OpenStudio studio;
    studio.window->setFocus();
    studio.press(Qt::Key_F1);  // nothing here has a word of its own
    auto* pages = studio.find<QListWidget>("manualPages");
    QVERIFY(pages && pages->isVisible());
    const auto title = [&] {
      return studio.find<QTextBrowser>("manualPage")->toPlainText().section(QLatin1Char('\n'), 0, 0);
    };
    QCOMPARE(title(), QStringLiteral("Working in the studio"));
    auto* search = studio.find<QLineEdit>("manualSearch");
    QTest::keyClicks(search, QStringLiteral("--standalone TORCHRUN"));  // all words, in any order
    QCOMPARE(title(), QStringLiteral("Under torchrun, Slurm and MPI"));
    auto* page = studio.find<QTextBrowser>("manualPage");
    QCOMPARE(page->textCursor().selectedText(), QStringLiteral("torchrun"));
    const int first = page->textCursor().position();
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(page->textCursor().position() > first);
    QVERIFY(pages->item(0)->isHidden());
    // Links lead to other pages; one into the sources is a name alone.
    Q_EMIT page->anchorClicked(QUrl(QStringLiteral("trust.md")));
    QCOMPARE(title(), QStringLiteral("What the network is trusted with"));
    QVERIFY(search->text().isEmpty() && !pages->item(0)->isHidden());
    studio.find<QPushButton>("manualBack")->click();
    QCOMPARE(title(), QStringLiteral("Under torchrun, Slurm and MPI"));
    search->setText(QStringLiteral("no page says this zzqx"));
    QCOMPARE(title(), QStringLiteral("No page has all of these words."));
    for (const ManualPage& each : manual()) {
      QVERIFY2(!each.title.isEmpty() && !each.text.contains(QLatin1String("](../../")), qPrintable(each.topic));
    }
    QCOMPARE(unnamed(studio.find("manualSheet")), QStringList());
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
    // Each field says its own, above the word that it has or in place of one.
    const auto meaning = [&] { return studio.find<QTextBrowser>("glossaryMeaning")->toPlainText(); };
    QVERIFY2(meaning().startsWith(QStringLiteral("Micro-batch\n")), qPrintable(meaning()));
    const auto ask = [&](const char* name) {
      studio.window->activateWindow();
      QWidget* asked = studio.find(name);
      asked->setFocus();
      QTRY_VERIFY_WITH_TIMEOUT(asked->hasFocus(), patience_ms);
      studio.press(Qt::Key_F1);
    };
    ask("field.model.dtype");
    QVERIFY(!words->currentItem());
    QVERIFY2(meaning().startsWith(QStringLiteral("Number type\n")), qPrintable(meaning()));
    QVERIFY2(meaning().contains(QStringLiteral("model.dtype")), qPrintable(meaning()));
    ask("field.accumulation.steps");
    QCOMPARE(words->currentItem()->text(), QStringLiteral("N"));
    QVERIFY2(meaning().startsWith(QStringLiteral("Accumulation steps\n")), qPrintable(meaning()));
    studio.find("glossarySearch")->setFocus();
    // By another tool's name.
    QTest::keyClicks(studio.find("glossarySearch"), QStringLiteral("accumulative_counts"));
    QCOMPARE(words->currentItem()->text(), QStringLiteral("N"));
    // By all words that are written, wherever in the entry each of them is.
    studio.find<QLineEdit>("glossarySearch")->setText(QStringLiteral("Accumulation steps"));
    QVERIFY(words->currentItem());
    QCOMPARE(words->currentItem()->text(), QStringLiteral("N"));
    studio.find<QLineEdit>("glossarySearch")->setText(QStringLiteral("sequence positions zzqx"));
    QVERIFY(!words->currentItem());
    QCOMPARE(unnamed(studio.find("glossarySheet")), QStringList());
    // A field whose label has none of the words, by its key; one whose key has, by that.
    const auto wordAt = [](const QWidget* focus) {
      const int entry = glossaryEntryFor(glossary(), focusedWords(focus));
      return entry < 0 ? QString() : glossary()[static_cast<std::size_t>(entry)].words.front();
    };
    const auto wordOf = [&](const char* name) { return wordAt(studio.find(name)); };
    QCOMPARE(wordOf("field.accumulation.steps"), QStringLiteral("N"));
    QCOMPARE(wordOf("field.accumulation.schedule_clock"), QStringLiteral("schedule clock"));
    QCOMPARE(wordOf("field.accumulation.normalizer"), QStringLiteral("normalizer"));
    QCOMPARE(wordOf("sampleLock"), QStringLiteral("Keep"));
    QCOMPARE(wordOf("field.megatron.recompute_activations"), QStringLiteral("recompute"));
    QCOMPARE(wordOf("field.model.heads"), QString());
    // The explanation of a display follows what it shows.
    QCOMPARE(wordOf("windowLamp"), QStringLiteral("lamp"));
    QVERIFY(studio.find("windowLamp")->focusPolicy() != Qt::NoFocus);
    const std::pair<const char*, const char*> plots[] = {{"Loss plot", "loss"},
                                                         {"Learning rate plot", "learning rate"},
                                                         {"Gradient norm plot", "gradient norm"},
                                                         {"Loss scale plot", "loss scale"},
                                                         {"Sync strip", "sync strip"}};
    for (const auto& [name, word] : plots) {
      const auto all = studio.window->findChildren<QWidget*>();
      const auto canvas = std::ranges::find(all, QLatin1String(name), &QWidget::accessibleName);
      QVERIFY2(canvas != all.end(), name);
      QCOMPARE(wordAt(*canvas), QLatin1String(word));
    }
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

  void two_runs_are_compared_by_the_accessibility_tree_alone() {
    StudioFixture studio("micro_ms=1");
    studio.show();
    const Tree tree(studio);
    QVERIFY(tree.press(QAccessible::Button, "Demo"));
    QTRY_COMPARE_WITH_TIMEOUT(tree.cellOfRun("4", "State"), QStringLiteral("Finished"), patience_ms);

    // A number is set as such, and as a text; both are read back.
    QAccessibleValueInterface* steps = tree.value("Accumulation steps");
    QVERIFY(steps);
    QCOMPARE(steps->currentValue().toInt(), 4);
    QCOMPARE(steps->minimumValue().toInt(), 1);
    steps->setCurrentValue(16);
    QVERIFY(tree.write("Micro-batch", "1"));
    QCOMPARE(tree.value("Micro-batch")->currentValue().toInt(), 1);
    QCOMPARE(studio.document.spec().accumulation.steps, 16);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 1);

    QVERIFY(tree.press(QAccessible::Button, "Run"));
    QTRY_COMPARE_WITH_TIMEOUT(tree.cellOfRun("16", "State"), QStringLiteral("Finished"), patience_ms);

    // The clock is chosen in the menu, and its box tells it.
    QCOMPARE(tree.chosen("X"), QStringLiteral("Update"));
    QVERIFY(tree.press(QAccessible::MenuItem, "Sample"));
    QCOMPARE(tree.chosen("X"), QStringLiteral("Sample"));

    // Both losses are read in the table of runs; the plot says that it shows the two.
    const QString first = tree.cellOfRun("4", "Loss"), second = tree.cellOfRun("16", "Loss");
    QVERIFY2(first.toDouble() > 0.0 && second.toDouble() > 0.0, qPrintable(first + QLatin1Char(' ') + second));
    QAccessibleInterface* plot = tree.find(QAccessible::Chart, "Loss plot");
    QVERIFY(plot);
    const QString said = plot->text(QAccessible::Description);
    QVERIFY2(said.startsWith(QStringLiteral("loss: 2 runs")), qPrintable(said));
  }

  void a_run_is_trained_stepped_and_stopped_by_the_accessibility_tree_alone() {
    OpenStudio studio(smallSpec(100'000), "micro_ms=5");
    const Tree tree(studio);
    QVERIFY(tree.press(QAccessible::Button, "Run"));
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run()->last().update >= 1, patience_ms);
    QVERIFY(tree.press(QAccessible::Button, "Pause"));
    QTRY_COMPARE_WITH_TIMEOUT(tree.cellOfRun("4", "State"), QStringLiteral("Paused"), patience_ms);
    QVERIFY(tree.press(QAccessible::Button, "Next phase"));
    // The inspector's table says it, cell by cell.
    QVERIFY(tree.press(QAccessible::PageTab, "Inspector"));
    const auto phase = [&tree](int column) { return tree.cell("Phases of the micro-step", 0, column); };
    QTRY_COMPARE_WITH_TIMEOUT(phase(0), QStringLiteral("\u25b6 forward"), patience_ms);
    QVERIFY2(phase(1).startsWith(QStringLiteral("loss ")), qPrintable(phase(1)));
    QVERIFY(tree.press(QAccessible::Button, "Continue"));
    QTRY_COMPARE_WITH_TIMEOUT(tree.cellOfRun("4", "State"), QStringLiteral("Running"), patience_ms);
    QVERIFY(tree.press(QAccessible::Button, "Stop"));
    QTRY_COMPARE_WITH_TIMEOUT(tree.cellOfRun("4", "State"), QStringLiteral("Stopped"), patience_ms);
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
