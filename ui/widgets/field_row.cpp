// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_row.h"

#include <QCoreApplication>
#include <QGridLayout>
#include <QLabel>
#include <QWidget>
#include <algorithm>
#include <utility>

#include "field_editor.h"
#include "finding_note.h"
#include "models/run_text.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

QString systemName(std::string_view system) {
  if (system == "accelerate") return QStringLiteral("Accelerate");
  if (system == "deepspeed") return QStringLiteral("DeepSpeed");
  if (system == "colossalai") return QStringLiteral("Colossal-AI");
  if (system == "mmengine") return QStringLiteral("MMEngine");
  if (system == "megatron") return QStringLiteral("Megatron-LM");
  if (system == "lightning") return QStringLiteral("Lightning");
  if (system == "pytorch" || system == "torch") return QStringLiteral("PyTorch");
  if (system == "transformers") return QStringLiteral("Transformers");
  return fromView(system);
}

/// A name of several words may be broken between them.
QString breakable(QString name) {
  return name.replace(QLatin1Char('_'), QStringLiteral("_\u200B"));
}

}  // namespace

QString aliasText(const FieldAlias& alias) {
  //: %1 is an option's name in the tool %2
  return QCoreApplication::translate("FieldRow", "%1 in %2").arg(fromView(alias.name), systemName(alias.system));
}

FieldRow::FieldRow(const SpecField& field, QGridLayout* grid, QWidget* parent)
    : QObject(parent),
      field_(field),
      label_(new QLabel(breakable(fromView(field.label)), parent)),
      editor_(FieldEditor::create(field, parent)),
      unit_(new QLabel(fromView(field.unit), parent)),
      note_(new FindingNote(parent)),
      found_as_(new QLabel(parent)),
      remark_(new QLabel(parent)) {
  const int row = grid->rowCount();
  label_->setWordWrap(true);
  label_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  grid->addWidget(label_, row, 0);
  // A choice is as wide as its longest name; numbers share one width.
  const bool wide = field.type == FieldType::choice && field.unit.empty();
  grid->addWidget(editor_->widget(), row, 1, 1, wide ? 2 : 1);
  grid->addWidget(unit_, row, 2, Qt::AlignLeft | Qt::AlignVCenter);
  grid->addWidget(found_as_, row + 1, 1, 1, 2);
  grid->addWidget(note_, row + 2, 0, 1, 3);
  grid->addWidget(remark_, row + 3, 1, 1, 2);
  label_->setBuddy(editor_->widget());
  label_->setObjectName(QStringLiteral("label.%1").arg(fromView(field.key)));
  note_->setObjectName(QStringLiteral("finding.%1").arg(fromView(field.key)));
  unit_->setForegroundRole(QPalette::PlaceholderText);
  unit_->setFont(textFont(TextSize::small));
  found_as_->setForegroundRole(QPalette::PlaceholderText);
  found_as_->setFont(textFont(TextSize::small));
  found_as_->setWordWrap(true);
  found_as_->hide();
  remark_->setObjectName(QStringLiteral("remark.%1").arg(fromView(field.key)));
  remark_->setForegroundRole(QPalette::PlaceholderText);
  remark_->setFont(textFont(TextSize::small));
  remark_->setWordWrap(true);
  remark_->hide();
  const QString tip = toolTip();
  label_->setToolTip(tip);
  editor_->widget()->setToolTip(tip);
  connect(editor_, &FieldEditor::edited, this, [this](const SpecValue& value) { Q_EMIT edited(field_, value); });
  connect(editor_, &FieldEditor::problemChanged, this, [this](const QString& problem) {
    const bool turned = problem.isEmpty() != problem_.isEmpty();
    problem_ = problem;
    showNotes();
    if (turned) Q_EMIT textRejectedChanged(isTextRejected());
  });
  connect(note_, &FindingNote::fixRequested, this,
          [this](const QString& value) { Q_EMIT fixRequested(field_, value); });
}

QWidget* FieldRow::editorWidget() const {
  return editor_->widget();
}

void FieldRow::showSpec(const RunSpec& spec) {
  SpecValue value = field_.get(spec);
  if (isTextRejected() && value == shown_) return;
  shown_ = std::move(value);
  editor_->show(spec);
}

void FieldRow::discardText(const RunSpec& spec) {
  if (isTextRejected()) editor_->show(spec);
}

void FieldRow::setFindings(std::vector<Finding> findings) {
  findings_ = std::move(findings);
  showNotes();
}

bool FieldRow::needsAttention() const {
  return !problem_.isEmpty() || std::any_of(findings_.begin(), findings_.end(),
                                            [](const Finding& finding) { return finding.severity != Severity::note; });
}

void FieldRow::showNotes() {
  std::vector<Finding> notes = findings_;
  if (!problem_.isEmpty()) {
    Finding typed;
    typed.message = problem_.toStdString();
    notes = {typed};
  }
  note_->setFindings(visible_ ? notes : std::vector<Finding>{});
  editor_->widget()->setAccessibleDescription(notes.empty() ? fromView(field_.help) : note_->text());
}

void FieldRow::setFoundAs(const QString& name) {
  found_as_->setText(name);
  found_as_->setVisible(visible_ && !name.isEmpty());
}

void FieldRow::setRemark(const QString& text, bool idle) {
  remark_->setText(text);
  remark_->setVisible(visible_ && !text.isEmpty());
  label_->setForegroundRole(idle ? QPalette::PlaceholderText : QPalette::WindowText);
}

void FieldRow::setFixed(bool fixed) {
  editor_->widget()->setEnabled(!fixed);
}

void FieldRow::setVisible(bool visible) {
  visible_ = visible;
  label_->setVisible(visible);
  editor_->widget()->setVisible(visible);
  unit_->setVisible(visible);
  found_as_->setVisible(visible && !found_as_->text().isEmpty());
  remark_->setVisible(visible && !remark_->text().isEmpty());
  showNotes();
}

QString FieldRow::toolTip() const {
  QString text = QStringLiteral("<p>%1</p>").arg(fromView(field_.help).toHtmlEscaped());
  for (const FieldAlias& alias : field_.aliases) text += tr("<p>Called %1</p>").arg(aliasText(alias).toHtmlEscaped());
  return text + QStringLiteral("<p><code>%1</code></p>").arg(fromView(field_.key).toHtmlEscaped());
}

}  // namespace accrue::ui
