// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts of the View menu, and what brings a saved one back to the pixel.
#pragma once

#include <QByteArray>
#include <QMainWindow>
#include <QObject>
#include <QSize>
#include <functional>

namespace accrue::ui {

enum class WindowLayout { studio, compare, debug, lesson };

/// From the default layout on, while no lesson is open: hides the docks that a layout has no use for, and gives the
/// others their room.
void applyLayout(QMainWindow* window, WindowLayout layout);

/// Docks divide the room of the window that they are restored in, and a window has its saved size only some time after
/// it was shown. This waits for that size and restores then; it gives up as soon as the user does anything.
class LayoutRestorer : public QObject {
  Q_OBJECT

 public:
  LayoutRestorer(QMainWindow* window, QSize size, std::function<void()> restore);

  /// The layout is the user's from now on.
  void disarm();

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  QMainWindow* window_;
  QSize size_;
  std::function<void()> restore_;
};

/// For what arranges the docks anew: a saved layout is not brought back over it.
void forgetSavedLayout(QMainWindow* window);

}  // namespace accrue::ui
