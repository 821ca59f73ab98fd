// SPDX-License-Identifier: GPL-3.0-or-later
#include "view_memory.h"

#include <QGuiApplication>
#include <QScreen>
#include <QSettings>
#include <QSplitter>

#include "kit/clock.h"
#include "plots/plot_area.h"
#include "setup/field_form.h"
#include "widgets/layout_restorer.h"

namespace accrue::ui {

namespace {

constexpr int layout_version = 4;
constexpr QLatin1String geometry_key("layout/geometry");
constexpr QLatin1String state_key("layout/state");
constexpr QLatin1String size_key("layout/size");
constexpr QLatin1String plots_key("layout/plots");
constexpr QLatin1String folds_key("layout/folds");
constexpr QLatin1String clock_key("plots/clock");
constexpr QLatin1String log_key("plots/logY");
constexpr QLatin1String smoothing_key("plots/smoothing");
constexpr QLatin1String seeds_key("plots/groupSeeds");

QSplitter* splitterOf(const PlotArea& plots) {
  return plots.findChild<QSplitter*>(QStringLiteral("plotSplitter"));
}

/// The usual size, as far as the screen has room for it.
void giveUsualSize(QMainWindow* window) {
  // The offscreen platform reports a screen of 800 x 800; pictures of the window should have the usual size.
  const bool real_screen = window->screen() && QGuiApplication::platformName() != QLatin1String("offscreen");
  const QSize whole(1366, 768);
  const QSize room = real_screen ? window->screen()->availableGeometry().size() : whole;
  window->resize(whole.boundedTo(room));
  // The frame's size is unknown before the window is shown: if it might not fit the screen, the window is maximised.
  const QSize frame(16, 48);
  if (real_screen && (whole + frame).boundedTo(room) != whole + frame) window->setWindowState(Qt::WindowMaximized);
}

bool restoreDocks(QMainWindow* window, PlotArea* plots, const QSettings& settings) {
  const QByteArray state = settings.value(state_key).toByteArray();
  if (!window->restoreState(state, layout_version)) return false;
  const QByteArray heights = settings.value(plots_key).toByteArray();
  new LayoutRestorer(window, settings.value(size_key).toSize(), [window, plots, state, heights] {
    window->restoreState(state, layout_version);
    splitterOf(*plots)->restoreState(heights);
  });
  return true;
}

}  // namespace

bool restoreView(QMainWindow* window, PlotArea* plots, FieldForm* form, const QSettings& settings) {
  if (!window->restoreGeometry(settings.value(geometry_key).toByteArray())) giveUsualSize(window);
  const bool restored = restoreDocks(window, plots, settings);
  form->restoreFoldState(settings.value(folds_key).toStringList());
  plots->setClock(clockFromKey(settings.value(clock_key, clockKey(Clock::update)).toString()));
  plots->setLogY(settings.value(log_key, false).toBool());
  plots->setGroupSeeds(settings.value(seeds_key, true).toBool());
  plots->setSmoothing(settings.value(smoothing_key, plots->smoothing()).toDouble());
  // A window that was last on a screen that no longer exists is moved to a visible one.
  const QScreen* screen = window->screen();
  if (screen && !screen->availableGeometry().intersects(window->frameGeometry()))
    window->move(screen->availableGeometry().topLeft());
  return restored;
}

void saveView(const QMainWindow& window, const PlotArea& plots, const FieldForm& form, QSettings& settings) {
  settings.setValue(geometry_key, window.saveGeometry());
  settings.setValue(state_key, window.saveState(layout_version));
  settings.setValue(size_key, window.size());
  settings.setValue(plots_key, splitterOf(plots)->saveState());
  settings.setValue(folds_key, form.foldState());
  settings.setValue(clock_key, clockKey(plots.clock()));
  settings.setValue(log_key, plots.logY());
  settings.setValue(smoothing_key, plots.smoothing());
  settings.setValue(seeds_key, plots.groupSeeds());
  settings.sync();
}

}  // namespace accrue::ui
