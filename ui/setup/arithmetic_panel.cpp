// SPDX-License-Identifier: GPL-3.0-or-later
#include "arithmetic_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/plan/forecast.h"
#include "document/findings_model.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "series/run_text.h"
#include "window_preview.h"

namespace accrue::ui {

ArithmeticPanel::ArithmeticPanel(QWidget* parent)
    : QWidget(parent),
      line_(new QLabel(this)),
      checking_(new QLabel(tr("checking\u2026"), this)),
      warnings_(new QLabel(this)),
      details_(new QLabel(this)),
      edits_(new QLabel(this)),
      show_field_(new QPushButton(tr("Show the field"), this)),
      choose_libraries_(new QPushButton(tr("Choose plug-in libraries\u2026"), this)),
      preview_(new WindowPreview(this)) {
  line_->setObjectName(QStringLiteral("arithmeticLine"));
  details_->setObjectName(QStringLiteral("arithmeticDetails"));
  edits_->setObjectName(QStringLiteral("editsNotRun"));
  show_field_->setObjectName(QStringLiteral("showFieldButton"));
  choose_libraries_->setObjectName(QStringLiteral("chooseLibrariesButton"));
  preview_->setObjectName(QStringLiteral("windowPreview"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  layout->setSpacing(space::base);
  layout->addWidget(line_);
  layout->addWidget(warnings_);
  layout->addWidget(preview_);
  layout->addWidget(details_);
  layout->addWidget(show_field_, 0, Qt::AlignLeft);
  layout->addWidget(choose_libraries_, 0, Qt::AlignLeft);
  auto* bottom = new QHBoxLayout;
  bottom->addWidget(edits_, 1);
  bottom->addWidget(checking_, 0, Qt::AlignRight);
  layout->addLayout(bottom);
  checking_->setObjectName(QStringLiteral("arithmeticChecking"));
  checking_->setFont(textFont(TextSize::small));
  checking_->setForegroundRole(QPalette::PlaceholderText);
  // It appears and disappears with every key press, so its space is kept and nothing else moves.
  QSizePolicy keeps_room = checking_->sizePolicy();
  keeps_room.setRetainSizeWhenHidden(true);
  checking_->setSizePolicy(keeps_room);
  checking_->hide();
  warnings_->setObjectName(QStringLiteral("arithmeticWarnings"));
  warnings_->setFont(textFont(TextSize::small));
  warnings_->hide();
  for (QLabel* label : {line_, warnings_, details_, edits_}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  line_->setFont(textFont(TextSize::body, QFont::DemiBold));
  details_->setFont(textFont(TextSize::small));
  details_->setForegroundRole(QPalette::PlaceholderText);
  edits_->setFont(textFont(TextSize::small));
  for (QPushButton* button : {show_field_, choose_libraries_}) {
    button->setFont(textFont(TextSize::small));
    button->setAutoDefault(false);
    button->hide();
  }
  edits_->hide();
  connect(show_field_, &QPushButton::clicked, this, [this] { Q_EMIT fieldRequested(key_); });
  connect(choose_libraries_, &QPushButton::clicked, this, &ArithmeticPanel::librariesWanted);
}

void ArithmeticPanel::setLibrariesAtFault(bool at_fault) {
  choose_libraries_->setVisible(at_fault);
}

void ArithmeticPanel::showResult(const Preflight& result, const std::optional<PlanSketch>& sketch) {
  result_ = result;
  sketch_ = sketch;
  showWhatHolds();
}

void ArithmeticPanel::setChecking(bool checking) {
  checking_->setVisible(checking);
  line_->setForegroundRole(checking ? QPalette::PlaceholderText : QPalette::WindowText);
}

void ArithmeticPanel::setRejectedFields(const QStringList& keys) {
  if (keys == rejected_) return;
  rejected_ = keys;
  showWhatHolds();
}

void ArithmeticPanel::showWhatHolds() {
  if (!rejected_.isEmpty()) {
    showRejected();
  } else if (result_) {
    showWarnings(result_->findings);
    if (result_->plan && sketch_)
      showPlan(*result_->plan, *sketch_);
    else
      showError(result_->findings);
  }
  for (QLabel* label : {line_, details_}) label->setToolTip(label->text());  // a low panel cuts them
}

void ArithmeticPanel::showRejected() {
  const auto count = static_cast<int>(rejected_.size());
  const SpecField* field = find_field(rejected_.front().toStdString());
  const QString name = field ? fromView(field->label) : rejected_.front();
  line_->setText(count == 1   ? tr("%1 has no valid value").arg(name)
                 : count == 2 ? tr("%1 and one more field have no valid value").arg(name)
                              : tr("%1 and %2 more fields have no valid value").arg(name).arg(count - 1));
  details_->hide();
  preview_->hide();
  warnings_->hide();
  key_ = rejected_.front();
  show_field_->show();
}

void ArithmeticPanel::showWarnings(const std::vector<Finding>& findings) {
  const auto is_warning = [](const Finding& finding) { return finding.severity == Severity::warning; };
  const auto count = static_cast<int>(std::count_if(findings.begin(), findings.end(), is_warning));
  warnings_->setVisible(count > 0);
  if (count == 0) return;
  const QString first = findingSentence(*std::find_if(findings.begin(), findings.end(), is_warning));
  //: %2 is the first warning's sentence
  warnings_->setText(count == 1 ? tr("1 warning: %1").arg(first) : tr("%1 warnings: %2").arg(count).arg(first));
}

void ArithmeticPanel::showPlan(const RunPlan& plan, const PlanSketch& sketch) {
  // The first clause is the headline; the rest is shown below the picture that it explains.
  const QString arithmetic = QString::fromStdString(sketch.arithmetic);
  const qsizetype clause = arithmetic.indexOf(QLatin1String("; "));
  line_->setText(clause < 0 ? arithmetic : arithmetic.left(clause));
  const QString rest = clause < 0 ? QString() : arithmetic.mid(clause + 2);
  const QString memory =
      !cost_is_known(plan.spec)
          ? unknownCostText()
          : tr("About %1 of memory per rank, %2 of it activations; %3 sent per update by the rank that sends most")
                .arg(bytesText(plan.memory.total()), bytesText(plan.memory.activations),
                     bytesText(plan.wire_bytes_per_update));
  details_->setText(rest.isEmpty() ? memory : tr("%1\n%2").arg(rest, memory));
  details_->show();
  preview_->setSketch(sketch);
  preview_->show();
  show_field_->hide();
}

void ArithmeticPanel::showError(const std::vector<Finding>& findings) {
  const auto error = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.severity == Severity::error; });
  if (error == findings.end()) return;
  line_->setText(findingSentence(*error));
  const auto more = std::count_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.severity == Severity::error; }) -
                    1;
  details_->setText(tr("and %1 more to fix").arg(more));
  details_->setVisible(more > 0);
  preview_->hide();
  key_ = QString::fromStdString(error->key);
  show_field_->setVisible(!key_.isEmpty());
}

void ArithmeticPanel::setEditsNotRun(std::optional<int> edits, bool last_ran_another) {
  edits_->setVisible(edits.value_or(0) > 0);
  edits_->setText(last_ran_another ? tr("This spec has not been run since it was opened")
                  : edits == 1     ? tr("1 edit since the last run")
                                   : tr("%1 edits since the last run").arg(edits.value_or(0)));
}

QString ArithmeticPanel::text() const {
  return details_->isHidden() ? line_->text() : tr("%1. %2").arg(line_->text(), details_->text());
}

QString ArithmeticPanel::obstacle() const {
  const bool holds = rejected_.isEmpty() && (!result_ || result_->plan);
  return holds ? QString() : line_->text();
}

}  // namespace accrue::ui
