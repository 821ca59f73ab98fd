// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class MessageBar;
class RunControl;
class RunSeries;
class SpecDocument;
class SpecFiles;

/// Link that keeps the set-up and the run together when a run is resumed or followed here. Loads the run's spec, or, if
/// that would lose unsaved edits, says that the set-up differs and offers to load it.
class JoinedSetUp : public QObject {
  Q_OBJECT

 public:
  JoinedSetUp(RunControl* control, SpecDocument* document, SpecFiles* files, MessageBar* bar,
              QObject* parent = nullptr);

 private:
  void join(RunSeries* run);

  SpecDocument* document_;
  SpecFiles* files_;
  MessageBar* bar_;
};

}  // namespace accrue::ui
