// SPDX-License-Identifier: GPL-3.0-or-later
#include "number_text.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "accrue/run/base/number_text.h"
#include "no_value.h"
#include "text.h"

namespace accrue::ui {

namespace {

QString superscript(int number) {
  static constexpr char16_t digits[] = u"⁰¹²³⁴⁵⁶⁷⁸⁹";
  QString result;
  if (number < 0) result += QChar(0x207B);
  const QString plain = QString::number(std::abs(number));
  for (const QChar digit : plain) result += QChar(digits[digit.digitValue()]);
  return result;
}

QString grouped(const QString& number) {
  return QString::fromStdString(accrue::grouped(number.toStdString(), QString(thinSpace).toStdString()));
}

QString fixed(double value, int decimals) {
  // Four digits are grouped too, so that all numbers of an axis look the same.
  QString text = grouped(QString::number(std::abs(value), 'f', std::clamp(decimals, 0, 12)));
  const bool isZero = std::none_of(text.cbegin(), text.cend(), [](QChar c) { return c >= u'1' && c <= u'9'; });
  if (value < 0.0 && !isZero) text.prepend(minusSign);
  return text;
}

QString withoutTrailingZeros(QString text) {
  if (!text.contains(QLatin1Char('.'))) return text;
  while (text.endsWith(QLatin1Char('0'))) text.chop(1);
  if (text.endsWith(QLatin1Char('.'))) text.chop(1);
  return text;
}

QString notFinite(double value) {
  if (std::isnan(value)) return QStringLiteral("NaN");
  return value > 0 ? QStringLiteral("+∞") : QString(minusSign) + QStringLiteral("∞");
}

int exponentOf(double value) {
  return value == 0.0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-12));
}

struct SiStep {
  double factor;
  QChar letter;
};

SiStep siStep(double value) {
  const double size = std::abs(value);
  if (size >= 1e12) return {1e12, QLatin1Char('T')};
  if (size >= 1e9) return {1e9, QLatin1Char('G')};
  if (size >= 1e6) return {1e6, QLatin1Char('M')};
  return {1.0, QChar()};
}

}  // namespace

QString powerText(double mantissa, int exponent, int decimals) {
  return fixed(mantissa, decimals) + QStringLiteral("×10") + superscript(exponent);
}

QString powerOfTwoText(int exponent) {
  return QLatin1Char('2') + superscript(exponent);
}

QString valueText(double value, int significant) {
  if (!isMeasured(value)) return QStringLiteral("\u2013");
  if (!std::isfinite(value)) return notFinite(value);
  if (value == 0.0) return QStringLiteral("0");
  const int exponent = exponentOf(value);
  if (exponent < -3 || exponent >= 9) {
    const double mantissa = value / std::pow(10.0, exponent);
    return powerText(mantissa, exponent, std::max(significant - 2, 1));
  }
  return fixed(value, std::max(significant - 1 - exponent, 0));
}

QString shortText(double value, int significant) {
  if (!std::isfinite(value)) return notFinite(value);
  const QString text = QString::number(value, 'g', significant);
  const qsizetype power = text.indexOf(QLatin1Char('e'));
  const QString digits = power < 0 ? text : text.left(power);
  QString result = digits.startsWith(QLatin1Char('-')) ? minusSign + digits.mid(1) : digits;
  if (power >= 0) result += QStringLiteral("×10") + superscript(text.mid(power + 1).toInt());
  return result;
}

QString countText(double count) {
  if (!std::isfinite(count)) return notFinite(count);
  const SiStep step = siStep(count);
  if (step.letter.isNull())
    return withoutTrailingZeros(fixed(count, std::abs(count - std::round(count)) < 1e-9 ? 0 : 2));
  const double scaled = count / step.factor;
  const int decimals = std::abs(scaled) < 10.0 ? 2 : std::abs(scaled) < 100.0 ? 1 : 0;
  return withoutTrailingZeros(fixed(scaled, decimals)) + thinSpace + step.letter;
}

QString durationShort(double seconds) {
  if (!std::isfinite(seconds)) return notFinite(seconds);
  if (std::abs(seconds) < 120.0) return withoutTrailingZeros(fixed(seconds, std::abs(seconds) < 10.0 ? 2 : 1));
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const QString tail = QStringLiteral("%1").arg(whole % 60, 2, 10, QLatin1Char('0'));
  if (whole < 3600) return QStringLiteral("%1:%2").arg(whole / 60).arg(tail);
  return QStringLiteral("%1:%2:%3").arg(whole / 3600).arg(whole / 60 % 60, 2, 10, QLatin1Char('0')).arg(tail);
}

QString tickText(double value, double step) {
  if (!std::isfinite(value) || !(step > 0.0)) return {};
  if (std::abs(value) < step * 1e-6) return QStringLiteral("0");
  const int stepExponent = exponentOf(step);
  const int exponent = exponentOf(value);
  // One notation per axis: if its steps need powers, its other small ticks use them too.
  if (exponent < -3 || (stepExponent < -3 && exponent < 0)) {
    const double mantissa = value / std::pow(10.0, exponent);
    const int decimals = std::clamp(exponent - stepExponent, 0, 6);
    const double within = step / std::pow(10.0, stepExponent);
    const bool half = std::abs(within - std::round(within)) > 1e-6;
    return powerText(mantissa, exponent, decimals + (half ? 1 : 0));
  }
  if (exponent >= 6) {
    const SiStep si = siStep(value);
    const int decimals = std::clamp(exponentOf(si.factor) - stepExponent + 1, 0, 6);
    return withoutTrailingZeros(fixed(value / si.factor, decimals)) + thinSpace + si.letter;
  }
  const double within = step / std::pow(10.0, stepExponent);
  const bool half = std::abs(within - std::round(within)) > 1e-6;  // steps such as 2.5
  return fixed(value, std::max(-stepExponent, 0) + (half && stepExponent < 1 ? 1 : 0));
}

QString spanText(double seconds) {
  if (!std::isfinite(seconds)) return notFinite(seconds);
  const double size = std::abs(seconds);
  const auto text = [](double value) {
    return fixed(value, std::abs(value) < 10.0 ? 2 : std::abs(value) < 100.0 ? 1 : 0);
  };
  if (size < 1e-3) return text(seconds * 1e6) + thinSpace + QStringLiteral("µs");
  if (size < 1.0) return text(seconds * 1e3) + thinSpace + QStringLiteral("ms");
  return text(seconds) + thinSpace + QStringLiteral("s");
}

QString groupedNumber(std::int64_t value) {
  const QString digits = QString::number(value);
  return value > -10'000 && value < 10'000 ? digits : grouped(digits);
}

QString bytesText(std::int64_t bytes) {
  return QString::fromStdString(format_bytes(bytes));
}

QString durationText(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return tr("%1 s").arg(whole);
  if (whole < 3600) return tr("%1 min %2 s").arg(whole / 60).arg(whole % 60);
  return tr("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60);
}

}  // namespace accrue::ui
