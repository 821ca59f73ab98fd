// SPDX-License-Identifier: GPL-3.0-or-later
#include "centre_page.h"

#include <QStackedWidget>
#include <QVBoxLayout>

#include "plots/plot_area.h"
#include "start_page.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

CentrePage::CentrePage(QWidget* parent)
    : QWidget(parent),
      messages_(new MessageBar(this)),
      stack_(new QStackedWidget(this)),
      start_(new StartPage(this)),
      studio_(new QWidget(this)),
      plots_(new PlotArea(this)) {
  setObjectName(QStringLiteral("centrePage"));
  plots_->setObjectName(QStringLiteral("plotArea"));
  showEmptyText(false);
  studio_->setFocusProxy(plots_);  // takes the focus of the start page that gives way
  auto* studio = new QVBoxLayout(studio_);
  studio->setContentsMargins(0, 0, 0, 0);
  studio->setSpacing(0);
  studio->addWidget(plots_, 1);
  stack_->addWidget(start_);
  stack_->addWidget(studio_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(messages_);
  layout->addWidget(stack_, 1);
}

void CentrePage::showPage(QWidget* page) {
  // The page behind asks for no room.
  for (QWidget* each : {static_cast<QWidget*>(start_), studio_}) {
    const auto policy = each == page ? QSizePolicy::Preferred : QSizePolicy::Ignored;
    each->setSizePolicy(policy, policy);
  }
  stack_->setCurrentWidget(page);
}

void CentrePage::showEmptyText(bool any_runs) {
  plots_->setEmptyText(any_runs
                           ? tr("No run is shown. To show one, click its eye in the Runs panel or press Space in its "
                                "row; F5 trains this set-up.")
                           : tr("No run yet. Press F5 to train this set-up."));
}

void CentrePage::showStart() {
  messages_->withdrawOfPlots();
  showPage(start_);
  start_->focusDefault();
}

void CentrePage::showPlots() {
  showPage(studio_);
}

void CentrePage::toggleStart() {
  if (!isStartShown()) return showStart();
  showPlots();
  plots_->setFocus(Qt::OtherFocusReason);
}

void CentrePage::focusShown() {
  if (isStartShown())
    start_->focusDefault();
  else
    plots_->setFocus(Qt::ShortcutFocusReason);
}

bool CentrePage::isStartShown() const {
  return stack_->currentWidget() == start_;
}

}  // namespace accrue::ui
