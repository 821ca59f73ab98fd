// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <functional>
#include <vector>

#include "accrue/run/events/run_state.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QToolButton;

namespace accrue::ui {

struct Message {
  QString id;                      ///< a message replaces an earlier one with the same id
  RunState tone = RunState::idle;  ///< decides icon and colour
  QString text;
  QString action;  ///< text of the button; empty: none
  std::function<void()> act;
  std::function<void()> dismissed = {};  ///< the user closed it without acting
  QString icon = {};                     ///< replaces the tone's icon
  QStringList runs = {};                 ///< folders of the runs that it concerns
  bool ofPlots = false;                  ///< concerns the drawn curves and disappears with them
};

/// Messages of the window, one at a time, the newest first, each with at most one button. An older one returns when a
/// newer one is closed, unless it only reported a finished action. The rest of the window stays usable.
class MessageBar : public QWidget {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  /// Shows a message before all others; a progress message keeps its place.
  void post(Message message);
  void withdraw(const QString& id);
  /// Removes messages about runs that no longer exist.
  void withdrawWithout(const std::function<bool(const QString& folder)>& is_there);
  /// Removes messages about the curves.
  void withdrawOfPlots();
  /// Id of the shown message; empty if there is none.
  QString currentId() const;
  QString text() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void showTop();
  /// Places the button beside the text, or below it if the text would become too narrow.
  void placeAction();
  void act();
  void dismiss();

  std::vector<Message> messages_;
  QLabel* icon_;
  QLabel* text_;
  QPushButton* action_;
  QToolButton* close_;
  QBoxLayout* contents_;
};

}  // namespace accrue::ui
