// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_bar.h"

#include <QActionGroup>
#include <QComboBox>
#include <QLabel>
#include <QLocale>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolBar>
#include <algorithm>
#include <cmath>

#include "kit/actions.h"
#include "kit/clock.h"
#include "kit/theme.h"
#include "plot_area.h"
#include "points/smoothing.h"
#include "widgets/wheel_guard.h"

namespace accrue::ui {

namespace {

constexpr int slider_steps = 60;

/// Equal steps of the slider are equal factors of the memory 1 / (1 - weight): 1 to 1000 points.
double weightAt(int position) {
  return position == 0 ? 0.0 : 1.0 - std::pow(10.0, -3.0 * position / slider_steps);
}

int positionOf(double weight) {
  return static_cast<int>(std::lround(-std::log10(1.0 - weight) * slider_steps / 3.0));
}

QString weightText(double weight) {
  return QLocale::c().toString(weight, 'g', 3);
}

/// As wide as its widest text at any text size, so that its neighbours do not move.
class WeightLabel final : public QLabel {
 public:
  explicit WeightLabel(QWidget* parent) : QLabel(parent) { setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Preferred); }
  QSize sizeHint() const override {
    const int widest = std::max(fontMetrics().horizontalAdvance(weightText(0.999)),
                                fontMetrics().horizontalAdvance(PlotBar::tr("off")));
    return {widest + 2 * space::base, QLabel::sizeHint().height()};
  }
  QSize minimumSizeHint() const override { return sizeHint(); }
};

QLabel* caption(const QString& text, QWidget* buddy, QToolBar* bar) {
  auto* label = new QLabel(text, bar);
  label->setContentsMargins(space::inGroup, 0, space::base, 0);
  label->setBuddy(buddy);
  return label;
}

}  // namespace

PlotBar::PlotBar(const Actions& actions, PlotArea* plots, QToolBar* bar, QObject* parent)
    : QObject(parent),
      actions_(actions),
      plots_(plots),
      clock_(new QComboBox(bar)),
      smoothing_(new QSlider(Qt::Horizontal, bar)),
      weight_(new WeightLabel(bar)) {
  addControls(bar);
  connectSignals();
  showClock();
  showSmoothing();
  actions_[Command::logY]->setChecked(plots_->logY());
  actions_[Command::follow]->setChecked(plots_->followLive());
  actions_[Command::groupSeeds]->setChecked(plots_->groupSeeds());
}

void PlotBar::addControls(QToolBar* bar) {
  clock_->setObjectName(QStringLiteral("clockCombo"));
  clock_->setAccessibleName(tr("Clock of the X axis"));
  for (const Clock clock : allClocks) {
    clock_->addItem(clockName(clock), static_cast<int>(clock));
    clock_->setItemData(clock_->count() - 1, clockHelp(clock), Qt::ToolTipRole);
  }
  clock_->setToolTip(tr("What the X axis counts; samples make runs with different accumulation comparable"));
  smoothing_->setObjectName(QStringLiteral("smoothingSlider"));
  smoothing_->setAccessibleName(tr("Smoothing of the loss"));
  smoothing_->setRange(0, slider_steps);
  smoothing_->setFixedWidth(112);
  WheelGuard::protect(clock_);
  clock_->setFocusPolicy(Qt::TabFocus);  // after a choice with the mouse the plots keep the keys
  WheelGuard::protect(smoothing_);
  bar->addWidget(caption(tr("X"), clock_, bar));
  bar->addWidget(clock_);
  bar->addWidget(caption(tr("Smooth"), smoothing_, bar));
  bar->addWidget(smoothing_);
  weight_->setObjectName(QStringLiteral("smoothingWeight"));
  weight_->setFont(tabularFont());
  weight_->setAlignment(Qt::AlignCenter);
  bar->addWidget(weight_);
  bar->addSeparator();
  bar->addAction(actions_[Command::logY]);
  bar->addAction(actions_[Command::fit]);
  bar->addAction(actions_[Command::follow]);
}

void PlotBar::connectSignals() {
  connect(clock_, &QComboBox::activated, this, [this](int index) {
    plots_->setClock(static_cast<Clock>(clock_->itemData(index).toInt()));
    showClock();
  });
  connect(actions_.clocks(), &QActionGroup::triggered, this, [this](QAction* action) {
    plots_->setClock(static_cast<Clock>(action->data().toInt()));
    showClock();
  });
  connect(plots_, &PlotArea::clockChanged, this, &PlotBar::showClock);
  connect(smoothing_, &QSlider::valueChanged, this, [this](int position) {
    plots_->setSmoothing(weightAt(position));
    showSmoothing();
  });
  connect(actions_[Command::lessSmoothing], &QAction::triggered, this,
          [this] { smoothing_->setValue(smoothing_->value() - 4); });
  connect(actions_[Command::moreSmoothing], &QAction::triggered, this,
          [this] { smoothing_->setValue(smoothing_->value() + 4); });
  connect(plots_, &PlotArea::smoothingChanged, this, &PlotBar::showSmoothing);
  connect(actions_[Command::logY], &QAction::toggled, plots_, &PlotArea::setLogY);
  connect(plots_, &PlotArea::logYChanged, actions_[Command::logY], &QAction::setChecked);
  connect(actions_[Command::groupSeeds], &QAction::toggled, plots_, &PlotArea::setGroupSeeds);
  connect(plots_, &PlotArea::groupSeedsChanged, actions_[Command::groupSeeds], &QAction::setChecked);
  connect(actions_[Command::follow], &QAction::toggled, plots_, &PlotArea::setFollowLive);
  connect(plots_, &PlotArea::followLiveChanged, actions_[Command::follow], &QAction::setChecked);
  connect(actions_[Command::fit], &QAction::triggered, plots_, &PlotArea::fit);
  connect(actions_[Command::zoomWindow], &QAction::triggered, plots_, &PlotArea::zoomToWindow);
  connect(actions_[Command::nextWindow], &QAction::triggered, this, [this] { plots_->stepWindow(1); });
  connect(actions_[Command::previousWindow], &QAction::triggered, this, [this] { plots_->stepWindow(-1); });
  connect(actions_[Command::copyValues], &QAction::triggered, plots_, &PlotArea::copyReadOut);
  connect(actions_[Command::showTable], &QAction::triggered, this,
          [this] { plots_->showTable(plots_->currentView()); });
}

void PlotBar::showClock() {
  const int clock = static_cast<int>(plots_->clock());
  clock_->setCurrentIndex(clock_->findData(clock));
  for (QAction* action : actions_.clocks()->actions())
    if (action->data().toInt() == clock) action->setChecked(true);
}

void PlotBar::showSmoothing() {
  const QSignalBlocker quiet(smoothing_);
  const double weight = plots_->smoothing();
  smoothing_->setValue(positionOf(weight));
  weight_->setText(weight > 0.0 ? weightText(weight) : tr("off"));
  const QString tip = weight <= 0.0 ? tr("No smoothing")
                                    : tr("Exponential mean, smoothing factor %1, corrected for its start; raw values "
                                         "stay visible beneath.\n%2")
                                          .arg(weightText(weight), smoothingFormula(weight));
  for (QWidget* each : {static_cast<QWidget*>(smoothing_), static_cast<QWidget*>(weight_)}) each->setToolTip(tip);
  smoothing_->setAccessibleDescription(tip);
}

}  // namespace accrue::ui
