// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QObject>
#include <QPointer>
#include <QSize>
#include <optional>
#include <utility>
#include <vector>

class QDockWidget;
class QMainWindow;
class QSettings;

namespace accrue::ui {

class Actions;

/// Larger and smaller text, remembered, and the presenter layout: the plots and one dock alone, in text that can be
/// read from the last row.
class ViewSize : public QObject {
  Q_OBJECT

 public:
  ViewSize(const Actions& actions, QSettings* settings, QMainWindow* window, QDockWidget* kept);
  /// Back to the window as it was, e.g. before its layout is saved.
  void leavePresenter();
  bool presents() const { return before_.has_value(); }
  /// Call it before the docks are arranged anew: back at the normal text size they keep their new sizes.
  void forgetDockSizes() { dock_sizes_.clear(); }
  /// Sets the docks' sizes at the normal text size; larger text enlarges them from there. The height counts for docks
  /// at the bottom, the width for others.
  void setDockSizes(std::vector<std::pair<QPointer<QDockWidget>, QSize>> sizes);
  /// Returns the scale at which every line of text, including ticks and values at the cursor, has at least a fortieth
  /// of the screen's height. `line_height`: of the smallest text.
  static double presenterScale(double screen_height, double line_height);
  /// Returns the scale at which the window holds 24 lines of body text. With fewer, a panel shows a row or two, and
  /// docks do not fit below each other.
  static double largestScale(double window_height, double line_height);

 Q_SIGNALS:
  /// The presenter layout was entered, or left in any way.
  void presenting(bool on);

 private:
  struct Before {
    QByteArray layout;
    double scale = 1.0;
  };
  /// Scales text and the icons beside it.
  void apply(double factor);
  void setScale(double factor);
  void enlarge();
  void takeDockSizes();
  /// Restores the docks' sizes after text has become smaller.
  void giveDockSizes();
  void present(bool on);

  const Actions& actions_;
  QSettings* settings_;
  QMainWindow* window_;
  QDockWidget* kept_;
  std::optional<Before> before_;
  std::vector<std::pair<QPointer<QDockWidget>, QSize>> dock_sizes_;  ///< when the text last had its normal size
};

}  // namespace accrue::ui
