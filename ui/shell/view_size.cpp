// SPDX-License-Identifier: GPL-3.0-or-later
#include "view_size.h"

#include <QCoreApplication>
#include <QDockWidget>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QMainWindow>
#include <QScreen>
#include <QSettings>
#include <QSignalBlocker>
#include <QTimer>
#include <QToolBar>
#include <QToolTip>
#include <algorithm>
#include <utility>

#include "kit/actions.h"
#include "kit/text_scale.h"
#include "kit/theme.h"
#include "widgets/dock_height.h"
#include "widgets/layout_restorer.h"

namespace accrue::ui {

namespace {

constexpr auto scale_key = "view/textScale";
constexpr int tool_icon = 20;  ///< in a tool bar, beside text of the normal size

/// At the normal scale.
double lineHeight(TextSize size) {
  return QFontMetricsF(textFont(size)).height() / textScale();
}

/// Widgets ask for the room of another size of text in their turn.
void layOutNow() {
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
}

}  // namespace

ViewSize::ViewSize(const Actions& actions, QSettings* settings, QMainWindow* window, QDockWidget* kept)
    : QObject(window), actions_(actions), settings_(settings), window_(window), kept_(kept) {
  connect(actions_[Command::largerText], &QAction::triggered, this, &ViewSize::enlarge);
  connect(actions_[Command::smallerText], &QAction::triggered, this,
          [this] { setScale(nextTextScale(textScale(), -1)); });
  connect(actions_[Command::normalText], &QAction::triggered, this, [this] { setScale(1.0); });
  connect(actions_[Command::presenter], &QAction::toggled, this, &ViewSize::present);
  apply(settings_->value(QLatin1String(scale_key), 1.0).toDouble());
}

void ViewSize::apply(double factor) {
  QToolTip::hideText();               // it is about an earlier size
  window_->setUpdatesEnabled(false);  // nothing is painted in its new size at its old place
  setTextScale(factor);
  for (QToolBar* bar : window_->findChildren<QToolBar*>()) {
    const int side = qRound(tool_icon * textScale());
    bar->setIconSize({side, side});
  }
  if (window_->isVisible()) layOutNow();
  window_->setUpdatesEnabled(true);
}

void ViewSize::setScale(double factor) {
  if (presents()) return apply(factor);  // the docks come back with the layout
  // Sizes that were not given back yet were taken at the normal size too.
  if (textScale() == 1.0 && dock_sizes_.empty()) takeDockSizes();
  const bool shrinks = factor < textScale();
  apply(factor);
  if (textScale() == 1.0 || (shrinks && textScale() > 1.0)) QTimer::singleShot(0, this, &ViewSize::giveDockSizes);
  settings_->setValue(QLatin1String(scale_key), textScale());
}

void ViewSize::enlarge() {
  const double next = nextTextScale(textScale(), 1);
  if (next <= largestScale(window_->height(), lineHeight(TextSize::body))) return setScale(next);
  QToolTip::showText(window_->mapToGlobal(window_->rect().center()),
                     tr("A window of this height has no room for larger text."), window_);
}

void ViewSize::takeDockSizes() {
  for (QDockWidget* dock : window_->findChildren<QDockWidget*>())
    if (!dock->isFloating() && !dock->visibleRegion().isEmpty())
      dock_sizes_.emplace_back(dock, QSize(dock->width(), heightWithTabs(*dock)));
}

void ViewSize::setDockSizes(std::vector<std::pair<QPointer<QDockWidget>, QSize>> sizes) {
  if (textScale() != 1.0) dock_sizes_ = std::move(sizes);
}

/// Docks that grew with their text are as they were before, or as near to it as text that is still large allows.
void ViewSize::giveDockSizes() {
  if (textScale() < 1.0 || presents()) return;  // both may have changed in the meantime
  layOutNow();
  // All at once: docks that are resized one by one take room from each other.
  QList<QDockWidget*> beside, below;
  QList<int> widths, heights;
  for (const auto& [dock, size] : dock_sizes_) {
    if (!dock || dock->isFloating() || dock->visibleRegion().isEmpty()) continue;
    const bool isBelow = window_->dockWidgetArea(dock) == Qt::BottomDockWidgetArea;
    (isBelow ? below : beside) << dock;
    (isBelow ? heights : widths) << (isBelow ? size.height() : size.width());
  }
  window_->resizeDocks(beside, widths, Qt::Horizontal);
  window_->resizeDocks(below, heights, Qt::Vertical);
  if (textScale() == 1.0) dock_sizes_.clear();
}

double ViewSize::presenterScale(double screen_height, double line_height) {
  constexpr double lines = 40.0;
  return std::clamp(screen_height / lines / line_height, 1.0, largestText);
}

double ViewSize::largestScale(double window_height, double line_height) {
  constexpr double least_lines = 24.0;
  return std::clamp(window_height / least_lines / line_height, 1.0, largestText);
}

void ViewSize::present(bool on) {
  if (!on) return leavePresenter();
  if (presents()) return;
  forgetSavedLayout(window_);
  before_ = Before{window_->saveState(), textScale()};
  for (QDockWidget* dock : window_->findChildren<QDockWidget*>()) dock->setVisible(dock == kept_);
  kept_->raise();
  const double height = window_->screen() ? window_->screen()->size().height() : window_->height();
  apply(std::max(textScale(), presenterScale(height, lineHeight(TextSize::small))));
  window_->resizeDocks({kept_}, {window_->width() / 4}, Qt::Horizontal);
  Q_EMIT presenting(true);
}

void ViewSize::leavePresenter() {
  if (!presents()) return;
  const Before before = *std::exchange(before_, std::nullopt);
  apply(before.scale);
  // Twice: hidden docks ask for the room of the normal text once they are shown.
  for (int round = 0; round < 2; ++round) {
    window_->restoreState(before.layout);
    layOutNow();
  }
  const QSignalBlocker quiet(actions_[Command::presenter]);
  actions_[Command::presenter]->setChecked(false);
  Q_EMIT presenting(false);
}

}  // namespace accrue::ui
