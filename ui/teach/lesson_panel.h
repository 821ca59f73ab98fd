// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QSet>
#include <QWidget>
#include <vector>

#include "kit/theme.h"

class QDockWidget;
class QAction;
class QListWidget;
class QListWidgetItem;
class QPushButton;
class QScrollArea;
class QStackedLayout;
class QVBoxLayout;

namespace accrue::ui {

struct DockPanel;
class LessonPlayer;
class Actions;

/// The lesson dock: the list of lessons while none is open, else the current step with its checks.
class LessonPanel : public QWidget {
  Q_OBJECT

 public:
  LessonPanel(LessonPlayer* player, const Actions& actions, QWidget* parent = nullptr);
  DockPanel dock();

  /// Shows the list of lessons in front of the open one, or hides it again; the list alone while none is open.
  void showList(bool shown);
  bool isListShown() const;
  /// Focuses the list, or the open step.
  void focusFirst();
  QDockWidget* dockWidget() const { return dock_; }
  void showHint();
  /// Marks completed lessons, by their numbers, and makes the next one the current row.
  void setDone(const QSet<int>& numbers);
  /// Also shows what is missing for each check.
  void check();

 Q_SIGNALS:
  /// A built-in lesson was chosen, by its resource.
  void chosen(const QString& resource);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  /// One check: icon and word, the sentence, and the observation.
  struct CheckRow {
    QLabel* icon;
    QLabel* says;
    QLabel* found;
  };

  QWidget* buildList();
  QWidget* buildStep(const Actions& actions);
  QLabel* addText(QVBoxLayout* column, const char* name, TextSize size);
  void showStep();
  void showChecks();
  void setHintShown(bool shown);
  CheckRow addCheckRow();
  /// The lesson after the open one in the list; nullptr after the last, and while none of the list is open.
  const QListWidgetItem* following() const;

  LessonPlayer* player_;
  QStackedLayout* stack_;
  QDockWidget* dock_ = nullptr;
  QListWidget* list_;
  QPushButton* back_;
  QScrollArea* scroll_;
  QLabel* place_;
  QLabel* title_;
  QLabel* text_;
  QLabel* hint_;
  QLabel* processor_;
  QLabel* done_;
  QPushButton* hint_button_;
  QPushButton* next_lesson_;
  QVBoxLayout* checks_;
  std::vector<CheckRow> rows_;
  bool asked_ = false;
  std::size_t asked_step_ = 0;  ///< step whose checks are shown
};

}  // namespace accrue::ui
