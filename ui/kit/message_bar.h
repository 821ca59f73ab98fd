// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <functional>
#include <vector>

#include "accrue/run/run_state.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QToolButton;

namespace accrue::ui {

struct Message {
  QString id;                      ///< a message replaces an earlier one with the same id
  RunState tone = RunState::idle;  ///< decides icon and colour
  QString text;
  QString action;  ///< of the button; empty = none
  std::function<void()> act;
  std::function<void()> dismissed = {};  ///< closed by the user without acting
  QString icon = {};                     ///< in place of the tone's
  QStringList runs = {};                 ///< folders of those that it speaks of
  bool ofPlots = false;                  ///< speaks of the curves that are drawn: goes with them
};

/// Messages of the window, one at a time, the newest first, each with at most one button. Older ones come back when it
/// is gone, but for news of what was done, which has been read. The rest of the window stays usable.
class MessageBar : public QWidget {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  /// In front of all others, except that the progress of what trains goes on where it stands.
  void post(Message message);
  void withdraw(const QString& id);
  /// The messages that speak of runs none of which is there any more.
  void withdrawWithout(const std::function<bool(const QString& folder)>& is_there);
  /// The messages that speak of the curves.
  void withdrawOfPlots();
  /// Of the shown message; empty if there is none.
  QString currentId() const;
  QString text() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void showTop();
  /// Beside the text, or under it where that would leave the text a narrow column.
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
