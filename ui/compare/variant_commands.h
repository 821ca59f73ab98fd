// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "variants.h"

namespace accrue::ui {

class Actions;
class DialectPanel;
class IsoBatchPanel;
class MessageBar;
class PlotArea;
class PreflightRunner;
class QueueCommands;
class RunControl;
class RunLibrary;
class RunQueue;
class RunSeries;
class RunsPanel;
class SeedDialogs;
class SetupPanel;
class SpecDocument;
class TrainingCommands;

/// The set-up in several ways, side by side and trained one after another: dialects, optimizers, products of one batch,
/// seeds; and the queue.
class VariantCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    PreflightRunner* preflight;
    RunControl* control;
    RunLibrary* library;
    RunQueue* queue;
    RunsPanel* runs;
    SetupPanel* setup;
    TrainingCommands* training;
    PlotArea* plots;
    SeedDialogs* dialogs;
    MessageBar* bar;
  };
  VariantCommands(const Actions& actions, const Parts& parts, QWidget* window);

 Q_SIGNALS:
  /// These runs have been trained to be compared.
  void compared(const QList<accrue::ui::RunSeries*>& runs);

 private:
  void connectActions();
  void follow(ComparedRuns* runs);
  void showEnabled();
  void showDialects();
  void showProducts();
  void takeEnd();

  const Actions& actions_;
  Parts parts_;
  QWidget* window_;
  DialectPlans* dialects_;
  ComparedRuns* dialect_runs_;
  ComparedRuns* optimizer_runs_;
  IsoPlans* products_;
  ComparedRuns* product_runs_;
  QueueCommands* queue_commands_;
  DialectPanel* dialect_panel_ = nullptr;
  IsoBatchPanel* product_panel_ = nullptr;
};

}  // namespace accrue::ui
