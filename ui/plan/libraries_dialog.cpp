// SPDX-License-Identifier: GPL-3.0-or-later
#include "libraries_dialog.h"

#include <QDateTime>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "document/library_probe.h"
#include "kit/file_dialogs.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

enum Column { library_column, registers_column, written_column, hash_column, column_count };

constexpr qsizetype shown_digits = 12;

/// Returns "custom_loss_function: focal, smooth", one line per field.
QString registered(const PluginFacts& library) {
  QStringList lines;
  std::string field;
  for (const PluginEntry& entry : library.entries) {
    QString name = QString::fromStdString(entry.name);
    if (entry.sizes)
      name += LibrariesDialog::tr(" (%L1 samples, %L2 for evaluation)")
                  .arg(entry.sizes->training + entry.sizes->validation)
                  .arg(entry.sizes->validation);
    if (entry.field == field)
      lines.back() += QStringLiteral(", %1").arg(name);
    else
      lines << QStringLiteral("%1: %2").arg(QString::fromStdString(entry.field), name);
    field = entry.field;
  }
  return lines.join(QLatin1Char('\n'));
}

/// Owner of the file, and time of writing.
QString written(const QFileInfo& file) {
  if (!file.exists()) return {};
  return QStringLiteral("%1\n%2").arg(file.owner(), QLocale().toString(file.lastModified(), QLocale::ShortFormat));
}

}  // namespace

LibrariesDialog::LibrariesDialog(const std::string& rank_program, LibraryQuestion question, FileDialogs* dialogs,
                                 QWidget* parent)
    : QDialog(parent),
      question_(std::move(question)),
      dialogs_(dialogs),
      probe_(std::make_shared<LibraryProbe>(rank_program)),
      rows_(question_.libraries),
      table_(new QTableWidget(0, column_count, this)),
      missing_(new QLabel(this)),
      add_(new QPushButton(tr("&Add\u2026"), this)),
      remove_(new QPushButton(tr("&Remove"), this)),
      renew_(new QPushButton(tr("&Use as it is now"), this)),
      buttons_(new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this)) {
  setObjectName(QStringLiteral("librariesDialog"));
  setWindowTitle(tr("Plug-in libraries"));
  auto* loads = new QLabel(tr("Each rank process loads these libraries and runs their code with your rights. To list "
                              "what they register, accrue-rank loads them in a process of its own. The studio never "
                              "loads them."),
                           this);
  loads->setObjectName(QStringLiteral("librariesLoadedBy"));
  loads->setWordWrap(true);
  table_->setObjectName(QStringLiteral("librariesTable"));
  table_->setAccessibleName(windowTitle());
  table_->setHorizontalHeaderLabels({tr("Library"), tr("Registers"), tr("Owner, written"), tr("SHA-256")});
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(library_column, QHeaderView::Stretch);
  table_->horizontalHeader()->setSectionResizeMode(registers_column, QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(true);
  missing_->setObjectName(QStringLiteral("librariesMissing"));
  missing_->setWordWrap(true);
  missing_->setTextFormat(Qt::PlainText);
  add_->setObjectName(QStringLiteral("addLibrary"));
  remove_->setObjectName(QStringLiteral("removeLibrary"));
  renew_->setObjectName(QStringLiteral("renewLibrary"));
  renew_->setToolTip(tr("Takes the file with its present contents, and asks accrue-rank what they register"));
  auto* row = new QHBoxLayout;
  for (QPushButton* button : {add_, remove_, renew_}) {
    button->setAutoDefault(false);
    row->addWidget(button);
  }
  row->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::page, space::page, space::page, space::betweenGroups);
  layout->setSpacing(space::betweenGroups);
  layout->addWidget(loads);
  layout->addWidget(table_, 1);
  layout->addLayout(row);
  layout->addWidget(missing_);
  layout->addWidget(buttons_);
  resize(960, 420);
  connect(add_, &QPushButton::clicked, this, &LibrariesDialog::add);
  connect(remove_, &QPushButton::clicked, this, &LibrariesDialog::remove);
  connect(renew_, &QPushButton::clicked, this, &LibrariesDialog::renew);
  connect(table_, &QTableWidget::itemSelectionChanged, this, &LibrariesDialog::showButtons);
  connect(buttons_, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons_, &QDialogButtonBox::rejected, this, &QDialog::reject);
  ask();
}

void LibrariesDialog::add() {
  const QString folder = rows_.empty() ? QString() : QFileInfo(QString::fromStdString(rows_.back().file)).path();
  const QString file = dialogs_->openFile(this, tr("Add a plug-in library"), folder,
                                          tr("Shared libraries (*.so *.so.*);;All files (*)"));
  if (file.isEmpty()) return;
  const QFileInfo place(file);
  std::string path = place.absoluteFilePath().toStdString();
  std::erase_if(rows_, [&path](const PluginRecord& row) { return row.file == path; });
  rows_.push_back({std::move(path), place.fileName().toStdString(), {}});
  ask();
}

void LibrariesDialog::remove() {
  rows_.erase(rows_.begin() + table_->currentRow());
  ask();
}

void LibrariesDialog::renew() {
  rows_[static_cast<std::size_t>(table_->currentRow())].sha256.clear();
  ask();
}

void LibrariesDialog::ask() {
  const int selected = table_->currentRow();
  facts_.clear();
  table_->setRowCount(static_cast<int>(rows_.size()));
  for (int row = 0; row < table_->rowCount(); ++row) {
    const QString file = QString::fromStdString(rows_[static_cast<std::size_t>(row)].file);
    const QStringList texts{file, tr("asking accrue-rank\u2026"), written(QFileInfo(file)), QString()};
    for (int column = 0; column < column_count; ++column)
      table_->setItem(row, column, new QTableWidgetItem(texts[column]));
  }
  if (!rows_.empty()) table_->selectRow(std::clamp(selected, 0, table_->rowCount() - 1));
  showButtons();
  jobs_.run([probe = probe_, rows = rows_] { return probe->describe(rows); },
            [this, request = ++request_](const std::vector<PluginFacts>& facts) {
              if (request == request_) show(facts);
            });
}

void LibrariesDialog::show(const std::vector<PluginFacts>& facts) {
  facts_ = facts;
  for (int row = 0; row < table_->rowCount(); ++row) {
    const PluginFacts& library = facts_[static_cast<std::size_t>(row)];
    rows_[static_cast<std::size_t>(row)].sha256 = library.sha256;
    const QString file = QString::fromStdString(library.file);
    const QString hash = QString::fromStdString(library.sha256);
    const bool unusable = !library.error.empty();
    table_->item(row, library_column)
        ->setText(QStringLiteral("%1\n%2").arg(QString::fromStdString(library.name), file));
    table_->item(row, library_column)->setToolTip(file);
    QTableWidgetItem* registers = table_->item(row, registers_column);
    registers->setText(unusable ? tr("Cannot be used: %1").arg(QString::fromStdString(library.error))
                                : registered(library));
    registers->setIcon(unusable ? stateIcon(RunState::failed) : QIcon());
    registers->setToolTip(registers->text());
    table_->item(row, hash_column)->setText(hash.left(shown_digits));
    table_->item(row, hash_column)->setToolTip(hash);
  }
  showButtons();
}

void LibrariesDialog::showButtons() {
  const bool described = facts_.size() == rows_.size();
  const int row = table_->currentRow();
  remove_->setEnabled(row >= 0);
  renew_->setEnabled(row >= 0 && described && !facts_[static_cast<std::size_t>(row)].error.empty());
  const QString missing = described ? question_.missing(facts_) : QString();
  missing_->setText(missing);
  missing_->setVisible(!missing.isEmpty());
  buttons_->button(QDialogButtonBox::Ok)->setEnabled(described && !(question_.whole && !missing.isEmpty()));
}

}  // namespace accrue::ui
