// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_accessible.h"

#include <QAccessibleWidget>

#include "canvas/plot_view.h"

namespace accrue::ui {

namespace {

class PlotAccessible final : public QAccessibleWidget {
 public:
  explicit PlotAccessible(PlotCanvas* canvas) : QAccessibleWidget(canvas, QAccessible::Chart) {}

  QString text(QAccessible::Text kind) const override {
    const auto* view = widget() == nullptr ? nullptr : qobject_cast<const PlotView*>(widget()->parentWidget());
    if (view == nullptr) return QAccessibleWidget::text(kind);
    if (kind == QAccessible::Description) return view->summary();
    if (kind == QAccessible::Value) {
      QStringList values;
      for (const HeaderItem& item : view->header().items()) values << item.text;
      return values.join(QStringLiteral(", "));
    }
    if (kind == QAccessible::Help)
      return PlotView::tr(
          "Arrows pan, plus and minus zoom, A fits, L switches to a logarithmic scale, 1 to 7 choose the clock, "
          "Control with left or right moves the cursor, C copies the values at it. W shows one window, N and P the "
          "next "
          "and the previous, T shows the plot as a table.");
    return QAccessibleWidget::text(kind);
  }
};

QAccessibleInterface* makePlotAccessible(const QString&, QObject* object) {
  auto* canvas = qobject_cast<PlotCanvas*>(object);
  return canvas == nullptr ? nullptr : new PlotAccessible(canvas);
}

}  // namespace

void installPlotAccessibility() {
  QAccessible::installFactory(makePlotAccessible);
}

}  // namespace accrue::ui
