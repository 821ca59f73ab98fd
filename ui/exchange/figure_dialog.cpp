// SPDX-License-Identifier: GPL-3.0-or-later
#include "figure_dialog.h"

#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <utility>

namespace accrue::ui {

namespace {

constexpr double least_side = 40.0;  // millimetres
constexpr double largest_side = 420.0;
constexpr double least_font = 4.0;  // points
constexpr double largest_font = 24.0;

QDoubleSpinBox* box(const char* name, const QString& says, const QString& unit, double low, double high, double value,
                    QWidget* parent) {
  auto* box = new QDoubleSpinBox(parent);
  box->setObjectName(QLatin1String(name));
  box->setAccessibleName(says);
  box->setRange(low, high);
  box->setDecimals(1);
  box->setSuffix(unit);
  box->setValue(value);
  return box;
}

}  // namespace

FigureDialog::FigureDialog(const FigureSize& size, FigureCheck check, QWidget* parent)
    : QDialog(parent),
      check_(std::move(check)),
      width_(box("figureWidth", tr("Width"), tr(" mm"), least_side, largest_side, size.widthMm, this)),
      height_(box("figureHeight", tr("Height"), tr(" mm"), least_side, largest_side, size.heightMm, this)),
      font_(box("figureFont", tr("Font size"), tr(" pt"), least_font, largest_font, size.fontPoints, this)),
      problem_(new QLabel(this)) {
  setObjectName(QStringLiteral("figureDialog"));
  setWindowTitle(tr("Export plots"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  choose_ = buttons->addButton(tr("Choose a file…"), QDialogButtonBox::AcceptRole);
  choose_->setDefault(true);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* limits = new QLabel(tr("A side has %1 to %2 mm, the text %3 to %4 pt.")
                                .arg(least_side)
                                .arg(largest_side)
                                .arg(least_font)
                                .arg(largest_font),
                            this);
  limits->setForegroundRole(QPalette::PlaceholderText);
  auto* form = new QFormLayout(this);
  form->addRow(tr("&Width"), width_);
  form->addRow(tr("&Height"), height_);
  form->addRow(tr("&Font size"), font_);
  form->addRow(limits);
  problem_->setObjectName(QStringLiteral("figureProblem"));
  problem_->setWordWrap(true);
  problem_->setMinimumWidth(60 * problem_->fontMetrics().averageCharWidth());
  problem_->setMinimumHeight(3 * problem_->fontMetrics().lineSpacing());  // the boxes do not move when it appears
  form->addRow(problem_);
  form->addRow(buttons);
  for (QDoubleSpinBox* box : {width_, height_, font_})
    connect(box, &QDoubleSpinBox::valueChanged, this, &FigureDialog::showProblem);
  showProblem();
  width_->selectAll();  // it has the focus: typing replaces the number
}

void FigureDialog::showProblem() {
  const QString problem = check_(size());
  problem_->setText(problem);
  choose_->setEnabled(problem.isEmpty());
  choose_->setToolTip(problem);
}

FigureSize FigureDialog::size() const {
  return {width_->value(), height_->value(), font_->value()};
}

}  // namespace accrue::ui
