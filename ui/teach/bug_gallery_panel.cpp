// SPDX-License-Identifier: GPL-3.0-or-later
#include "bug_gallery_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/whatif/bug_gallery.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "live/run_control.h"
#include "runs/dock_panel.h"
#include "runs/run_library.h"
#include "widgets/selection_tint.h"

namespace accrue::ui {

BugGalleryPanel::BugGalleryPanel(SpecDocument* document, RunControl* control, RunLibrary* library, SpecFiles* files,
                                 QWidget* parent)
    : QWidget(parent),
      document_(document),
      control_(control),
      library_(library),
      files_(files),
      list_(new QListWidget(this)),
      run_(new QPushButton(tr("Run with the bug"), this)),
      fix_(new QPushButton(tr("Fix and run again"), this)) {
  setObjectName(QStringLiteral("bugGalleryPanel"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  column->setSpacing(space::base);
  list_->setObjectName(QStringLiteral("bugList"));
  list_->setAccessibleName(tr("Bugs"));
  for (const GalleryBug& entry : bug_gallery()) {
    auto* item = new QListWidgetItem(fromView(entry.title), list_);
    item->setToolTip(fromView(to_name(entry.bug)));
  }
  new SelectionTint(list_);
  list_->setMinimumHeight(fontMetrics().height() * 6);
  column->addWidget(list_, 1);
  symptom_ = addText("bugSymptom", tr("Symptom"));
  detector_ = addText("bugDetector", tr("Detected by"));
  cure_ = addText("bugCure", tr("Fix"));
  lamp_ = new QLabel(this);
  lamp_->setObjectName(QStringLiteral("bugLamp"));
  lamp_->setWordWrap(true);
  lamp_->setTextFormat(Qt::PlainText);
  lamp_->setContentsMargins(0, space::base, 0, space::base);
  column->addWidget(lamp_);
  run_->setObjectName(QStringLiteral("runBug"));
  fix_->setObjectName(QStringLiteral("fixBug"));
  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(space::inGroup);
  buttons->addWidget(run_);
  buttons->addWidget(fix_);
  buttons->addStretch(1);
  column->addLayout(buttons);
  connect(list_, &QListWidget::currentRowChanged, this, &BugGalleryPanel::choose);
  connect(list_, &QListWidget::itemActivated, this, &BugGalleryPanel::runWithBug);
  connect(run_, &QPushButton::clicked, this, &BugGalleryPanel::runWithBug);
  connect(fix_, &QPushButton::clicked, this, &BugGalleryPanel::fix);
  connect(control_, &RunControl::stateChanged, this, &BugGalleryPanel::showRun);
  connect(control_, &RunControl::changed, this, &BugGalleryPanel::showRun);
  connect(control_, &RunControl::runBegun, this, [this](const RunSeries* run) { takeBegun(*run); });
  connect(library_->table(), &QAbstractItemModel::rowsRemoved, this, &BugGalleryPanel::showRun);
  list_->setCurrentRow(0);
}

QLabel* BugGalleryPanel::addText(const char* name, const QString& title) {
  auto* heading = new QLabel(title, this);
  heading->setFont(textFont(TextSize::small, QFont::DemiBold));
  heading->setContentsMargins(0, space::base, 0, 0);
  auto* text = new QLabel(this);
  text->setObjectName(QLatin1String(name));
  text->setWordWrap(true);
  text->setTextFormat(Qt::PlainText);
  layout()->addWidget(heading);
  layout()->addWidget(text);
  return text;
}

Bug BugGalleryPanel::current() const {
  return bug_gallery()[static_cast<std::size_t>(std::max(list_->currentRow(), 0))].bug;
}

void BugGalleryPanel::choose() {
  const GalleryBug& entry = *find_gallery_bug(current());
  symptom_->setText(fromView(entry.symptom));
  detector_->setText(fromView(entry.detector));
  cure_->setText(fromView(entry.cure));
  showRun();
  if (const QList<RunSeries*> runs = runsOfCurrent(); !runs.isEmpty()) Q_EMIT runsWanted(runs);
}

void BugGalleryPanel::takeBegun(const RunSeries& run) {
  if (!run.spec()) return;
  if (const Bug bug = run.spec()->teaching.bug; bug != Bug::none)
    runs_[bug] = {run.folder()};
  else if (fixed_ && fixed_->second == *run.spec())
    runs_[fixed_->first] << run.folder();
}

QList<RunSeries*> BugGalleryPanel::runsOfCurrent() const {
  QList<RunSeries*> runs;
  if (const auto found = runs_.find(current()); found != runs_.end())
    for (const QString& folder : found->second)
      if (RunSeries* run = library_->find(folder)) runs << run;
  return runs;
}

void BugGalleryPanel::runWithBug() {
  if (!run_->isEnabled()) return;
  Q_EMIT chosen();
  if (!files_->mayReplace()) return;
  Q_EMIT aboutToBegin();
  keepFocus();
  document_->reset(gallery_spec(current()), fromView(find_gallery_bug(current())->title));
  control_->start();
}

/// The gallery's own spec is not meant to be saved, so the fix does not mark it as edited.
void BugGalleryPanel::fix() {
  keepFocus();
  RunSpec fixed = document_->spec();
  fixed.teaching.bug = Bug::none;
  // The gallery names its runs after their bug, which this one no longer has.
  if (const auto title = find_gallery_bug(current())->title; fixed.run.name == title)
    fixed.run.name = tr("%1, fixed").arg(fromView(title)).toStdString();
  const bool own = !document_->isModified() && document_->filePath().isEmpty();
  if (!document_->setSpec(fixed, tr("Fix the bug"))) return;
  if (own) document_->acceptEdits();
  fixed_.emplace(current(), document_->spec());
  control_->start();
}

/// Both buttons are disabled until the run has ended; the focus stays in the gallery.
void BugGalleryPanel::keepFocus() {
  if (run_->hasFocus() || fix_->hasFocus()) focusList();
}

/// Run and fix are possible while no run is live; the fix also requires that the document has the chosen bug.
void BugGalleryPanel::showRun() {
  const bool idle = control_->actions().contains(RunAction::run);
  run_->setEnabled(idle);
  fix_->setEnabled(idle && document_->spec().teaching.bug == current());
  const QList<RunSeries*> runs = runsOfCurrent();
  lamp_->setText(!runs.isEmpty() ? runs.last()->lamp().text()
                 : idle          ? tr("Run it to see the lamp's verdict here.")
                                 : tr("A run has not ended. Stop it (Shift+F5) to run a bug."));
}

void BugGalleryPanel::focusList() {
  list_->setFocus(Qt::OtherFocusReason);
}

DockPanel BugGalleryPanel::dock() {
  return {.name = "galleryDock",
          .title = tr("Bug gallery"),
          .panel = this,
          .area = Qt::LeftDockWidgetArea,
          .behind = "setupDock",
          .on_demand = true,
          .focus = [this] { focusList(); },
          .docked = [this](QDockWidget* dock) { dock_ = dock; }};
}

}  // namespace accrue::ui
