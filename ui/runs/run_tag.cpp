// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_tag.h"

#include <QDockWidget>
#include <QPainter>

#include "canvas/series_swatch.h"
#include "kit/theme.h"
#include "widgets/dock_title.h"

namespace accrue::ui {

namespace {

constexpr int tag_swatch = 28;
constexpr int most_name_width = 220;

}  // namespace

RunTag::RunTag(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("runTag"));
  setFont(textFont(TextSize::small));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  hide();
}

void RunTag::setRun(const RunSeries* run) {
  if (run == run_) return;
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  if (run_) connect(run_, &RunSeries::changed, this, &RunTag::showRun);
  setVisible(run_ != nullptr);
  showRun();
}

void RunTag::showRun() {
  if (!run_ || (run_->name() == name_ && run_->colorIndex() == color_)) return;
  name_ = run_->name();
  color_ = run_->colorIndex();
  setToolTip(tr("This panel shows %1").arg(name_));
  setAccessibleName(tr("Shows the run %1").arg(name_));
  updateGeometry();
  update();
}

QSize RunTag::sizeHint() const {
  const int name = std::min(fontMetrics().horizontalAdvance(name_) + 1, most_name_width);
  return {tag_swatch + space::base + name, fontMetrics().height()};
}

QSize RunTag::minimumSizeHint() const {
  return {tag_swatch, fontMetrics().height()};
}

void RunTag::paintEvent(QPaintEvent*) {
  if (!run_) return;
  QPainter painter(this);
  if (color_ >= 0) paintSwatch(painter, QRect(0, height() / 2 - 5, tag_swatch, 11), color_, themeColors(palette()));
  painter.setPen(palette().color(QPalette::WindowText));
  const QRect label = rect().adjusted(tag_swatch + space::base, 0, 0, 0);
  painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, elidedRunName(name_, fontMetrics(), label.width()));
}

RunTag* addRunTag(QDockWidget* dock) {
  auto* tag = new RunTag(dock->titleBarWidget());
  static_cast<DockTitle*>(dock->titleBarWidget())->addTag(tag);
  return tag;
}

}  // namespace accrue::ui
