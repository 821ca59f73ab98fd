// SPDX-License-Identifier: GPL-3.0-or-later
#include "bundle_dialog.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>
#include <utility>

namespace accrue::ui {

namespace {

QCheckBox* box(const char* name, const QString& text, bool on, QWidget* parent) {
  auto* box = new QCheckBox(text, parent);
  box->setObjectName(QLatin1String(name));
  box->setChecked(on);
  return box;
}

}  // namespace

BundleDialog::BundleDialog(QList<BundleRow> rows, QWidget* parent)
    : QDialog(parent),
      rows_(std::move(rows)),
      runs_(new QListWidget(this)),
      spec_(box("bundleSpec", tr("The &spec on the form"), true, this)),
      notes_(box("bundleNotes", tr("&Notes, tags and names of the runs"), true, this)),
      weights_(box("bundleWeights", {}, false, this)) {
  setObjectName(QStringLiteral("bundleDialog"));
  setWindowTitle(tr("Export a bundle"));
  auto* label = new QLabel(tr("&Runs that go along, with all their events:"), this);
  label->setBuddy(runs_);
  runs_->setObjectName(QStringLiteral("bundleRuns"));
  runs_->setAccessibleName(tr("Runs that go along"));
  for (const BundleRow& row : rows_) {
    auto* item = new QListWidgetItem(row.name, runs_);
    item->setToolTip(row.folder);
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(row.chosen ? Qt::Checked : Qt::Unchecked);
  }
  if (runs_->count() > 0) runs_->setCurrentRow(0);
  auto* paths = new QLabel(tr("The records say where the data of each run are and on which computer it trained. "
                              "Checkpoints are left out."),
                           this);
  paths->setWordWrap(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  accept_ = buttons->addButton(tr("Choose a file…"), QDialogButtonBox::AcceptRole);
  accept_->setDefault(true);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(runs_, &QListWidget::itemChanged, this, &BundleDialog::showWeights);
  connect(spec_, &QCheckBox::toggled, this, &BundleDialog::showWeights);
  auto* top = new QHBoxLayout;
  top->addWidget(label, 1);
  const auto add_button = [&](const char* name, const QString& text, Qt::CheckState state) {
    auto* button = new QPushButton(text, this);
    button->setObjectName(QLatin1String(name));
    button->setAutoDefault(false);
    button->setEnabled(runs_->count() > 0);
    connect(button, &QPushButton::clicked, this, [this, state] {
      for (int row = 0; row < runs_->count(); ++row) runs_->item(row)->setCheckState(state);
    });
    top->addWidget(button);
  };
  add_button("bundleAll", tr("&All"), Qt::Checked);
  add_button("bundleNone", tr("N&one"), Qt::Unchecked);
  auto* column = new QVBoxLayout(this);
  column->addLayout(top);
  column->addWidget(runs_, 1);
  for (QCheckBox* each : {spec_, notes_, weights_}) column->addWidget(each);
  column->addWidget(paths);
  column->addWidget(buttons);
  resize(460, 420);
  showWeights();
}

BundleChoice BundleDialog::choice() const {
  BundleChoice choice{.folders = {},
                      .spec = spec_->isChecked(),
                      .notes = notes_->isChecked(),
                      .weights = weights_->isEnabled() && weights_->isChecked()};
  for (int row = 0; row < runs_->count(); ++row)
    if (runs_->item(row)->checkState() == Qt::Checked) choice.folders.append(rows_[row].folder);
  return choice;
}

/// Shows the weights of the chosen runs, and whether there is anything to carry.
void BundleDialog::showWeights() {
  qint64 bytes = 0;
  bool any = false;
  for (int row = 0; row < runs_->count(); ++row) {
    if (runs_->item(row)->checkState() != Qt::Checked) continue;
    any = true;
    bytes += rows_[row].weight_bytes;
  }
  weights_->setEnabled(bytes > 0);
  weights_->setText(bytes > 0 ? tr("Final &weights (%1)").arg(QLocale().formattedDataSize(bytes))
                              : tr("Final &weights: the chosen runs have none"));
  accept_->setEnabled(any || spec_->isChecked());
}

}  // namespace accrue::ui
