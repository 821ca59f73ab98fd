// SPDX-License-Identifier: GPL-3.0-or-later
#include "iso_runs.h"

#include <utility>

#include "iso_runner.h"
#include "kit/number_text.h"

namespace accrue::ui {

QString wayText(const IsoWay& way) {
  QString ranks = way.ranks() == 1 ? IsoRuns::tr("1 rank") : IsoRuns::tr("%1 ranks").arg(way.ranks());
  if (way.tensor * way.pipeline > 1)
    //: Ranks along the data, tensor and pipeline axes
    ranks = IsoRuns::tr("%1 data, %2 tensor, %3 pipeline").arg(way.data).arg(way.tensor).arg(way.pipeline);
  //: One way to make the samples of an update; %3 is its ranks
  return IsoRuns::tr("micro %1 \u00D7 N %2 \u00D7 %3")
      .arg(groupedNumber(way.micro_batch), groupedNumber(way.steps), ranks);
}

IsoRuns::IsoRuns(SpecDocument* document, IsoRunner* plans, RunQueue* queue, MessageBar* bar, QObject* parent)
    : ComparedRuns(document, plans, queue, bar, parent), plans_(plans) {}

void IsoRuns::startWhere(std::function<bool(const IsoPlan&)> wanted) {
  wanted_ = std::move(wanted);
  start();
}

std::vector<ComparedRuns::Way> IsoRuns::ways() const {
  std::vector<Way> ways;
  if (!plans_->result()) return ways;
  for (const IsoPlan& each : *plans_->result())
    if (each.plan && wanted_ && wanted_(each)) ways.push_back({wayText(each.way), wayText(each.way), each.plan, {}});
  return ways;
}

}  // namespace accrue::ui
