// SPDX-License-Identifier: GPL-3.0-or-later
// Restores a saved layout exactly.
#pragma once

#include <QMainWindow>
#include <QObject>
#include <QSize>
#include <functional>

namespace accrue::ui {

/// Docks divide the space of the window at the time of restoring. But a window gets its saved size only some time after
/// it is shown. This waits for that size and then restores; it gives up at the first user action.
class LayoutRestorer : public QObject {
  Q_OBJECT

 public:
  LayoutRestorer(QMainWindow* window, QSize size, std::function<void()> restore);

  /// Stops restoring: the layout belongs to the user from now on.
  void disarm();

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  QMainWindow* window_;
  QSize size_;
  std::function<void()> restore_;
};

/// Call when the docks were rearranged: the saved layout is then not restored over it.
void forgetSavedLayout(QMainWindow* window);

}  // namespace accrue::ui
