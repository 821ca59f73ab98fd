// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QPalette>
#include <QProxyStyle>

namespace accrue::ui {

/// Fusion, with frames around fields, boxes and buttons that stand out from the window in every theme, and with the
/// studio's own icons in message boxes.
class StudioStyle : public QProxyStyle {
  Q_OBJECT

 public:
  StudioStyle();

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  /// Icons in fields, and the boxes of checks, are as large as the text.
  int pixelMetric(PixelMetric metric, const QStyleOption* option = nullptr,
                  const QWidget* widget = nullptr) const override;
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                QStyleHintReturn* answer) const override;
  QIcon standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override;

 private:
  const QPalette& framed(const QPalette& palette) const;

  mutable QHash<qint64, QPalette> framed_;  ///< by the palette's cache key: Fusion keeps its pictures by it
};

}  // namespace accrue::ui
