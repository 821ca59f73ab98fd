// SPDX-License-Identifier: GPL-3.0-or-later
#include "code_export_sheet.h"

#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSaveFile>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/file_dialogs.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "series/run_series.h"

namespace accrue::ui {

namespace {

/// Rows of the box that chooses the export.
constexpr int form_row = 0;
constexpr int run_row = 1;

}  // namespace

CodeExportSheet::CodeExportSheet(SpecDocument* document, PreflightRunner* preflight, FileDialogs* dialogs,
                                 QWidget* parent)
    : QDialog(parent),
      document_(document),
      preflight_(preflight),
      dialogs_(dialogs),
      source_(new QComboBox(this)),
      target_(new QComboBox(this)),
      verdict_(new QLabel(this)),
      missing_(new QListWidget(this)),
      text_(new QPlainTextEdit(this)),
      save_(new QPushButton(tr("&Save\u2026"), this)),
      copy_(new QPushButton(tr("&Copy"), this)) {
  setObjectName(QStringLiteral("codeExportSheet"));
  setWindowTitle(tr("Export to code"));
  source_->setObjectName(QStringLiteral("exportSource"));
  source_->setAccessibleName(tr("What is exported"));
  // The name of a run may be longer than the sheet is wide.
  source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  source_->setMinimumContentsLength(28);
  source_->addItem(tr("The set-up in the form"));
  auto* source_label = new QLabel(tr("&Export"), this);
  source_label->setBuddy(source_);
  for (std::size_t i = 0; i < code_targets().size(); ++i)
    target_->addItem(fromView(title(static_cast<CodeTarget>(i))), static_cast<int>(i));
  target_->setCurrentIndex(static_cast<int>(CodeTarget::pytorch));
  target_->setObjectName(QStringLiteral("exportTarget"));
  target_->setAccessibleName(tr("Tool"));
  auto* label = new QLabel(tr("&for"), this);
  label->setBuddy(target_);
  verdict_->setObjectName(QStringLiteral("exportVerdict"));
  verdict_->setWordWrap(true);
  missing_->setObjectName(QStringLiteral("exportMissing"));
  missing_->setAccessibleName(tr("Not carried over"));
  missing_->setWordWrap(true);
  missing_->setSelectionMode(QAbstractItemView::NoSelection);
  text_->setObjectName(QStringLiteral("exportText"));
  text_->setAccessibleName(tr("Exported text"));
  text_->setReadOnly(true);
  text_->setTabChangesFocus(true);
  text_->setLineWrapMode(QPlainTextEdit::NoWrap);
  text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  save_->setObjectName(QStringLiteral("exportSave"));
  save_->setDefault(true);
  copy_->setObjectName(QStringLiteral("exportCopy"));
  auto* close = new QPushButton(tr("C&lose"), this);
  auto* top = new QHBoxLayout;
  top->addWidget(source_label);
  top->addWidget(source_, 1);
  top->addWidget(label);
  top->addWidget(target_);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch(1);
  for (QPushButton* button : {copy_, save_, close}) buttons->addWidget(button);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(space::page, space::page, space::page, space::page);
  column->setSpacing(2 * space::base);
  column->addLayout(top);
  column->addWidget(verdict_);
  column->addWidget(missing_);
  column->addWidget(text_, 1);
  column->addLayout(buttons);
  resize(820, 640);
  connect(source_, &QComboBox::currentIndexChanged, this, &CodeExportSheet::showCode);
  connect(target_, &QComboBox::currentIndexChanged, this, &CodeExportSheet::showCode);
  connect(preflight_, &PreflightRunner::finished, this, [this] {
    if (!isOfRun()) showCode();
  });
  connect(save_, &QPushButton::clicked, this, &CodeExportSheet::save);
  connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(text_->toPlainText()); });
  connect(close, &QPushButton::clicked, this, &QDialog::close);
  showCode();
}

void CodeExportSheet::offer(RunSeries* run, bool choose) {
  run_ = run && run->plan() ? run : nullptr;
  {
    const QSignalBlocker once(source_);
    source_->removeItem(run_row);
    if (run_) source_->addItem(tr("The run \u201C%1\u201D").arg(run_->name()));
    source_->setCurrentIndex(run_ && choose ? run_row : form_row);
  }
  showCode();
}

bool CodeExportSheet::isOfRun() const {
  return run_ && source_->currentIndex() == run_row;
}

void CodeExportSheet::showCode() {
  source_->setToolTip(source_->currentText());
  const auto target = static_cast<CodeTarget>(target_->currentData().toInt());
  code_.reset();
  QString verdict = tr("This spec cannot be planned yet: fix the fields marked in Set-up first.");
  if (const std::optional<RunPlan>& plan = isOfRun() ? run_->plan() : preflight_->result().plan) {
    if (auto code = export_code(*plan, target))
      code_ = std::move(*code);
    else
      verdict =
          tr("%1 cannot take this spec. %2").arg(target_->currentText(), QString::fromStdString(code.error().text()));
  }
  missing_->clear();
  if (code_)
    for (const NotCarried& each : code_->not_carried) missing_->addItem(QString::fromStdString(each.text()));
  missing_->setVisible(missing_->count() > 0);
  // As high as its contents, within limits.
  int height = 2 * missing_->frameWidth() + space::base;
  for (int row = 0; row < std::min(missing_->count(), 8); ++row) height += missing_->sizeHintForRow(row);
  missing_->setFixedHeight(height);
  if (code_) verdict = tr("Everything that the spec sets is carried over.");
  if (missing_->count() == 1) verdict = tr("One setting cannot be carried over, or means something else there:");
  if (missing_->count() > 1)
    verdict = tr("%n settings cannot be carried over, or mean something else there:", nullptr, missing_->count());
  verdict_->setText(verdict);
  text_->setPlainText(code_ ? QString::fromStdString(code_->text) : QString());
  save_->setEnabled(code_.has_value());
  copy_->setEnabled(code_.has_value());
}

void CodeExportSheet::save() {
  if (!code_) return;
  const std::filesystem::path base = isOfRun() ? run_->plan()->base_dir : document_->baseDir();
  const QString suggested =
      QDir(QString::fromStdString(base.string())).filePath(QString::fromStdString(code_->file_name));
  const QString suffix = suggested.section(QLatin1Char('.'), -1);
  const QString name = dialogs_->exportFile(this, suggested, tr("%1 file (*.%1)").arg(suffix));
  if (name.isEmpty()) return;
  if (const auto named = check_file_name(*code_, std::filesystem::path(name.toStdString())); !named) {
    verdict_->setText(QString::fromStdString(named.error().text()));
    return;
  }
  const QByteArray bytes = QByteArray::fromStdString(code_->text);
  QSaveFile file(name);
  if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit())
    verdict_->setText(tr("Saved as %1.").arg(QDir::toNativeSeparators(name)));
  else
    verdict_->setText(tr("%1 could not be written: %2").arg(name, file.errorString()));
}

}  // namespace accrue::ui
