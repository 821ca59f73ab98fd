// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_key.h"

#include <QEvent>
#include <QFontMetrics>
#include <QPainter>
#include <algorithm>

#include "canvas/series_swatch.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int keyRows = 3;
constexpr int keySwatch = 20;

}  // namespace

RunKey::RunKey(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("runKey"));
  setAccessibleName(tr("Key of the curves"));
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void RunKey::setItems(std::vector<HeaderItem> items) {
  if (items == items_) return;
  items_ = std::move(items);
  QStringList names;
  for (const HeaderItem& item : items_) names << item.text;
  setAccessibleDescription(names.join(QStringLiteral(", ")));
  setToolTip(names.join(QLatin1Char('\n')));
  updateGeometry();
  update();
}

QSize RunKey::sizeHint() const {
  constexpr int usual = 400;
  return {usual, heightForWidth(usual)};
}

int RunKey::heightForWidth(int width) const {
  return lay(width, nullptr);
}

void RunKey::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themeColors(palette()).surface);
  lay(width(), &painter);
}

void RunKey::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) updateGeometry();
}

int RunKey::lay(int width, QPainter* painter) const {
  if (items_.empty()) return 0;
  const QFont font = textFont(TextSize::body);
  const QFontMetrics metrics(font);
  const ThemeColors colors = themeColors(palette());
  const int first = space::betweenGroups;
  const int right = width - space::betweenGroups;
  const int height = metrics.height() + space::base;
  int left = first;
  int row = 0;
  if (painter != nullptr) painter->setFont(font);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const QString more = QStringLiteral("+%1").arg(items_.size() - i);
    const int swatch = keySwatch + space::base;
    const QString name = elidedRunName(items_[i].text, metrics, std::max(right - first - swatch, 0));
    const int taken = swatch + metrics.horizontalAdvance(name);
    // The last row counts what does not fit.
    const bool last = i + 1 == items_.size();
    const int beside = row + 1 < keyRows || last ? 0 : space::betweenGroups + metrics.horizontalAdvance(more);
    if (left > first && left + taken + beside > right) {
      if (row + 1 == keyRows) {
        if (painter != nullptr) {
          painter->setPen(colors.muted);
          painter->drawText(left, space::base + row * height + metrics.ascent(), more);
        }
        break;
      }
      ++row;
      left = first;
    }
    const int top = space::base + row * height;
    if (painter != nullptr) {
      paintSwatch(*painter, QRectF(left, top + metrics.height() / 2.0 - 5.0, keySwatch, 10.0), items_[i].seriesIndex,
                  colors);
      painter->setPen(colors.text);
      painter->drawText(left + swatch, top + metrics.ascent(), name);
    }
    left += taken + space::betweenGroups;
  }
  return space::base + (row + 1) * height;
}

}  // namespace accrue::ui
