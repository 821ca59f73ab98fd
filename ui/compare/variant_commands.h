// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <vector>

#include "kit/command_table.h"
#include "variants.h"

namespace accrue::ui {

class Actions;
class DialectPanel;
class IsoBatchPanel;
class MessageBar;
class PlotArea;
class PreflightRunner;
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
  /// A command that trains the set-up in several ways. choose() asks the user what it has to.
  struct VariantCommand {
    Command command;
    std::function<RunWays()> choose;
    const char* plot = "";  ///< shown beside the loss
  };
  void takeEnd();
  void showEnabled();
  void showDialects();
  void showProducts();

  const Actions& actions_;
  Parts parts_;
  QWidget* window_;
  std::vector<VariantCommand> variants_;
  ComparedRuns* runs_;
  DialectPlans* dialects_;
  IsoPlans* products_;
  DialectPanel* dialect_panel_ = nullptr;
  IsoBatchPanel* product_panel_ = nullptr;
};

}  // namespace accrue::ui
