// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_row.h"

#include <QAction>
#include <QApplication>
#include <QCoreApplication>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScopedValueRollback>
#include <QWidget>
#include <algorithm>
#include <tuple>
#include <utility>

#include "field_editor.h"
#include "finding_note.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "series/run_text.h"

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

/// Lines of a row in its grid, from the first on.
enum Line { label_line, editor_line, found_line, note_line, remark_line, waiting_line, below_label_line, below_line };

/// Allows line breaks between the words of a name.
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
      grid_(grid),
      head_(grid->rowCount()),
      label_(new QLabel(breakable(fromView(field.label)), parent)),
      editor_(FieldEditor::create(field, parent)),
      unit_(new QLabel(fromView(field.unit), parent)),
      note_(new FindingNote(parent)),
      found_as_(new QLabel(parent)),
      remark_(new QLabel(parent)),
      waiting_(new QLabel(parent)) {
  label_->setWordWrap(true);
  // A choice is as wide as its longest name; numbers share one width.
  const bool wide = field.type == FieldType::choice && field.unit.empty();
  grid->addWidget(editor_->widget(), head_ + editor_line, 1, 1, wide ? 2 : 1);
  grid->addWidget(unit_, head_ + editor_line, 2, Qt::AlignLeft | Qt::AlignVCenter);
  grid->addWidget(found_as_, head_ + found_line, 1, 1, 2);
  grid->addWidget(note_, head_ + note_line, 0, 1, 3);
  grid->addWidget(remark_, head_ + remark_line, 1, 1, 2);
  grid->addWidget(waiting_, head_ + waiting_line, 1, 1, 2);
  grid->setRowMinimumHeight(head_ + below_line, 0);  // for addBelow()
  setStacked(false);
  label_->setBuddy(editor_->widget());
  label_->setObjectName(QStringLiteral("label.%1").arg(fromView(field.key)));
  note_->setObjectName(QStringLiteral("finding.%1").arg(fromView(field.key)));
  unit_->setForegroundRole(QPalette::PlaceholderText);
  unit_->setFont(textFont(TextSize::small));
  for (const auto& [line, name, role] : {std::tuple(found_as_, "foundAs.%1", QPalette::PlaceholderText),
                                         std::tuple(remark_, "remark.%1", QPalette::PlaceholderText),
                                         std::tuple(waiting_, "waiting.%1", QPalette::Link)}) {
    line->setObjectName(QString::fromLatin1(name).arg(fromView(field.key)));
    line->setForegroundRole(role);
    line->setFont(textFont(TextSize::small));
    line->setWordWrap(true);
    line->hide();
  }
  const QString tip = toolTip();
  label_->setToolTip(tip);
  editor_->widget()->setToolTip(tip);
  connect(editor_, &FieldEditor::edited, this, [this](const SpecValue& value) { Q_EMIT edited(field_, value); });
  connect(editor_, &FieldEditor::finished, this, &FieldRow::finished);
  connect(editor_, &FieldEditor::problemChanged, this, [this](const QString& problem) {
    const bool turned = problem.isEmpty() != problem_.isEmpty();
    problem_ = problem;
    showNotes();
    if (isTextRejected()) {
      const QScopedValueRollback guard(rejecting_, true);
      Q_EMIT textRejected(field_);
    }
    if (turned) Q_EMIT textRejectedChanged(isTextRejected());
  });
  connect(note_, &FindingNote::fixRequested, this, [this](const QString& value) {
    // The button disappears with its finding; the focus must not move to the next control.
    if (note_->isAncestorOf(QApplication::focusWidget())) editorWidget()->setFocus(Qt::OtherFocusReason);
    Q_EMIT fixRequested(field_, value);
  });
  connect(note_, &FindingNote::librariesWanted, this, &FieldRow::librariesWanted);
}

QWidget* FieldRow::editorWidget() const {
  return editor_->widget();
}

void FieldRow::showSpec(const RunSpec& spec) {
  SpecValue value = field_.get(spec);
  if (isTextRejected() && value == shown_) return;
  shown_ = std::move(value);
  if (!rejecting_) editor_->show(spec);
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

void FieldRow::setWaiting(const std::optional<std::string>& value_of_run) {
  waits_ = value_of_run.has_value();
  //: A field that was edited during a run; %1 is the value that the run has
  if (waits_)
    waiting_->setText(value_of_run->empty() ? tr("\u25CF for the next run")
                                            : tr("\u25CF for the next run; this one has %1")
                                                  .arg(inSwitchWords(&field_, QString::fromStdString(*value_of_run))));
  waiting_->setVisible(visible_ && waits_);
}

void FieldRow::addBelow(const QString& label, QWidget* control) {
  below_label_ = new QLabel(label, label_->parentWidget());
  below_label_->setContentsMargins(0, space::base, 0, 0);
  below_label_->setBuddy(control);
  below_ = control;
  grid_->addWidget(below_, head_ + below_line, 1, 1, 2);
  setStacked(stacked_);
}

void FieldRow::setStacked(bool stacked) {
  stacked_ = stacked;
  grid_->removeWidget(label_);
  grid_->addWidget(label_, head_ + (stacked ? label_line : editor_line), 0, 1, stacked ? 3 : 1);
  label_->setAlignment(stacked ? Qt::AlignLeft | Qt::AlignBottom : Qt::AlignRight | Qt::AlignVCenter);
  if (!below_label_) return;
  grid_->removeWidget(below_label_);
  grid_->addWidget(below_label_, head_ + (stacked ? below_label_line : below_line), 0, 1, stacked ? 3 : 1);
  below_label_->setAlignment(stacked ? Qt::AlignLeft | Qt::AlignBottom : Qt::AlignRight | Qt::AlignTop);
}

int FieldRow::leastWidth(int unit_width) const {
  const int editor = editor_->widget()->minimumSizeHint().width();
  const int below = below_ ? below_->minimumSizeHint().width() : 0;
  const bool wide = field_.type == FieldType::choice && field_.unit.empty();
  const int note = note_->isHidden() ? 0 : note_->minimumSizeHint().width();
  return std::max({wide ? editor : editor + space::inGroup + unit_width, below, note});
}

void FieldRow::setLocked(bool locked) {
  auto* line = editor_->widget()->findChild<QLineEdit*>();
  if (!lock_ && line && locked) {
    lock_ = line->addAction(themedIcon(QStringLiteral("lock")), QLineEdit::LeadingPosition);
    lock_->setToolTip(tr("The samples are kept: another number follows an edit of this one"));
  }
  if (lock_) lock_->setVisible(locked);
  editor_->widget()->updateGeometry();
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
  waiting_->setVisible(visible && waits_);
  if (below_) {
    below_label_->setVisible(visible);
    below_->setVisible(visible);
  }
  showNotes();
}

QString FieldRow::toolTip() const {
  QString text = QStringLiteral("<p>%1</p>").arg(fromView(field_.help).toHtmlEscaped());
  for (const FieldAlias& alias : field_.aliases) text += tr("<p>Called %1</p>").arg(aliasText(alias).toHtmlEscaped());
  return text + QStringLiteral("<p><code>%1</code></p>").arg(fromView(field_.key).toHtmlEscaped());
}

}  // namespace accrue::ui
