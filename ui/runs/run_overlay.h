// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QObject>

namespace accrue::ui {

class MessageBar;
class RunSeries;
class RunsPanel;

/// Overlay of a starting run over those shown runs whose losses can be compared with its own. The others are hidden,
/// and the message bar offers to show them too. Thread: GUI.
class RunOverlay : public QObject {
  Q_OBJECT

 public:
  RunOverlay(RunsPanel* runs, MessageBar* bar, QObject* parent = nullptr);
  void show(RunSeries* run);

 private:
  void withdrawIfChanged();

  RunsPanel* runs_;
  MessageBar* bar_;
  QList<RunSeries*> offered_over_;  ///< runs shown while the offer stands
};

}  // namespace accrue::ui
