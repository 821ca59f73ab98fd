// SPDX-License-Identifier: GPL-3.0-or-later
#include "text_editor.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QScopedValueRollback>

#include "accrue/run/fields/spec_io.h"
#include "document/findings_model.h"
#include "kit/theme.h"

namespace accrue::ui {

TextEditor::TextEditor(const SpecField& field, QWidget* parent)
    : FieldEditor(parent), field_(field), edit_(new QLineEdit(parent)) {
  if (field.optional) edit_->setPlaceholderText(tr("derived"));
  // Also for a text from assistive technology.
  connect(edit_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (!showing_) takeText(text);
  });
  connect(edit_, &QLineEdit::editingFinished, this, &TextEditor::finished);
  if (field.key == "data.path" || field.key == "data.validation_path") {
    edit_->setPlaceholderText(tr("choose a file"));
    QAction* browse = edit_->addAction(themedIcon(QStringLiteral("folder")), QLineEdit::TrailingPosition);
    browse->setObjectName(QStringLiteral("browseDataAction"));
    browse->setText(tr("Browse for the data file"));
    browse->setToolTip(browse->text());
    connect(browse, &QAction::triggered, this, &TextEditor::browse);
  }
}

QWidget* TextEditor::widget() const {
  return edit_;
}

QString TextEditor::textOf(const SpecValue& value) const {
  if (const auto* text = std::get_if<std::string>(&value)) return QString::fromStdString(*text);
  return QString::fromStdString(format_value(value));
}

void TextEditor::show(const RunSpec& spec) {
  shown_ = spec;
  const QString text = textOf(field_.get(spec));
  // While the user types, "[1,2" and "[1,  2]" must not be rewritten under the cursor.
  if (!edit_->hasFocus() || !edit_->isModified() || rejected_) {
    const QScopedValueRollback guard(showing_, true);
    edit_->setText(text);
  }
  rejected_ = false;
  edit_->setModified(false);
  Q_EMIT problemChanged(QString());
}

/// A list of names may be typed without brackets and quotes: "a, b" is ["a", "b"].
QString TextEditor::listText(const QString& text) const {
  if (field_.type != FieldType::texts || text.trimmed().startsWith(QLatin1Char('['))) return text;
  std::vector<std::string> names;
  for (const QString& name : text.split(QLatin1Char(','), Qt::SkipEmptyParts))
    if (QString plain = name.trimmed(); !plain.isEmpty()) names.push_back(plain.remove(QLatin1Char('"')).toStdString());
  return QString::fromStdString(format_value(SpecValue(names)));
}

void TextEditor::takeText(const QString& text) {
  if (field_.type == FieldType::text) {
    Q_EMIT edited(SpecValue(text.toStdString()));
    return;
  }
  if (text.trimmed().isEmpty() && field_.optional) {
    rejected_ = false;
    Q_EMIT problemChanged(QString());
    Q_EMIT edited(SpecValue(std::monostate{}));
    return;
  }
  RunSpec probe = shown_;
  std::vector<Finding> findings;
  set_field(probe, std::string(field_.key) + "=" + listText(text).toStdString(), findings);
  rejected_ = has_errors(findings);
  if (rejected_) {
    Q_EMIT problemChanged(findingText(findings.front()));
    return;
  }
  Q_EMIT problemChanged(QString());
  Q_EMIT edited(field_.get(probe));
}

void TextEditor::browse() {
  const QString start = QFileInfo(edit_->text()).absolutePath();
  const QString file = QFileDialog::getOpenFileName(edit_, tr("Training data"), start);
  if (file.isEmpty()) return;
  edit_->setText(file);
}

}  // namespace accrue::ui
