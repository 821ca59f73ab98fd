// SPDX-License-Identifier: GPL-3.0-or-later
#include "documents.h"

#include <QLocale>
#include <utility>

#include "centre_page.h"
#include "document/draft_keeper.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "kit/actions.h"
#include "live/run_control.h"
#include "runs/runs_panel.h"
#include "setup/setup_panel.h"
#include "start_page.h"
#include "teach/lesson_desk.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

Documents::Documents(const Actions& actions, const Parts& parts, QObject* parent)
    : QObject(parent), actions_(actions), parts_(parts) {
  connect(parts_.files, &SpecFiles::documentOpened, this, &Documents::show);
  connect(actions_[Command::closeSpec], &QAction::triggered, this, &Documents::close);
  connect(actions_[Command::demo], &QAction::triggered, this, &Documents::runDemo);
  connect(parts_.control, &RunControl::ended, this, [this] {
    parts_.centre->messages()->withdraw(QStringLiteral("taken"));  // the run that was in the way
  });
  connectStartPage();
}

void Documents::connectStartPage() {
  StartPage* start = parts_.centre->start();
  SpecFiles* files = parts_.files;
  connect(start, &StartPage::lessonRequested, parts_.lessons, &LessonDesk::openFirst);
  connect(start, &StartPage::galleryRequested, actions_[Command::bugGallery], &QAction::trigger);
  connect(start, &StartPage::demoRequested, this, &Documents::runDemo);
  connect(start, &StartPage::openRequested, files, &SpecFiles::askAndOpen);
  connect(start, &StartPage::newRequested, files, &SpecFiles::newSpec);
  connect(start, &StartPage::fileRequested, files, &SpecFiles::openPath);
  connect(start, &StartPage::presetRequested, this, [this, files](const QString& resource, const QString& name) {
    const bool opened = files->openPreset(resource, name);
    if (opened && resource == QLatin1String("ten-batches.accrue")) actions_[Command::compareDialects]->trigger();
  });
  connect(start, &StartPage::runsRequested, this, &Documents::runsWanted);
  const auto show_recent = [start, files] { start->setRecentFiles(files->recentFiles()); };
  connect(files, &SpecFiles::recentChanged, start, show_recent);
  show_recent();
}

void Documents::close() {
  if (!parts_.files->mayReplace()) return;
  parts_.lessons->leave();
  parts_.document->reset(RunSpec{}, tr("Untitled"));
  parts_.centre->showStart();
}

void Documents::show() {
  // Restoring over another document would replace the file that the user has opened. The edits are offered at the next
  // start.
  parts_.centre->messages()->withdraw(QStringLiteral("draft"));
  parts_.centre->messages()->withdraw(QStringLiteral("file"));
  parts_.centre->showPlots();
  parts_.setup->bringUp();
  if (std::exchange(run_after_open_, false))
    parts_.control->start();
  else
    sayWhatIsDrawn();
}

/// Otherwise a document that was opened changes nothing in sight but the form. A hint, which covers no message.
void Documents::sayWhatIsDrawn() {
  MessageBar* bar = parts_.centre->messages();
  bar->withdraw(QStringLiteral("opened"));
  if (!bar->currentId().isEmpty()) return;
  const RunSeries* run = parts_.runs->currentRun();
  if (parts_.runs->shownRuns().isEmpty() || (run && run->spec() && *run->spec() == parts_.document->spec())) return;
  bar->post(
      {.id = QStringLiteral("opened"),
       .tone = RunState::idle,
       .text = (parts_.control->isLive() ? tr("%1 is open. It can be trained once the run that is live has ended.")
                                         : tr("%1 is open; F5 trains it. What is drawn was trained before."))
                   .arg(parts_.document->displayName()),
       .action = {},
       .act = {},
       .ofPlots = true});
}

void Documents::runDemo() {
  if (parts_.control->isLive()) {
    parts_.centre->messages()->post({QStringLiteral("taken"), RunState::failed,
                                     tr("A run has not ended. Stop it before the demo begins."), tr("Stop"),
                                     [this] { actions_[Command::stop]->trigger(); }});
    return;
  }
  run_after_open_ = true;
  if (!parts_.files->openDemo()) run_after_open_ = false;
}

void Documents::offerDraft() {
  const auto draft = parts_.drafts->leftOver();
  if (!draft) return;
  const QString when = QLocale().toString(draft->when, QLocale::ShortFormat);
  parts_.centre->messages()->post(
      {QStringLiteral("draft"), RunState::paused,
       tr("Unsaved edits of %1 from %2 were kept. Close this message to discard them.").arg(draft->name, when),
       tr("Restore"), [this, draft] { restore(*draft); },
       [this] {
         parts_.drafts->dropLeftOver();
         offerDraft();
       },
       QStringLiteral("save")});
}

void Documents::restore(const Draft& draft) {
  if (!parts_.files->mayReplace()) return;
  parts_.lessons->leave();
  parts_.document->restore(draft.spec, draft.name, draft.base_dir.toStdString(), draft.spec_file);
  parts_.document->setSampleLock(draft.lock);
  parts_.drafts->keep();
  parts_.drafts->dropLeftOver();
  show();
}

}  // namespace accrue::ui
