// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

namespace accrue::ui {

/// What a dock holds: a panel that asks for the room it needs, and scrolls where the window has less, as with large
/// text on a small screen. Thread: GUI.
class PanelScroll : public QScrollArea {
  Q_OBJECT

 public:
  explicit PanelScroll(QWidget* panel, QWidget* parent = nullptr);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  QSize needed() const;
  /// What the panel needs at this width, where its texts wrap.
  int neededHeight(int width) const;
  void fit();
};

}  // namespace accrue::ui
