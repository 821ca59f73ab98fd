// SPDX-License-Identifier: GPL-3.0-or-later
// Number formats of plots: thin spaces between groups of three, SI steps for large counts, powers of ten for small
// rates, a true minus sign.
#pragma once

#include <QChar>
#include <QString>
#include <cstdint>

namespace accrue::ui {

inline constexpr QChar thinSpace{0x2009};
inline constexpr QChar minusSign{0x2212};

/// Formats a value at the cursor: "3.0×10⁻⁴", "0.012", "2.311", "1 204", "1.2 M".
QString valueText(double value, int significant = 4);
/// Formats as many digits as the value has, up to a limit: "0.95475", "2.04", "1.06×10⁻²⁸".
QString shortText(double value, int significant);
/// Formats a count on an axis or in a badge: "950", "24 000", "1.2 M", "3 G".
QString countText(double count);
/// "3.0×10⁻⁴".
QString powerText(double mantissa, int exponent, int decimals);
/// "2¹⁶".
QString powerOfTwoText(int exponent);
/// Formats seconds on an axis: "12.5", and "2:05" or "1:02:05" from two minutes on.
QString durationShort(double seconds);
/// Label of a tick at `value` on an axis with ticks `step` apart.
QString tickText(double value, double step);
/// Formats a duration: "812 µs", "2.1 ms", "1.24 s".
QString spanText(double seconds);
/// 1 234 567 with thin spaces (four digits have none).
QString groupedNumber(std::int64_t value);
/// "3.2 MiB"
QString bytesText(std::int64_t bytes);
/// "1 min 20 s"
QString durationText(double seconds);

}  // namespace accrue::ui
