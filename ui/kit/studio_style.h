// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QPalette>
#include <QProxyStyle>

namespace accrue::ui {

/// Fusion with frames around fields, boxes and buttons that are visible in every theme, and with the studio's icons in
/// message boxes.
class StudioStyle : public QProxyStyle {
  Q_OBJECT

 public:
  StudioStyle();

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  /// Makes icons in fields and the boxes of checks as large as the text.
  int pixelMetric(PixelMetric metric, const QStyleOption* option = nullptr,
                  const QWidget* widget = nullptr) const override;
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                QStyleHintReturn* answer) const override;
  QIcon standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override;

 private:
  const QPalette& framed(const QPalette& palette) const;

  mutable QHash<qint64, QPalette> framed_;  ///< by the palette's cache key, which Fusion's picture cache also uses
};

}  // namespace accrue::ui
