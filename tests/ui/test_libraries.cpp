// SPDX-License-Identifier: GPL-3.0-or-later
// Specs that name parts of a plug-in library, from the studio, over ranks that load it: chosen once in a dialog,
// remembered by contents, recorded with every run, found again when a run continues. The studio itself loads none.
#include <QCheckBox>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QFile>
#include <QFileInfo>
#include <QTableWidget>
#include <algorithm>
#include <variant>
#include <vector>

#include "accrue/run/preflight/run_order.h"
#include "document/spec_files.h"
#include "series/run_text.h"
#include "setup/finding_note.h"
#include "studio_fixture.h"
#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_libraries {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

QString builtLibrary(const char* name) {
  return QFileInfo(accrue::test::programPath((QByteArray("../") + name).constData())).canonicalFilePath();
}

/// The toy preset with the sample library's loss: half the loss at twice the rate ends at the preset's own 2.04.
QByteArray toyWith(const QByteArray& megatron, const QByteArray& epochs = "1") {
  QFile preset(accrue::test::sourcePath("resources/presets/toy.accrue"));
  if (!preset.open(QIODevice::ReadOnly)) qFatal("no preset");
  QByteArray text = preset.readAll();
  text.replace("lr = 0.02", "lr = 0.04").replace("epochs = 1", "epochs = " + epochs);
  text.replace("name = \"Eight points\"\n", "");
  return text + "\n[megatron]\n" + megatron;
}

const QByteArray halfSquare = "custom_loss_function = \"half_square\"\n";

class LibraryStudio : public StudioFixture {
 public:
  explicit LibraryStudio(std::shared_ptr<QTemporaryDir> home_dir = std::make_shared<QTemporaryDir>())
      : StudioFixture(std::move(home_dir), "", "accrue-rank"), file(home->filePath(QStringLiteral("libmine.so"))) {
    if (!QFile::exists(file)) QFile::copy(builtLibrary("examples/libplugin_library.so"), file);
    show();
  }
  void open(const QByteArray& spec) {
    const QString path = home->filePath(QStringLiteral("toy.accrue"));
    QFile written(path);
    QVERIFY(written.open(QIODevice::WriteOnly));
    written.write(spec);
    written.close();
    openFile(path);
  }
  void openFile(const QString& path) {
    window->openPath(path);
    QTRY_VERIFY_WITH_TIMEOUT(preflight->isCurrent(), patience_ms);
  }
  std::string firstError() const {
    for (const Finding& finding : preflight->result().findings)
      if (finding.severity == Severity::error) return finding.text();
    return {};
  }
  bool isReady() const { return preflight->isCurrent() && preflight->result().plan.has_value(); }

  QTableWidget* table() const { return find<QTableWidget>("librariesTable"); }
  QString cell(int row, int column) const { return table()->item(row, column)->text(); }
  /// The dialog, once accrue-rank has answered for its rows.
  void waitForDialog() const {
    QTRY_VERIFY_WITH_TIMEOUT(table() && table()->isVisible(), patience_ms);
    const auto answered = [this] {
      for (int row = 0; row < table()->rowCount(); ++row)
        if (cell(row, 1).startsWith(QLatin1String("asking"))) return false;
      return true;
    };
    QTRY_VERIFY_WITH_TIMEOUT(answered(), patience_ms);
  }
  void add(const QString& chosen) {
    dialogs.open_answer = chosen;
    find<QPushButton>("addLibrary")->click();
    waitForDialog();
  }
  QPushButton* okay() const {
    return find<QDialog>("librariesDialog")->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
  }
  /// As a user does, by the command.
  void choose() {
    action("chooseLibrariesAction")->trigger();
    waitForDialog();
    add(file);
    okay()->click();
    QTRY_VERIFY_WITH_TIMEOUT(isReady(), patience_ms);
  }
  void trainToEnd() {
    action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(control->run() && is_over(control->state()), 3 * patience_ms);
    QCOMPARE(control->run()->state(), RunState::finished);
  }
  /// The libraries that a run's record names.
  static std::vector<PluginRecord> recorded(const RunSeries* run) {
    const auto order = read_run_order(std::filesystem::path(run->folder().toStdString()) / "plan.json");
    return order ? order->plugins : std::vector<PluginRecord>();
  }
  PluginRecord mine() const {
    return {file.toStdString(), "Accrue's sample", sha256_of_file(file.toStdString()).value()};
  }

  QString file;  ///< a copy of the sample library
};

void append(const QString& file) {
  QFile library(file);
  QVERIFY(library.open(QIODevice::Append));
  library.write("x");
}

}  // namespace

class TestLibraries : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_spec_waits_for_its_library_which_is_chosen_once() {
    auto home = std::make_shared<QTemporaryDir>();
    {
      LibraryStudio studio(home);
      studio.open(toyWith(halfSquare));
      QVERIFY(!studio.isReady());
      auto* note = studio.find<FindingNote>("finding.megatron.custom_loss_function");
      QVERIFY(note->text().contains(QStringLiteral("none was given")));
      QCOMPARE(note->findChild<QPushButton*>()->text(), QStringLiteral("Choose plug-in libraries…"));
      auto* choose = studio.find<QPushButton>("chooseLibrariesButton");
      QVERIFY(choose->isVisibleTo(studio.window.get()));
      choose->click();
      studio.waitForDialog();
      QVERIFY(studio.find<QLabel>("librariesLoadedBy")->text().contains(QStringLiteral("runs their code with your")));
      QCOMPARE(studio.find<QLabel>("librariesMissing")->text(),
               QStringLiteral("No library here registers custom_loss_function \"half_square\"."));
      studio.add(studio.file);
      QCOMPARE(studio.cell(0, 0), QStringLiteral("Accrue's sample\n") + studio.file);
      QVERIFY2(studio.cell(0, 1).contains(QStringLiteral("custom_loss_function: half_square")),
               qPrintable(studio.cell(0, 1)));
      QVERIFY(studio.cell(0, 2).startsWith(QFileInfo(studio.file).owner() + QLatin1Char('\n')));
      QVERIFY(studio.mine().sha256.starts_with(studio.cell(0, 3).toStdString()));
      QVERIFY(studio.find<QLabel>("librariesMissing")->isHidden());
      studio.okay()->click();
      QTRY_VERIFY_WITH_TIMEOUT(studio.isReady(), patience_ms);
      QVERIFY(choose->isHidden());
      studio.trainToEnd();
      QCOMPARE(lastWeightsText(*studio.control->run()), QStringLiteral("2.04"));
      QVERIFY(LibraryStudio::recorded(studio.control->run()) == std::vector{studio.mine()});
      studio.action("copyCommandAction")->trigger();
      QVERIFY(QGuiApplication::clipboard()->text().endsWith(QStringLiteral(" --plugin '%1'").arg(studio.file)));
    }
    QFile maps(QStringLiteral("/proc/self/maps"));
    QVERIFY(maps.open(QIODevice::ReadOnly));
    QVERIFY(!maps.readAll().contains("libmine.so"));
    LibraryStudio again(home);
    again.openFile(home->filePath(QStringLiteral("toy.accrue")));
    QVERIFY2(again.isReady(), again.firstError().c_str());
    again.document.saveAs(home->filePath(QStringLiteral("other.accrue"))).value();
    LibraryStudio third(home);
    third.openFile(home->filePath(QStringLiteral("other.accrue")));
    QVERIFY2(third.isReady(), third.firstError().c_str());
  }

  void a_name_that_no_chosen_library_has_is_told_with_the_nearest() {
    LibraryStudio studio;
    studio.open(toyWith("custom_loss_function = \"half_squares\"\n"));
    studio.preflight->chooseLibraries({studio.mine()});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    auto* fix = studio.find<FindingNote>("finding.megatron.custom_loss_function")->findChild<QPushButton*>();
    QTRY_COMPARE_WITH_TIMEOUT(fix->text(), QStringLiteral("Use half_square"), patience_ms);
    fix->click();
    QTRY_VERIFY_WITH_TIMEOUT(studio.isReady(), patience_ms);
  }

  void data_sets_say_how_many_samples_they_have() {
    LibraryStudio studio;
    QByteArray spec = toyWith(
        "custom_model_provider_function = \"slope\"\ncustom_loss_function = \"half_square\"\n"
        "custom_megatron_datasets_provider_function = \"four_doubles\"\n");
    const auto inline_data = spec.indexOf("kind = \"inline\"");
    spec.replace(inline_data, spec.indexOf("[optimizer]") - inline_data, "shuffle = false\n\n");
    studio.open(spec.replace("micro_batch = 2", "micro_batch = 1"));
    studio.choose();
    QVERIFY2(studio.isReady(), studio.firstError().c_str());
    QCOMPARE(studio.preflight->result().plan->data.samples, 4);
    QCOMPARE(studio.find<QAbstractSpinBox>("field.data.samples")->text(), QStringLiteral("4"));
    QVERIFY(!studio.find<QWidget>("field.data.samples")->isEnabled());
    QVERIFY(studio.find<QLabel>("remark.data.samples")->text().contains(QStringLiteral("datasets_provider")));
    studio.trainToEnd();
    // By hand: w = 0.5, x = 1..4, y = 2 x. The gradient of half the mean square is 7.5 * -1.5, the rate 0.04.
    QCOMPARE(lastWeightsText(*studio.control->run()), QStringLiteral("0.95"));
  }

  void a_changed_library_is_not_loaded_until_it_is_chosen_again() {
    LibraryStudio studio;
    studio.open(toyWith(halfSquare));
    studio.choose();
    append(studio.file);
    studio.action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent() && !studio.isReady(), patience_ms);
    QVERIFY2(studio.firstError().find("has changed since it was chosen") != std::string::npos,
             studio.firstError().c_str());
    QVERIFY(!studio.control->run());
    studio.find<QPushButton>("chooseLibrariesButton")->click();
    studio.waitForDialog();
    QVERIFY(studio.cell(0, 1).contains(QStringLiteral("has changed since it was chosen")));
    studio.find<QPushButton>("renewLibrary")->click();
    studio.waitForDialog();
    QVERIFY(studio.cell(0, 1).contains(QStringLiteral("half_square")));
    studio.okay()->click();
    QTRY_VERIFY_WITH_TIMEOUT(studio.isReady(), patience_ms);
  }

  void what_is_wrong_with_a_library_stands_in_its_row_data() {
    const Rows<QByteArray, QByteArray> row;
    row("for another interface", "bin/accrue_unfit_plugin.so", "it was built for plug-in interface");
    row("for another Accrue", "bin/accrue_stale_plugin.so", "it was built with Accrue 0.0.1");
    row("no plug-in library", "lib/libaccrue_engine.so", "it exports no accrue_plugin_abi");
    row("no library", "CMakeCache.txt", "it cannot be loaded");
    row("no file", "bin/nowhere.so", "it cannot be read");
  }
  void what_is_wrong_with_a_library_stands_in_its_row() {
    const auto [file, why] = current_row<QByteArray, QByteArray>();
    LibraryStudio studio;
    studio.open(toyWith(halfSquare));
    studio.action("chooseLibrariesAction")->trigger();
    studio.waitForDialog();
    studio.add(studio.file);
    studio.add(QFileInfo(accrue::test::programPath("../")).canonicalFilePath() + QLatin1Char('/') +
               QString::fromLatin1(file));
    QVERIFY(studio.cell(0, 1).contains(QStringLiteral("half_square")));
    QVERIFY2(studio.cell(1, 1).contains(QLatin1String(why)), qPrintable(studio.cell(1, 1)));
    studio.find<QPushButton>("removeLibrary")->click();
    studio.waitForDialog();
    QCOMPARE(studio.table()->rowCount(), 1);
  }

  /// A run continues with the libraries of its record; one that has moved is named, and found again by the user.
  void a_run_goes_on_with_a_library_that_has_moved_data() {
    const Rows<bool, bool> row;
    row("resumed", false, false);
    row("resumed, moved", false, true);
    row("branched", true, false);
    row("branched, moved", true, true);
  }
  void a_run_goes_on_with_a_library_that_has_moved() {
    const auto [branches, moves] = current_row<bool, bool>();
    LibraryStudio studio;
    studio.open(toyWith(halfSquare, "20000") + "\n[checkpoint]\nevery_updates = 1\n");
    studio.choose();
    studio.action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::running && studio.control->run()->last().update >= 2,
                             patience_ms);
    RunSeries* run = studio.control->run();
    studio.action("stopAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(is_over(studio.control->state()), patience_ms);
    const PluginRecord before = studio.mine();
    studio.preflight->chooseLibraries({});  // the record alone knows them
    const QString elsewhere = studio.home->filePath(QStringLiteral("libmoved.so"));
    if (moves) QVERIFY(QFile::rename(studio.file, elsewhere));
    const std::int64_t reached = run->last().update;
    if (branches)
      studio.control->branch(run->folder());
    else
      studio.control->resume(run->folder());
    if (moves) {
      QPushButton* offer = studio.offered("Choose plug-in libraries");
      QVERIFY(offer);
      offer->click();
      studio.waitForDialog();
      QVERIFY(studio.cell(0, 1).contains(QStringLiteral("it cannot be read")));
      QVERIFY(!studio.okay()->isEnabled());
      studio.add(elsewhere);
      QVERIFY(studio.okay()->isEnabled());
      studio.okay()->click();
    }
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive() && (studio.control->run() != run) == branches &&
                                 studio.control->run()->last().update > (branches ? 1 : reached),
                             patience_ms);
    const auto recorded = LibraryStudio::recorded(studio.control->run());
    QCOMPARE(recorded.size(), std::size_t{1});
    QCOMPARE(recorded[0].sha256, before.sha256);
    if (branches) QCOMPARE(recorded[0].file, (moves ? elsewhere : studio.file).toStdString());
    studio.endRun();
  }

  void every_way_to_start_a_run_carries_them_data() {
    const Rows<QByteArray, int> row;
    row("queue", "queueRunAction", 1);
    row("seeds", "runSeedsAction", 2);
    row("dialects", "runAllDialectsAction", 5);
    row("pair", "pairedRunAction", 2);
    row("both of a pair", "trainPairAction", 3);
  }
  void every_way_to_start_a_run_carries_them() {
    const auto [command, count] = current_row<QByteArray, int>();
    LibraryStudio studio;
    studio.open(toyWith(halfSquare));
    studio.choose();
    studio.dialogs.seeds_answer = 2;
    if (command == "pairedRunAction" || command == "trainPairAction") studio.trainToEnd();
    studio.action(command.constData())->trigger();
    const auto all_over = [&, expected = count] {
      const auto runs = studio.library->table()->runs();
      return runs.size() == expected &&
             std::ranges::all_of(runs, [](const RunSeries* run) { return is_over(run->state()); });
    };
    QTRY_VERIFY_WITH_TIMEOUT(all_over(), 5 * patience_ms);
    for (const RunSeries* run : studio.library->table()->runs()) {
      QVERIFY2(run->state() == RunState::finished, qPrintable(run->name()));
      QVERIFY(LibraryStudio::recorded(run) == std::vector{studio.mine()});
    }
  }

  /// A run that was trained with libraries that the user has chosen is cloned with them.
  void the_spec_of_a_run_comes_with_its_libraries() {
    LibraryStudio studio;
    studio.open(toyWith(halfSquare));
    studio.choose();
    studio.trainToEnd();
    studio.window->files()->clone(*studio.control->run());
    QVERIFY(studio.document.filePath().isEmpty());
    QTRY_VERIFY_WITH_TIMEOUT(studio.isReady(), patience_ms);
    // A spec that names nothing of it loads nothing.
    studio.set("megatron.custom_loss_function", std::monostate{});
    QTRY_VERIFY_WITH_TIMEOUT(studio.isReady() && studio.preflight->libraries().empty(), patience_ms);
  }

  void the_planner_waits_for_a_run_of_a_librarys_model() {
    LibraryStudio studio;
    studio.open(toyWith("custom_model_provider_function = \"slope\"\n" + halfSquare));
    studio.choose();
    studio.action("plannerDockAction")->trigger();
    auto* fits = studio.find<QLabel>("plannerFits");
    QTRY_VERIFY_WITH_TIMEOUT(fits->text().contains(QStringLiteral("known once it has run")), patience_ms);
    QVERIFY(studio.find("plannerMemory")->isHidden());
    QVERIFY(studio.find<QLabel>("arithmeticDetails")->text().contains(QStringLiteral("known once it has run")));
    // Nor are there numbers in the rack: those of model.kind would be another model's.
    studio.find<QDockWidget>("rackDock")->raise();
    QTRY_VERIFY_WITH_TIMEOUT(
        studio.find<QLabel>("pluginTotal")->text().contains(QStringLiteral("known once it has run")), patience_ms);
    QVERIFY(studio.find("pluginMemory.data")->isHidden() && studio.find("pluginWire.data")->isHidden());
    QVERIFY(studio.find<QCheckBox>("pluginSwitch.data")->isEnabled());
    QVERIFY(!studio.find<QCheckBox>("pluginSwitch.tensor")->isEnabled());  // it cannot be divided
    studio.find<QDockWidget>("ranksDock")->raise();
    QVERIFY(studio.find<QLabel>("rankShare")->text().contains(QStringLiteral("known once it has run")));
    QVERIFY(std::ranges::none_of(studio.preflight->result().findings, [](const Finding& finding) {
      return finding.key == "megatron.custom_model_provider_function";
    }));
    studio.find<QDockWidget>("plannerDock")->raise();
    studio.trainToEnd();
    QTRY_VERIFY_WITH_TIMEOUT(fits->text().contains(QStringLiteral("measured")), patience_ms);
    QVERIFY(studio.find<QLabel>("plannerMeasured")->isVisible());
    QVERIFY(!studio.find("plannerMemory")->isHidden());
    QVERIFY2(studio.control->run()->name().startsWith(QStringLiteral("slope N=4")),
             qPrintable(studio.control->run()->name()));
  }

  void the_command_line_chooses_as_the_dialog_does() {
    LibraryStudio studio;
    studio.open(toyWith(halfSquare));
    const QString spec = studio.document.filePath();
    const auto start = [&](const QStringList& arguments) {
      return accrue::test::Program(
                 accrue::test::programPath("accrue"),
                 QStringList{spec, QStringLiteral("--run"), QStringLiteral("--exit-when-finished")} + arguments,
                 {QStringLiteral("HOME=") + studio.home->path(), QStringLiteral("QT_QPA_PLATFORM=offscreen"),
                  QStringLiteral("XDG_DATA_HOME=") + studio.home->filePath(QStringLiteral("own"))})
          .finish(3 * patience_ms);
    };
    QCOMPARE(start({}).status, 2);
    const accrue::test::Outcome given = start({QStringLiteral("--plugin"), studio.file});
    QVERIFY2(given.status == 0, qPrintable(given.err));
    const accrue::test::Outcome remembered = start({});
    QVERIFY2(remembered.status == 0, qPrintable(remembered.err));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestLibraries)

}  // namespace test_libraries
#include "test_libraries.moc"
