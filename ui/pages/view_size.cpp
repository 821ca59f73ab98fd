// SPDX-License-Identifier: GPL-3.0-or-later
#include "view_size.h"

#include <QDockWidget>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QMainWindow>
#include <QScreen>
#include <QSettings>
#include <QSignalBlocker>
#include <algorithm>
#include <utility>

#include "style/text_scale.h"
#include "style/theme.h"
#include "window_actions.h"
#include "window_layouts.h"

namespace accrue::ui {

namespace {

constexpr auto scale_key = "view/textScale";

}  // namespace

ViewSize::ViewSize(const WindowActions& actions, QSettings* settings, QMainWindow* window, QDockWidget* kept)
    : QObject(window), actions_(actions), settings_(settings), window_(window), kept_(kept) {
  connect(actions_.largerText, &QAction::triggered, this, [this] { setScale(nextTextScale(textScale(), 1)); });
  connect(actions_.smallerText, &QAction::triggered, this, [this] { setScale(nextTextScale(textScale(), -1)); });
  connect(actions_.normalText, &QAction::triggered, this, [this] { setScale(1.0); });
  connect(actions_.presenter, &QAction::toggled, this, &ViewSize::present);
  setTextScale(settings_->value(QLatin1String(scale_key), 1.0).toDouble());
}

void ViewSize::setScale(double factor) {
  setTextScale(factor);
  if (!presents()) settings_->setValue(QLatin1String(scale_key), textScale());
}

double ViewSize::presenterScale(double screen_height, double line_height) {
  constexpr double lines = 40.0;
  return std::clamp(screen_height / lines / line_height, 1.0, largestText);
}

void ViewSize::present(bool on) {
  if (!on) return leavePresenter();
  if (presents()) return;
  forgetSavedLayout(window_);
  before_ = Before{window_->saveState(), textScale()};
  for (QDockWidget* dock : window_->findChildren<QDockWidget*>()) dock->setVisible(dock == kept_);
  kept_->raise();
  const double line = QFontMetricsF(textFont(TextSize::body)).height() / textScale();
  const double height = window_->screen() ? window_->screen()->size().height() : window_->height();
  setTextScale(std::max(textScale(), presenterScale(height, line)));
  window_->resizeDocks({kept_}, {window_->width() / 4}, Qt::Horizontal);
}

void ViewSize::leavePresenter() {
  if (!presents()) return;
  const Before before = *std::exchange(before_, std::nullopt);
  setTextScale(before.scale);
  window_->restoreState(before.layout);
  const QSignalBlocker quiet(actions_.presenter);
  actions_.presenter->setChecked(false);
}

}  // namespace accrue::ui
