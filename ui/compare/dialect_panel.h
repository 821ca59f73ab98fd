// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <memory>
#include <vector>

#include "accrue/run/whatif/dialect_comparison.h"
#include "variants.h"

class QAction;
class QLabel;
class QPushButton;
class QScrollArea;
class QScrollBar;

namespace accrue::ui {

class DialectRuler;
class DialectStrip;
class RunQueue;
class SpecDocument;
struct DialectColumns;

/// One dialect's part of the panel: its name, its strip, the fate of the last batches, and a button that makes it the
/// set-up's dialect.
class DialectCard : public QWidget {
  Q_OBJECT

 public:
  DialectCard(Dialect dialect, QWidget* parent);

  void show(const std::shared_ptr<const DialectComparison>& comparison,
            const std::shared_ptr<const DialectColumns>& columns, std::size_t row);
  /// Shows the state of this dialect's queued run; empty hides it.
  void showOutcome(const QString& text);
  DialectStrip* strip() const { return strip_; }
  QPushButton* useButton() const { return use_; }
  /// All text of the card.
  QString text() const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QLabel* addText(const char* object_name, bool muted);

  Dialect dialect_;
  bool chosen_ = false;
  QLabel* name_;
  QLabel* outcome_;
  QPushButton* use_;
  DialectStrip* strip_;
  QLabel* fate_;
  QLabel* facts_;
  QLabel* notes_;
};

/// "What would each dialect do": the five strips of the current set-up, one below the other. Not modal: they follow
/// edits of the form.
class DialectPanel : public QDialog {
  Q_OBJECT

 public:
  /// run_all is the window's command, which the panel shows as a button.
  DialectPanel(SpecDocument* document, DialectPlans* dialects, RunQueue* queue, QAction* run_all, QWidget* parent);
  ~DialectPanel() override;

  DialectCard* card(Dialect dialect) const;
  /// The whole panel as text, for Copy.
  QString text() const;

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* buildTop();
  QWidget* buildBottom(QAction* run_all);
  void connectCard(DialectCard* card, Dialect dialect);
  void showResult();
  void showChecking();
  void showQueue();
  void fitScrollBar();
  void setOffset(int offset);
  void reach(int x, int width);
  void use(Dialect dialect);

  SpecDocument* document_;
  DialectPlans* dialects_;
  RunQueue* queue_;
  std::shared_ptr<const DialectComparison> shown_;
  std::shared_ptr<const DialectColumns> columns_;
  std::vector<DialectCard*> cards_;
  DialectRuler* ruler_;
  QScrollArea* scroll_ = nullptr;
  QScrollBar* bar_;
  QLabel* detail_;
  QLabel* status_;
  QPushButton* cancel_;
};

}  // namespace accrue::ui
