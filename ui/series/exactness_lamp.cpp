// SPDX-License-Identifier: GPL-3.0-or-later
#include "exactness_lamp.h"

#include "accrue/run/events/lamp.h"
#include "kit/number_text.h"
#include "kit/text.h"

namespace accrue::ui {

void ExactnessLamp::take(const accrue::ExactnessCheck& check) {
  if (!checks_.empty() && checks_.back().update >= check.update) return;
  checks_.push({check.update, lightOf(check)});
  ++count(lightOf(check));
  recalled_.reset();
  if (const auto* before = worst(); before && accrue::worst_of({*before, check})->update == before->update) return;
  worsts_.push_back(check);
  if (worsts_.size() > mostKept) worsts_.erase(worsts_.begin() + 1);
}

void ExactnessLamp::rewind(std::int64_t update) {
  std::size_t kept = checks_.size();
  for (; kept > 0 && checks_[kept - 1].update > update; --kept) --count(checks_[kept - 1].light);
  checks_.truncate(kept);
  std::erase_if(worsts_, [update](const accrue::ExactnessCheck& check) { return check.update > update; });
}

ExactnessLamp::Light ExactnessLamp::lightOf(const accrue::ExactnessCheck& check) {
  static_assert(static_cast<int>(Light::different) == static_cast<int>(accrue::LampLight::different));
  return static_cast<Light>(accrue::light_of(check));
}

const accrue::ExactnessCheck* ExactnessLamp::worst() const {
  if (worsts_.empty()) return recalled_ ? &*recalled_ : nullptr;
  return &worsts_.back();
}

ExactnessLamp::Light ExactnessLamp::light() const {
  const auto* check = worst();
  return check ? lightOf(*check) : Light::off;
}

QString ExactnessLamp::word() const {
  const auto* check = worst();
  if (!check) return {};
  const Light light = lightOf(*check);
  const QChar mark = light == Light::exact ? QChar(0x2713) : light == Light::close ? QLatin1Char('~') : QChar(0x2717);
  return QStringLiteral("%1 %2").arg(mark).arg(tr(std::string(accrue::lamp_word(*check)).c_str()));
}

QString ExactnessLamp::text() const {
  const auto* check = worst();
  if (!check) return tr("No window has been compared with one batch yet.");
  const Light light = lightOf(*check);
  const QString windows = checks_.empty() ? tr("the check that decides")
                                          : tr("%1 of %2 checked windows")
                                                .arg(groupedNumber(counts_[static_cast<std::size_t>(light)]),
                                                     groupedNumber(static_cast<std::int64_t>(checks_.size())));
  const QString figures =
      check->relative == 0.0
          ? tr("update %1 matches the single-batch gradient").arg(groupedNumber(check->update))
          : tr("update %1 differs from one batch by %2 (relative; tolerance %3)")
                .arg(groupedNumber(check->update), valueText(check->relative, 2), valueText(check->tolerance, 2));
  QString text = QStringLiteral("%1: %2; %3.").arg(word().mid(2), windows, figures);
  if (!check->message.empty()) text += QLatin1Char(' ') + QString::fromStdString(check->message);
  return text;
}

}  // namespace accrue::ui
