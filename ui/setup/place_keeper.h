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

/// Keeps what the user looks at where it is, while what a page holds takes or gives room: the field under the pointer,
/// or else with the focus, and a field that was scrolled to. Thread: GUI.
class PlaceKeeper : public QObject {
  Q_OBJECT

 public:
  /// `fields`: the editors that can be seen now. The page is the area's widget.
  PlaceKeeper(QScrollArea* area, std::function<std::vector<QWidget*>()> fields);

  /// What is changed next takes or gives room: the place is kept until the event loop has laid it out.
  void hold();
  /// Scrolls to a field, which stays in sight until the user scrolls or goes to another one.
  void scrollTo(QWidget* field);
  /// The user looks for something else.
  void letGo();
  /// To be called when the page has another size, and when the area has.
  void pageResized();
  void areaResized() { keepInSight(); }

 private:
  QWidget* placeToHold() const;
  void keepPlace();
  void keepInSight();

  QScrollArea* area_;
  std::function<std::vector<QWidget*>()> fields_;
  QPointer<QWidget> held_;  ///< stays at its height while the timer runs and nobody scrolls
  int held_at_ = 0;
  QPointer<QWidget> in_sight_;  ///< was scrolled to
  QTimer hold_;
};

}  // namespace accrue::ui
