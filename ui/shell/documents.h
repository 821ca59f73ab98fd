// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class CentrePage;
class DraftKeeper;
class LessonDesk;
class RunControl;
class RunsPanel;
struct Draft;
class SetupPanel;
class SpecDocument;
class SpecFiles;

/// Opens and closes documents: shows the right page, opens what the start page offers, and offers edits that were kept
/// from an earlier window.
class Documents : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    RunControl* control;
    SpecFiles* files;
    DraftKeeper* drafts;
    LessonDesk* lessons;
    RunsPanel* runs;
    SetupPanel* setup;
    CentrePage* centre;
  };
  Documents(const Actions& actions, const Parts& parts, QObject* parent);

  /// Opens the demo and trains it at once.
  void runDemo();
  void offerDraft();

 Q_SIGNALS:
  void runsWanted();

 private:
  void connectStartPage();
  void close();
  void show();
  void sayWhatIsDrawn();
  void restore(const Draft& draft);

  const Actions& actions_;
  Parts parts_;
  bool run_after_open_ = false;
};

}  // namespace accrue::ui
