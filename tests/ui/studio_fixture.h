// SPDX-License-Identifier: GPL-3.0-or-later
// A whole window over fake ranks, in a home of its own, with questions answered by the test.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <functional>
#include <memory>

#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/theme.h"
#include "live/run_control.h"
#include "runs/run_library.h"
#include "series/engine_bridge.h"
#include "shell/dialogs.h"
#include "shell/main_window.h"
#include "support/places.h"

inline void initAccrueResources() {
  Q_INIT_RESOURCE(accrue);
}

namespace accrue::ui {

/// Long enough for two processes on a loaded machine; waits end as soon as their condition holds.
inline constexpr int patience_ms = 30000;

class ScriptedDialogs final : public Dialogs {
 public:
  QString openSpec(QWidget*, const QString&) override { return open_answer; }
  QString openRunFolder(QWidget*, const QString&) override { return open_answer; }
  QString saveSpec(QWidget*, const QString&) override { return save_answer; }
  QString exportFile(QWidget*, const QString&, const QString&) override { return save_answer; }
  std::optional<FigureSize> askFigure(QWidget*, const FigureSize& size, const FigureCheck&) override {
    figure_asked_from = size;
    return figure_answer;
  }
  std::optional<BundleChoice> askBundle(QWidget*, const QList<BundleRow>& rows) override {
    bundle_rows = rows;
    return bundle_answer;
  }
  QString openFile(QWidget*, const QString&, const QString&, const QString&) override { return open_answer; }
  QString chooseFolder(QWidget*, const QString&, const QString&) override { return open_answer; }
  QString chooseItem(QWidget*, const QString&, const QString& question, const QStringList& items) override {
    item_questions << question + QStringLiteral(" ") + items.join(QStringLiteral(", "));
    return item_answers.isEmpty() ? QString() : item_answers.takeFirst();
  }
  UnsavedAnswer askUnsaved(QWidget*, const QString&) override { return unsaved_answer; }
  CloseChoice askClose(QWidget*, const QString&) override {
    ++close_questions;
    if (during_close_question) during_close_question();
    return close_answer;
  }

  std::optional<std::int64_t> askSteps(QWidget*, std::int64_t now) override {
    steps_asked_from = now;
    return steps_answer;
  }

  std::optional<int> askSeeds(QWidget*) override { return seeds_answer; }

  QString open_answer;
  QString save_answer;
  QStringList item_answers;  ///< to one question after another; cancelled when there are no more
  QStringList item_questions;
  UnsavedAnswer unsaved_answer = UnsavedAnswer::discard;
  CloseChoice close_answer;
  std::function<void()> during_close_question;
  std::optional<BundleChoice> bundle_answer;
  QList<BundleRow> bundle_rows;
  std::optional<FigureSize> figure_answer = FigureSize{};
  FigureSize figure_asked_from;
  std::optional<std::int64_t> steps_answer;
  std::optional<int> seeds_answer;
  std::int64_t steps_asked_from = 0;
  int close_questions = 0;
};

/// Two fake ranks, N = 4, as many updates as asked.
inline RunSpec smallSpec(std::int64_t updates = 1000, std::int64_t ranks = 2) {
  RunSpec spec;
  spec.model.kind = ModelKind::gpt;
  spec.model.layers = 1;
  spec.model.width = 16;
  spec.model.heads = 2;
  spec.model.context = 16;
  spec.data.kind = DataKind::synthetic;
  spec.data.samples = 4096;
  spec.accumulation.steps = 4;
  spec.accumulation.micro_batch = 2;
  spec.parallel.data = ranks;
  spec.run.updates = updates;
  return spec;
}

/// The offscreen platform says on every window shown what it cannot do, which buries the failures in a log.
inline void keepPlatformQuiet() {
  static QtMessageHandler next = nullptr;  // Qt Test's own, which it takes back at the end
  if (next) return;
  next = qInstallMessageHandler([](QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (!message.startsWith(QLatin1String("This plugin does not support"))) next(type, context, message);
  });
}

class StudioFixture {
 public:
  /// script: what the fake ranks do, see tests/support/fake_rank/script.h.
  explicit StudioFixture(const char* script = "micro_ms=2")
      : StudioFixture(std::make_shared<QTemporaryDir>(), script) {}
  /// A second window over the home of a first; or over other ranks than the fake ones.
  StudioFixture(std::shared_ptr<QTemporaryDir> home_dir, const char* script,
                const char* rank_program = "accrue-fake-rank")
      : home(std::move(home_dir)) {
    initAccrueResources();
    keepPlatformQuiet();
    qputenv("ACCRUE_FAKE_RANK", script);
    qputenv("XDG_RUNTIME_DIR", home->path().toUtf8());
    qputenv("XDG_DATA_HOME", home->filePath(QStringLiteral("data")).toUtf8());
    settings = std::make_unique<QSettings>(home->filePath(QStringLiteral("studio.conf")), QSettings::IniFormat);
    theme = std::make_unique<Theme>(*qApp);
    preflight = std::make_unique<PreflightRunner>(&document);
    library = std::make_unique<RunLibrary>(home->filePath(QStringLiteral("data/accrue/runs")));
    BridgeOptions options{.rank_program = accrue::test::programPath(rank_program).toStdString()};
    options.stop_grace = std::chrono::milliseconds(2000);
    control = std::make_unique<RunControl>(options, &document, preflight.get(), library.get());
    window = std::make_unique<MainWindow>(StudioParts{.document = &document,
                                                      .preflight = preflight.get(),
                                                      .library = library.get(),
                                                      .control = control.get(),
                                                      .dialogs = &dialogs,
                                                      .settings = settings.get(),
                                                      .theme = theme.get()});
  }

  void show() {
    window->show();
    QVERIFY(QTest::qWaitForWindowActive(window.get()));
  }
  void openSpec(const RunSpec& spec) {
    document.reset(spec, QStringLiteral("test"));
    QTRY_VERIFY_WITH_TIMEOUT(preflight->isCurrent(), patience_ms);
  }
  /// To what has the focus, as a keyboard does: it may keep a key from the window's shortcuts.
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus && window->isAncestorOf(focus) ? focus : window.get(), key, modifiers);
  }
  template <typename Widget = QWidget>
  Widget* find(const QString& name) const {
    return window->findChild<Widget*>(name);
  }
  template <typename Widget = QWidget>
  Widget* find(const char* name) const {
    return find<Widget>(QString::fromLatin1(name));
  }
  /// An edit of the spec, as a field of the form makes it.
  template <typename Value>
  void set(const char* key, Value value) {
    document.setField(*find_field(key), std::move(value));
  }
  /// The message bar's button, once it offers this.
  QPushButton* offered(const char* beginning) const {
    auto* button = find<QPushButton>("messageAction");
    const auto offers = [&] { return button->isVisible() && button->text().startsWith(QLatin1String(beginning)); };
    return QTest::qWaitFor(offers, patience_ms) ? button : nullptr;
  }
  void endRun() {
    control->kill();
    QTRY_VERIFY_WITH_TIMEOUT(!control->isLive(), patience_ms);
  }
  QAction* action(const char* name) const { return window->findChild<QAction*>(QLatin1String(name)); }

  std::shared_ptr<QTemporaryDir> home;
  ScriptedDialogs dialogs;
  SpecDocument document;
  std::unique_ptr<QSettings> settings;
  std::unique_ptr<Theme> theme;
  std::unique_ptr<PreflightRunner> preflight;
  std::unique_ptr<RunLibrary> library;
  std::unique_ptr<RunControl> control;
  std::unique_ptr<MainWindow> window;
};

/// Shown, with a spec that has been checked.
class OpenStudio : public StudioFixture {
 public:
  explicit OpenStudio(const RunSpec& spec = smallSpec(), const char* script = "micro_ms=2")
      : OpenStudio(std::make_shared<QTemporaryDir>(), spec, script) {}
  OpenStudio(std::shared_ptr<QTemporaryDir> home_dir, const RunSpec& spec, const char* script)
      : StudioFixture(std::move(home_dir), script) {
    show();
    openSpec(spec);
  }
};

/// With a run that has passed its first update.
class RunningStudio : public OpenStudio {
 public:
  explicit RunningStudio(const char* script, const RunSpec& spec = smallSpec(100'000),
                         std::shared_ptr<QTemporaryDir> home_dir = std::make_shared<QTemporaryDir>())
      : OpenStudio(std::move(home_dir), spec, script) {
    press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(control->state() == RunState::running && control->run()->last().update >= 1, patience_ms);
  }
};

}  // namespace accrue::ui
