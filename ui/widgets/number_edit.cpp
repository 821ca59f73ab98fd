// SPDX-License-Identifier: GPL-3.0-or-later
#include "number_edit.h"

#include <QAction>
#include <QLineEdit>
#include <QRegularExpression>
#include <QScopedValueRollback>
#include <QStyle>
#include <QStyleOptionSpinBox>
#include <algorithm>
#include <cmath>
#include <limits>

#include "kit/text_scale.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

QString cleaned(const QString& text) {
  QString digits = text.trimmed();
  for (const QChar separator : {QChar(u' '), QChar(0x2009), QChar(0x202f), QChar(0x00a0), QChar(u'_')})
    digits.remove(separator);
  return digits;
}

/// The next value of the series 1, 2, 5 per decade, for reals that span many decades.
double nextOnScale(double value, int direction) {
  const double decade = std::pow(10.0, std::floor(std::log10(value) + 1e-9));
  const double digit = value / decade;
  constexpr double close = 1e-6;
  if (direction > 0) return decade * (digit < 2.0 - close ? 2.0 : digit < 5.0 - close ? 5.0 : 10.0);
  return decade * (digit > 5.0 + close ? 5.0 : digit > 2.0 + close ? 2.0 : digit > 1.0 + close ? 1.0 : 0.5);
}

}  // namespace

NumberEdit::NumberEdit(const SpecField& field, QWidget* parent) : QAbstractSpinBox(parent), field_(field) {
  setCorrectionMode(QAbstractSpinBox::CorrectToPreviousValue);
  setAlignment(Qt::AlignRight);
  setKeyboardTracking(true);
  setAccelerated(true);
  // Also for a text from assistive technology.
  connect(lineEdit(), &QLineEdit::textChanged, this, [this] {
    if (!showing_) Q_EMIT textEdited();
  });
}

void NumberEdit::setValue(const SpecValue& value) {
  if (const auto now = this->value(); now && *now == value) return;
  const QScopedValueRollback guard(showing_, true);
  lineEdit()->setText(QString::fromStdString(format_value(value)));
}

std::optional<SpecValue> NumberEdit::value() const {
  return parse(lineEdit()->text(), nullptr);
}

QString NumberEdit::problem() const {
  QString problem;
  parse(lineEdit()->text(), &problem);
  return problem;
}

void NumberEdit::setPlaceholder(const QString& text) {
  lineEdit()->setPlaceholderText(text);
}

std::optional<SpecValue> NumberEdit::parse(const QString& text, QString* problem) const {
  const auto refuse = [problem](const QString& why) {
    if (problem) *problem = why;
    return std::nullopt;
  };
  const QString digits = cleaned(text);
  if (digits.isEmpty()) {
    if (field_.optional) return SpecValue(std::monostate{});
    return refuse(tr("Enter a number"));
  }
  static const QRegularExpression written(QStringLiteral("^[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE]\\+?\\d+)?$"));
  bool ok = false;
  const double number = digits.toDouble(&ok);
  if (!ok && written.match(digits).hasMatch()) return refuse(tr("\"%1\" is too large").arg(text));
  if (!ok || !std::isfinite(number))
    return refuse(field_.type == FieldType::integer
                      ? tr("\"%1\" is not a whole number").arg(text)
                      : tr("\"%1\" is not a number; write it like 0.5 or 3e-4").arg(text));
  if (field_.type == FieldType::integer) {
    bool whole = false;
    std::int64_t count = digits.toLongLong(&whole);
    if (!whole && number == std::floor(number) && std::abs(number) < 9e15) {
      count = static_cast<std::int64_t>(number);
      whole = true;
    }
    if (!whole && number == std::floor(number) && !inRange(number)) return refuse(rangeText());
    if (!whole) return refuse(tr("\"%1\" is not a whole number").arg(text));
    if (!inRange(static_cast<double>(count))) return refuse(rangeText());
    return SpecValue(count);
  }
  if (!inRange(number)) return refuse(rangeText());
  return SpecValue(number);
}

bool NumberEdit::inRange(double value) const {
  const bool above = field_.open_minimum ? value > field_.minimum : value >= field_.minimum;
  return above && value <= field_.maximum;
}

QString NumberEdit::boundText(double bound) const {
  const bool whole = field_.type == FieldType::integer;
  return QString::fromStdString(format_value(whole ? SpecValue(static_cast<std::int64_t>(bound)) : SpecValue(bound)));
}

QString NumberEdit::rangeText() const {
  const bool has_minimum = std::isfinite(field_.minimum);
  const bool has_maximum = std::isfinite(field_.maximum);
  const QString least = has_minimum ? boundText(field_.minimum) : QString();
  if (!has_maximum)
    return field_.open_minimum ? tr("Must be above %1").arg(least) : tr("Must be at least %1").arg(least);
  const QString most = boundText(field_.maximum);
  if (!has_minimum) return tr("Must be at most %1").arg(most);
  return field_.open_minimum ? tr("Must be above %1, and at most %2").arg(least, most)
                             : tr("Must be from %1 to %2").arg(least, most);
}

QSize NumberEdit::minimumSizeHint() const {
  constexpr int digits = 6;
  QStyleOptionSpinBox option;
  initStyleOption(&option);
  const int text = fontMetrics().horizontalAdvance(QString(digits, QLatin1Char('0')));
  const auto actions = lineEdit()->actions();
  const bool locked = std::ranges::any_of(actions, &QAction::isVisible);
  const QSize contents(text + 2 * space::base + (locked ? iconSide() + space::base : 0),
                       lineEdit()->minimumSizeHint().height());
  return style()->sizeFromContents(QStyle::CT_SpinBox, &option, contents, this);
}

QSize NumberEdit::sizeHint() const {
  return QAbstractSpinBox::sizeHint().expandedTo(minimumSizeHint());
}

QValidator::State NumberEdit::validate(QString&, int&) const {
  return QValidator::Acceptable;  // the note under the field reports the problem
}

double NumberEdit::stepped(double value, int steps) const {
  const int direction = steps > 0 ? 1 : -1;
  double next = value;
  for (int i = 0; i < std::abs(steps); ++i) {
    if (field_.type == FieldType::integer) {
      next += direction;
    } else if (std::isfinite(field_.maximum) && field_.maximum <= 1.0) {
      next = std::round((next + direction * 0.05) * 100.0) / 100.0;
    } else if (next > 0.0) {
      next = nextOnScale(next, direction);
    } else {
      next = direction > 0 ? 1.0 : next;
    }
  }
  return next;
}

void NumberEdit::stepBy(int steps) {
  const auto now = value();
  double number = std::isfinite(field_.minimum) ? std::max(field_.minimum, 0.0) : 0.0;
  if (now) {
    if (const auto* count = std::get_if<std::int64_t>(&*now)) number = static_cast<double>(*count);
    if (const auto* real = std::get_if<double>(&*now)) number = *real;
  }
  const double next = stepped(number, steps);
  if (!inRange(next) || next == number) return;
  Q_EMIT editingFinished();  // the earlier typing
  const SpecValue value =
      field_.type == FieldType::integer ? SpecValue(static_cast<std::int64_t>(next)) : SpecValue(next);
  lineEdit()->setText(QString::fromStdString(format_value(value)));
  lineEdit()->selectAll();
}

double NumberEdit::number() const {
  const auto now = value();
  if (!now) return 0.0;
  const auto* count = std::get_if<std::int64_t>(&*now);
  const auto* real = std::get_if<double>(&*now);
  return count ? static_cast<double>(*count) : real ? *real : 0.0;
}

void NumberEdit::setNumber(double number) {
  const bool whole = field_.type == FieldType::integer;
  lineEdit()->setText(
      QString::fromStdString(format_value(whole ? SpecValue(static_cast<std::int64_t>(number)) : SpecValue(number))));
}

QAbstractSpinBox::StepEnabled NumberEdit::stepEnabled() const {
  return StepUpEnabled | StepDownEnabled;
}

}  // namespace accrue::ui
