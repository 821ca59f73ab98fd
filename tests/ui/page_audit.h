// SPDX-License-Identifier: GPL-3.0-or-later
// Finds defects that a designer would mark on a page: cut text, parts that lie outside, text and frames with too little
// contrast, and parts without a name for screen readers. Each function returns a line per defect.
#pragma once

#include <QAbstractScrollArea>
#include <QAccessible>
#include <QComboBox>
#include <QDockWidget>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollBar>
#include <QStyleOptionComboBox>
#include <QTabBar>
#include <QTextEdit>
#include <QToolButton>
#include <algorithm>
#include <vector>

#include "kit/theme_colors.h"
#include "shell/start_page.h"

namespace accrue::ui {

inline QString nameOf(const QWidget* widget) {
  QString name = widget->objectName();
  for (const QWidget* at = widget->parentWidget(); name.isEmpty() && at; at = at->parentWidget())
    name = QStringLiteral("in ") + at->objectName();
  return QStringLiteral("%1 %2").arg(QLatin1String(widget->metaObject()->className()), name);
}

/// A dock behind a tab lies beside the window.
inline bool isBehindATab(const QWidget* widget) {
  for (const QWidget* at = widget; at; at = at->parentWidget())
    if (const auto* dock = qobject_cast<const QDockWidget*>(at)) return !dock->isFloating() && dock->x() < 0;
  return false;
}

/// Widgets of Qt's own making, such as the buttons of a tab bar, answer for themselves.
inline bool isOurs(const QWidget* widget) {
  return !widget->objectName().startsWith(QStringLiteral("qt_")) && !qobject_cast<const QAbstractItemView*>(widget);
}

inline QList<QWidget*> visibleIn(QWidget* page) {
  QList<QWidget*> found;
  for (QWidget* widget : page->findChildren<QWidget*>())
    if (widget->isVisibleTo(page) && isOurs(widget) && widget->window() == page->window() && !isBehindATab(widget) &&
        page->rect().intersects(QRect(widget->mapTo(page, QPoint()), widget->size())))
      found.append(widget);
  return found;
}

/// Returns the number of pixels of its text that the widget does not show; at most 0 if it shows everything.
inline int cutPixels(const QWidget* widget) {
  constexpr int none = 0;
  if (const auto* card = qobject_cast<const StartCard*>(widget))
    return card->leastWidth(card->toolTip().isEmpty()) - card->width();
  if (const auto* label = qobject_cast<const QLabel*>(widget)) {
    if (label->text().isEmpty()) return none;
    if (!label->wordWrap()) return label->sizeHint().width() - label->width();
    int longest = 0;
    if (!Qt::mightBeRichText(label->text()))
      for (const QString& word : label->text().split(QRegularExpression(QStringLiteral("[\\s\\x{200B}/-]"))))
        longest = std::max(longest, label->fontMetrics().horizontalAdvance(word));
    return std::max(longest - label->contentsRect().width(), label->heightForWidth(label->width()) - label->height());
  }
  if (const auto* tool = qobject_cast<const QToolButton*>(widget))
    if (tool->text().isEmpty() || tool->toolButtonStyle() == Qt::ToolButtonIconOnly) return none;
  if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
    return button->text().isEmpty() ? none : button->sizeHint().width() - button->width();
  if (const auto* combo = qobject_cast<const QComboBox*>(widget)) {
    QStyleOptionComboBox option;
    option.initFrom(combo);
    option.editable = combo->isEditable();
    const QRect room =
        combo->style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, combo);
    return combo->fontMetrics().horizontalAdvance(combo->currentText()) - room.width();
  }
  if (const auto* line = qobject_cast<const QLineEdit*>(widget)) {
    if (!line->text().isEmpty() || line->placeholderText().isEmpty()) return none;
    const int icons = static_cast<int>(line->findChildren<QToolButton*>().size()) * (line->height() - 4);
    return line->fontMetrics().horizontalAdvance(line->placeholderText()) + icons + 8 - line->width();
  }
  if (const auto* tabs = qobject_cast<const QTabBar*>(widget)) {
    int most = none;
    for (int i = 0; i < tabs->count(); ++i) {
      if (!tabs->isTabVisible(i) || !tabs->tabToolTip(i).isEmpty()) continue;
      most = std::max({most, tabs->fontMetrics().horizontalAdvance(tabs->tabText(i)) - tabs->tabRect(i).width(),
                       tabs->tabRect(i).right() - tabs->width() + 1});
    }
    return most;
  }
  return none;
}

/// Texts that are cut and have no tooltip that could tell them.
inline QStringList cutTexts(QWidget* page) {
  QStringList marks;
  for (const QWidget* widget : visibleIn(page)) {
    if (!widget->toolTip().isEmpty() && !qobject_cast<const QAbstractButton*>(widget)) continue;
    const int cut = cutPixels(widget);
    if (cut > 1) marks.append(QStringLiteral("%1 is cut by %2").arg(nameOf(widget)).arg(cut));
  }
  return marks;
}

/// Parts of the page that a user can neither see nor scroll to.
inline QStringList partsOutside(QWidget* page) {
  QStringList marks;
  for (QWidget* widget : page->findChildren<QWidget*>()) {
    if (!widget->isVisibleTo(page) || !isOurs(widget) || widget->window() != page->window() || isBehindATab(widget))
      continue;
    const bool shows = qobject_cast<QLabel*>(widget) || widget->focusPolicy() != Qt::NoFocus;
    if (!shows || widget->width() <= 1) continue;
    bool across = true, down = true;  // still to be seen in that direction
    for (QWidget* around = widget->parentWidget(); around; around = around->parentWidget()) {
      if (const auto* area = qobject_cast<QAbstractScrollArea*>(around->parentWidget());
          area && around == area->viewport()) {
        across = across && area->horizontalScrollBar()->maximum() == 0;
        down = down && area->verticalScrollBar()->maximum() == 0;
      }
      const QRect place(widget->mapTo(around, QPoint()), widget->size());
      if (across && (place.left() < -1 || place.right() > around->width())) {
        marks.append(QStringLiteral("%1 from %2 to %3 of %4, of width %5")
                         .arg(nameOf(widget))
                         .arg(place.left())
                         .arg(place.right())
                         .arg(nameOf(around))
                         .arg(around->width()));
        break;
      }
      if (down && (place.top() < -1 || place.bottom() > around->height())) {
        marks.append(QStringLiteral("%1 down to %2 of %3, of height %4")
                         .arg(nameOf(widget))
                         .arg(place.bottom())
                         .arg(nameOf(around))
                         .arg(around->height()));
        break;
      }
      if (around == page) break;
    }
  }
  return marks;
}

/// Returns the contrast between text and its background: the median of the part, which is mostly background, even a
/// shaded one.
inline double contrastOn(const QImage& picture, const QRect& part, const QColor& ink) {
  std::vector<double> contrasts;
  for (int y = part.top(); y <= part.bottom(); ++y)
    for (int x = part.left(); x <= part.right(); ++x) contrasts.push_back(contrastRatio(ink, picture.pixelColor(x, y)));
  const auto middle = contrasts.begin() + static_cast<std::ptrdiff_t>(contrasts.size() / 2);
  std::nth_element(contrasts.begin(), middle, contrasts.end());
  return *middle;
}

/// Text below 4.5:1 and frames of fields below 3:1 of what is painted around them. Disabled ones may be pale.
inline QStringList weakColours(QWidget* page) {
  constexpr double least_text = 4.5, least_frame = 3.0;
  QStringList marks;
  const QImage picture = page->grab().toImage();
  const qreal ratio = picture.devicePixelRatio();
  const auto inPicture = [&](const QRect& rect) {
    return QRect((QPointF(rect.topLeft()) * ratio).toPoint(), (QSizeF(rect.size()) * ratio).toSize())
        .intersected(picture.rect());
  };
  for (const QWidget* widget : visibleIn(page)) {
    // Parts that are scrolled away are not painted.
    const QRect seen = widget->visibleRegion().boundingRect();
    if (!widget->isEnabled() || seen.size() != widget->size()) continue;
    const QRect part = inPicture(QRect(widget->mapTo(page, QPoint()), widget->size()));
    if (part.width() < 4 || part.height() < 4) continue;
    const auto* label = qobject_cast<const QLabel*>(widget);
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    const bool text = (label && !label->text().isEmpty()) || (button && !button->text().isEmpty());
    if (text) {
      const QColor ink = widget->palette().color(QPalette::Active, widget->foregroundRole());
      const double contrast = contrastOn(picture, part, ink);
      if (contrast < least_text) marks.append(QStringLiteral("%1: text %2:1").arg(nameOf(widget)).arg(contrast));
    }
    const bool field =
        qobject_cast<const QAbstractSpinBox*>(widget) || qobject_cast<const QComboBox*>(widget) ||
        qobject_cast<const QPlainTextEdit*>(widget) || qobject_cast<const QTextEdit*>(widget) ||
        (qobject_cast<const QLineEdit*>(widget) && !qobject_cast<const QAbstractSpinBox*>(widget->parentWidget()) &&
         !qobject_cast<const QComboBox*>(widget->parentWidget()));
    const auto* push = qobject_cast<const QPushButton*>(widget);
    if (!field && (!push || push->isFlat())) continue;
    const QColor ground = picture.pixelColor(std::max(part.left() - 2, 0), part.center().y());
    double most = 1.0;
    for (int x = part.left(); x < part.left() + qCeil(5 * ratio); ++x)
      most = std::max(most, contrastRatio(picture.pixelColor(x, part.center().y()), ground));
    if (most < least_frame) marks.append(QStringLiteral("%1: frame %2:1").arg(nameOf(widget)).arg(most));
  }
  return marks;
}

/// Nodes of the accessibility tree that can have the focus and have no name.
inline QStringList unnamedNodes(QAccessibleInterface* from, int depth = 0) {
  QStringList marks;
  constexpr int deepest = 40;
  if (!from || !from->isValid() || depth > deepest || from->state().invisible) return marks;
  const auto* widget = qobject_cast<QWidget*>(from->object());
  const bool inside = widget && (qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) ||
                                 qobject_cast<QComboBox*>(widget->parentWidget()));
  const bool ours = !widget || isOurs(widget) || qobject_cast<const QAbstractItemView*>(widget);
  const bool cell = from->role() == QAccessible::Cell || from->role() == QAccessible::ListItem;  // its text is its name
  if (from->state().focusable && !inside && ours && !cell && from->text(QAccessible::Name).isEmpty())
    marks.append(widget ? nameOf(widget) : QStringLiteral("a node of role %1").arg(from->role()));
  // The rows of a table may be many; the table names itself.
  if (from->tableInterface()) return marks;
  for (int child = 0; child < from->childCount(); ++child) marks += unnamedNodes(from->child(child), depth + 1);
  return marks;
}

}  // namespace accrue::ui
