// SPDX-License-Identifier: GPL-3.0-or-later
// Fusion derives a frame's colour from the window's, 1.4 times darker, which is invisible on a dark window. Frames are
// drawn here with the window colour that gives the desired frame colour; nothing else in these elements uses it. If a
// screen's scale is not an integer, Fusion draws a frame's lines across pixels, which makes them pale: here an element
// begins and ends between two pixels.
#include "studio_style.h"

#include <QPainter>
#include <QPlainTextEdit>
#include <QStyleFactory>
#include <QStyleOption>
#include <QTextEdit>
#include <QTransform>
#include <cmath>

#include "text_scale.h"
#include "theme.h"

namespace accrue::ui {

namespace {

constexpr int fusion_darkens = 140;
constexpr qsizetype most_palettes = 64;

/// Fields, buttons, and boxes for text input. Frames of lists and tables only separate.
bool hasFrame(QStyle::PrimitiveElement element, const QWidget* widget) {
  if (element == QStyle::PE_Frame)
    return qobject_cast<const QPlainTextEdit*>(widget) || qobject_cast<const QTextEdit*>(widget);
  return element == QStyle::PE_FrameLineEdit || element == QStyle::PE_IndicatorCheckBox ||
         element == QStyle::PE_IndicatorRadioButton || element == QStyle::PE_PanelButtonCommand;
}

/// Scope that replaces the option's palette.
class Repainted {
 public:
  Repainted(const QStyleOption* option, const QPalette& palette)
      : option_(const_cast<QStyleOption*>(option)), before_(option->palette) {
    option_->palette = palette;
  }
  ~Repainted() { option_->palette = before_; }
  Repainted(const Repainted&) = delete;
  Repainted& operator=(const Repainted&) = delete;

 private:
  QStyleOption* option_;
  QPalette before_;
};

/// While it lives, the painter puts the edges of a rectangle between device pixels.
class OnWholePixels {
 public:
  OnWholePixels(QPainter* painter, const QRect& rect) : painter_(painter), before_(painter->worldTransform()) {
    const QTransform device = painter->deviceTransform();
    if (rect.isEmpty() || device.type() > QTransform::TxScale) return;
    const QRectF there = device.mapRect(QRectF(rect));
    const QRectF whole(QPointF(std::round(there.left()), std::round(there.top())),
                       QPointF(std::round(there.right()), std::round(there.bottom())));
    if (whole == there || whole.isEmpty()) return;
    const QRectF here = device.inverted().mapRect(whole);
    QTransform moved = QTransform::fromTranslate(here.left(), here.top());
    moved.scale(here.width() / rect.width(), here.height() / rect.height());
    moved.translate(-rect.left(), -rect.top());
    painter->setWorldTransform(moved, true);
  }
  ~OnWholePixels() { painter_->setWorldTransform(before_); }
  OnWholePixels(const OnWholePixels&) = delete;
  OnWholePixels& operator=(const OnWholePixels&) = delete;

 private:
  QPainter* painter_;
  QTransform before_;
};

}  // namespace

StudioStyle::StudioStyle() : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))) {}

const QPalette& StudioStyle::framed(const QPalette& palette) const {
  const auto known = framed_.constFind(palette.cacheKey());
  if (known != framed_.constEnd()) return *known;
  if (framed_.size() >= most_palettes) framed_.clear();
  QPalette framed = palette;
  framed.setColor(QPalette::Window, themeColors(palette).frame.lighter(fusion_darkens));
  return *framed_.insert(palette.cacheKey(), framed);
}

void StudioStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                const QWidget* widget) const {
  if (!hasFrame(element, widget) || !option->state.testFlag(State_Enabled))
    return QProxyStyle::drawPrimitive(element, option, painter, widget);
  const Repainted repainted(option, framed(option->palette));
  const OnWholePixels aligned(painter, option->rect);
  QProxyStyle::drawPrimitive(element, option, painter, widget);
}

void StudioStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                     const QWidget* widget) const {
  const bool has_frame = control == CC_ComboBox || control == CC_SpinBox;
  if (!has_frame || !option->state.testFlag(State_Enabled))
    return QProxyStyle::drawComplexControl(control, option, painter, widget);
  const Repainted repainted(option, framed(option->palette));
  QProxyStyle::drawComplexControl(control, option, painter, widget);
}

int StudioStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  const int normal = QProxyStyle::pixelMetric(metric, option, widget);
  switch (metric) {
    case PM_LineEditIconSize:
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
    case PM_ExclusiveIndicatorWidth:
    case PM_ExclusiveIndicatorHeight:
      return qRound(normal * textScale());
    default:
      return normal;
  }
}

int StudioStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                           QStyleHintReturn* answer) const {
  if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0;  // the text is sufficient, and Fusion's icons are not ours
  return QProxyStyle::styleHint(hint, option, widget, answer);
}

QIcon StudioStyle::standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const {
  switch (which) {
    case SP_MessageBoxQuestion:
      return themedIcon(QStringLiteral("question"));
    case SP_MessageBoxInformation:
      return themedIcon(QStringLiteral("info"));
    case SP_MessageBoxWarning:
      return stateIcon(RunState::degraded);
    case SP_MessageBoxCritical:
      return stateIcon(RunState::failed);
    default:
      return QProxyStyle::standardIcon(which, option, widget);
  }
}

}  // namespace accrue::ui
