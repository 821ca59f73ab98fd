// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_notes_sheet.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QVBoxLayout>

#include "kit/theme.h"
#include "run_notebook.h"

namespace accrue::ui {

RunNotesSheet::RunNotesSheet(RunNotebook* notebook, QWidget* parent)
    : QDialog(parent),
      notebook_(notebook),
      name_(new QLineEdit(this)),
      tags_(new QLineEdit(this)),
      star_(new QCheckBox(tr("Starred"), this)),
      text_(new QPlainTextEdit(this)) {
  setObjectName(QStringLiteral("runNotesSheet"));
  name_->setObjectName(QStringLiteral("runNotesName"));
  name_->setMinimumWidth(fontMetrics().averageCharWidth() * 32);  // the name of an unnamed run
  tags_->setObjectName(QStringLiteral("runNotesTags"));
  star_->setObjectName(QStringLiteral("runNotesStar"));
  text_->setObjectName(QStringLiteral("runNotesText"));
  text_->setAccessibleName(tr("Notes"));
  text_->setTabChangesFocus(true);
  tags_->setPlaceholderText(tr("baseline, long warm-up"));
  tags_->setToolTip(tr("Separated by commas. The filter of the runs finds a tag by #tag."));
  auto* form = new QFormLayout;
  form->setHorizontalSpacing(space::inGroup);
  form->setVerticalSpacing(space::inGroup);
  form->addRow(tr("Name"), name_);
  form->addRow(tr("Tags"), tags_);
  form->addRow(QString(), star_);
  form->addRow(tr("Notes"), text_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::page, space::page, space::page, space::betweenGroups);
  layout->setSpacing(space::betweenGroups);
  layout->addLayout(form);
  layout->addWidget(buttons);
  resize(440, 320);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(name_, &QLineEdit::textEdited, this, &RunNotesSheet::keep);
  connect(tags_, &QLineEdit::textEdited, this, &RunNotesSheet::keep);
  connect(star_, &QCheckBox::toggled, this, &RunNotesSheet::keep);
  connect(text_, &QPlainTextEdit::textChanged, this, &RunNotesSheet::keep);
}

void RunNotesSheet::setRun(RunSeries* run) {
  const QScopedValueRollback guard(filling_, true);
  run_ = run;
  if (!run) {
    close();
    return;
  }
  const RunNotes& notes = run->notes();
  setWindowTitle(tr("Notes on %1").arg(run->name()));
  name_->setText(notes.name);
  name_->setPlaceholderText(notes.name.isEmpty() ? run->givenName() : QString());
  tags_->setText(notes.tags.join(QStringLiteral(", ")));
  star_->setChecked(notes.starred);
  text_->setPlainText(notes.text);
}

void RunNotesSheet::keep() {
  if (filling_ || !run_) return;
  const QString name = name_->text().trimmed();
  const RunNotes& before = run_->notes();
  RunNotes notes{.name = name,
                 .text = text_->toPlainText(),
                 .tags = {},
                 .starred = star_->isChecked(),
                 .called = name == before.name ? before.called : QString()};
  for (const QString& tag : tags_->text().split(QLatin1Char(','))) {
    const QString word = tag.simplified();
    if (!word.isEmpty() && !notes.tags.contains(word)) notes.tags << word;
  }
  notebook_->setNotes(run_, notes);
}

}  // namespace accrue::ui
