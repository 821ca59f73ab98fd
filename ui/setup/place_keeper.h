// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <functional>
#include <vector>

class QScrollArea;
class QWidget;

namespace accrue::ui {

/// Keeps a field at its place while the page's contents grow or shrink: the field under the pointer, otherwise the one
/// with the focus, and a field that was scrolled to. Thread: GUI.
class PlaceKeeper : public QObject {
  Q_OBJECT

 public:
  /// `fields`: the editors that can be seen now. The page is the area's widget.
  PlaceKeeper(QScrollArea* area, std::function<std::vector<QWidget*>()> fields);

  /// Call it before a change of the contents. Keeps the place until the event loop has laid them out.
  void hold();
  /// Scrolls to a field, which stays in sight until the user scrolls or goes to another one.
  void scrollTo(QWidget* field);
  /// Stops keeping a place, because the user looks for something else.
  void letGo();
  /// Call these when the size of the page or of the area has changed.
  void pageResized();
  void areaResized() { keepInSight(); }

 private:
  QWidget* placeToHold() const;
  void keepPlace();
  void keepInSight();

  QScrollArea* area_;
  std::function<std::vector<QWidget*>()> fields_;
  QPointer<QWidget> held_;  ///< keeps its height until the timer ends or the user scrolls
  int held_at_ = 0;
  QPointer<QWidget> in_sight_;  ///< was scrolled to
  QTimer hold_;
};

}  // namespace accrue::ui
