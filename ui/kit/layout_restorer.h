// SPDX-License-Identifier: GPL-3.0-or-later
// What brings a saved layout back to the pixel.
#pragma once

#include <QMainWindow>
#include <QObject>
#include <QSize>
#include <functional>

namespace accrue::ui {

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
