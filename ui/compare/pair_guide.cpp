// SPDX-License-Identifier: GPL-3.0-or-later
#include "pair_guide.h"

#include <QAction>

#include "compare_sheet.h"
#include "kit/actions.h"
#include "kit/raise.h"
#include "plots/plot_area.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"
#include "series/run_pair.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto pair_id = "pair";

}  // namespace

PairGuide::PairGuide(const Actions& actions, RunsPanel* runs, RunLibrary* library, PlotArea* plots, MessageBar* bar,
                     QWidget* window)
    : QObject(window), actions_(actions), runs_(runs), library_(library), plots_(plots), bar_(bar), window_(window) {
  for (QAction* action : {actions_[Command::compareRuns], actions_[Command::goToParting]}) {
    runs_->addAction(action);
    plots_->addAction(action);
  }
  follow_.setInterval(1000);
  connect(&follow_, &QTimer::timeout, this, &PairGuide::showMark);
  connect(actions_[Command::compareRuns], &QAction::triggered, this, &PairGuide::showSheet);
  connect(actions_[Command::goToParting], &QAction::triggered, this, &PairGuide::goToParting);
  const auto other_pair = [this] {
    bar_->withdraw(QLatin1String(pair_id));
    showMark();
  };
  connect(runs_, &RunsPanel::shownRunsChanged, this, other_pair);
  connect(library_->table(), &RunTableModel::baselineChanged, this, other_pair);
  connect(library_, &RunLibrary::loaded, this, &PairGuide::showMark);
  showMark();
}

PairGuide::Pair PairGuide::pair() const {
  RunSeries* const focused = runs_->currentRun();
  if (!focused) return {};
  RunSeries* const baseline = library_->table()->baseline();
  if (baseline && baseline != focused) return {baseline, focused};
  for (QList<RunSeries*> two : {runs_->selectedRuns(), runs_->shownRuns()}) {
    two.removeAll(focused);
    if (two.size() == 1) return {two.first(), focused};
  }
  return {};
}

void PairGuide::showMark() {
  const auto [first, second] = pair();
  const bool both = first && second;
  for (QAction* action : {actions_[Command::compareRuns], actions_[Command::goToParting]})
    action->setEnabled(library_->table()->rowCount() > 1);
  if (both && (first->isLive() || second->isLive()))
    follow_.start();
  else
    follow_.stop();
  const bool drawn = both && first->shown() != Shown::no && second->shown() != Shown::no;
  const auto parting = drawn ? partingOf(*first, comparisonOf(*first, *second)) : std::nullopt;
  if (!parting) {
    plots_->setParting({}, {});
    return;
  }
  plots_->setParting(parting, changeTexts(*first, *second));
}

void PairGuide::say(const QString& text) {
  bar_->post(
      {.id = QLatin1String(pair_id), .tone = RunState::idle, .text = text, .action = {}, .act = {}, .ofPlots = true});
}

void PairGuide::askForTwo() {
  say(tr("Two runs are compared. Select both in the runs table (Ctrl+click), or set one as the baseline (%1) and "
         "select the other.")
          .arg(actions_[Command::baseline]->shortcut().toString(QKeySequence::NativeText)));
}

void PairGuide::showSheet() {
  const auto [first, second] = pair();
  if (!first || !second) return askForTwo();
  bar_->withdraw(QLatin1String(pair_id));
  library_->load(first);
  library_->load(second);
  if (!sheet_) {
    sheet_ = new CompareSheet(window_);
    connect(sheet_, &CompareSheet::partingRequested, this, &PairGuide::goToParting);
    connect(library_, &RunLibrary::loaded, this, [this] {
      if (const auto [a, b] = pair(); a && b && sheet_->isVisible()) sheet_->setRuns(a, b);
    });
  }
  raiseWindow(sheet_);
  sheet_->setRuns(first, second);
}

void PairGuide::goToParting() {
  const auto [first, second] = pair();
  if (!first || !second) return askForTwo();
  bar_->withdraw(QLatin1String(pair_id));
  const PairComparison compared = comparisonOf(*first, *second);
  const auto parting = partingOf(*first, compared);
  if (!parting) {
    say(partingSentence(*first, *second, compared));
    return;
  }
  for (RunSeries* run : {first, second})
    if (run->shown() == Shown::no) run->setShown(Shown::yes);
  plots_->goTo((*parting)[plots_->clock()]);
  plots_->setFocus();
}

}  // namespace accrue::ui
