// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "accrue/run/whatif/plugins.h"
#include "document/plan_follower.h"

class QLabel;
class QScrollArea;

namespace accrue::ui {

struct DockPanel;
class PluginCard;
class PluginMatrix;
class PreflightRunner;
class SpecDocument;

/// The plug-ins dock: a card for each way in which ranks share the run or save memory, and the matrix of their
/// compatibility.
class PluginRack : public QWidget {
  Q_OBJECT

 public:
  PluginRack(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);
  DockPanel dock();
  void focusFirst();

 protected:
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  void keepCardsWhole();
  QWidget* buildMatrix(QWidget* parent);
  void showDocument();
  void showResult();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  PlanAnswers<PluginComparison>* plugins_;
  std::vector<PluginCard*> cards_;
  PluginMatrix* matrix_ = nullptr;
  QScrollArea* scroll_ = nullptr;
  QLabel* total_;
};

}  // namespace accrue::ui
