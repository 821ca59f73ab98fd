// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/whatif/iso_batch.h"
#include "variants.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTableWidget;
class QTableWidgetItem;

namespace accrue::ui {

class RunControl;
class RunLibrary;
class RunQueue;
class RunSeries;
class SpecDocument;

/// The iso-batch explorer: a grid of all ways to make the samples of an update, with a layout per row and a micro-batch
/// per column. Short runs fill the cells, including earlier ones of the library, so that it continues where it stopped.
class IsoBatchPanel : public QDialog {
  Q_OBJECT

 public:
  enum class Shown { time, memory, exactness };

  /// may_run: false while the form cannot be run; it reports the reason.
  IsoBatchPanel(SpecDocument* document, IsoPlans* plans, ComparedRuns* runs, RunQueue* queue, RunControl* control,
                RunLibrary* library, std::function<bool()> may_run, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Cell {
    IsoPlan plan;
    const RunSeries* run = nullptr;  ///< the finished trial, if there is one
    double seconds = 0.0;            ///< per update
    std::int64_t bytes = 0;          ///< memory of the fullest rank
  };

  void build();
  void showPlans();
  /// Gives a row two lines of text.
  void fitRows();
  void refresh();
  void fill(QTableWidgetItem* item, const Cell& cell, double least, double most) const;
  void showDetail();
  const Cell* current() const;
  QString valueOf(const Cell& cell) const;
  /// Value that colours the cell; empty if nothing was measured.
  std::optional<double> amountOf(const Cell& cell) const;
  void run(std::function<bool(const RunWay&)> wanted);
  void runCurrent();
  void adoptCurrent();
  RunSeries* trialOf(const std::optional<RunPlan>& plan) const;
  Shown shown() const;
  /// Whether no run is live, here or in the queue.
  bool idle() const;

  SpecDocument* document_;
  IsoPlans* plans_;
  ComparedRuns* runs_;
  RunQueue* queue_;
  RunControl* control_;
  RunLibrary* library_;
  std::function<bool()> may_run_;
  std::vector<Cell> cells_;
  QLabel* title_;
  QComboBox* color_by_;
  QTableWidget* grid_;
  QLabel* detail_;
  QPushButton* run_;
  QPushButton* adopt_;
  QPushButton* run_missing_;
  QPushButton* cancel_;
};

}  // namespace accrue::ui
