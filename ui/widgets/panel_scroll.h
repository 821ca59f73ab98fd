// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

namespace accrue::ui {

/// Scroll area of a dock. The panel gets the space that it needs, and scrolls if the window has less, as with large
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
  /// Height of the panel at this width, with wrapped texts.
  int neededHeight(int width) const;
  void fit();
};

}  // namespace accrue::ui
