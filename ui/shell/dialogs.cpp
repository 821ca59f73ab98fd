// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialogs.h"

#include <QCheckBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMessageBox>
#include <QPushButton>
#include <algorithm>
#include <limits>

#include "accrue/run/fields/spec_fields.h"
#include "exchange/figure_dialog.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

/// Adds the suffix of the chosen filter ("PNG image (*.png)") if the name has none.
QString withSuffix(const QString& file, const QString& filter) {
  if (file.isEmpty() || !QFileInfo(file).suffix().isEmpty()) return file;
  const qsizetype at = filter.indexOf(QLatin1String("*."));
  const QString suffix =
      at < 0 ? QString() : filter.mid(at + 1).section(QLatin1Char(')'), 0, 0).section(QLatin1Char(' '), 0, 0);
  return QStringLiteral("%1%2").arg(file, suffix);
}

}  // namespace

QString WidgetDialogs::openSpec(QWidget* parent, const QString& folder) {
  return QFileDialog::getOpenFileName(
      parent, tr("Open a run spec, a lesson or a bundle"), folder,
      tr("Run specs, lessons and bundles (*.accrue *.toml *.accrue-lesson *.accrue-bundle);;All files (*)"));
}

QString WidgetDialogs::openRunFolder(QWidget* parent, const QString& folder) {
  return QFileDialog::getExistingDirectory(parent, tr("Open a run folder"), folder);
}

QString WidgetDialogs::saveSpec(QWidget* parent, const QString& suggested) {
  QString filter = tr("Run specs (*.accrue)");
  return withSuffix(QFileDialog::getSaveFileName(parent, tr("Save the run spec"), suggested, filter, &filter), filter);
}

std::optional<FigureSize> WidgetDialogs::askFigure(QWidget* parent, const FigureSize& size, const FigureCheck& check) {
  FigureDialog dialog(size, check, parent);
  return dialog.exec() == QDialog::Accepted ? std::optional(dialog.size()) : std::nullopt;
}

QString WidgetDialogs::exportFile(QWidget* parent, const QString& suggested, const QString& filter) {
  QString chosen = filter.section(QLatin1String(";;"), 0, 0);
  const QString start =
      exported_to_.isEmpty() ? suggested : QDir(exported_to_).filePath(QFileInfo(suggested).fileName());
  const QString file = withSuffix(QFileDialog::getSaveFileName(parent, tr("Export"), start, filter, &chosen), chosen);
  if (!file.isEmpty()) exported_to_ = QFileInfo(file).absolutePath();
  return file;
}

std::optional<BundleChoice> WidgetDialogs::askBundle(QWidget* parent, const QList<BundleRow>& rows) {
  BundleDialog dialog(rows, parent);
  return dialog.exec() == QDialog::Accepted ? std::optional(dialog.choice()) : std::nullopt;
}

QString WidgetDialogs::openFile(QWidget* parent, const QString& title, const QString& folder, const QString& filter) {
  return QFileDialog::getOpenFileName(parent, title, folder, filter);
}

QString WidgetDialogs::chooseFolder(QWidget* parent, const QString& title, const QString& folder) {
  return QFileDialog::getExistingDirectory(parent, title, folder);
}

QString WidgetDialogs::chooseItem(QWidget* parent, const QString& title, const QString& question,
                                  const QStringList& items) {
  bool chosen = false;
  const QString item = QInputDialog::getItem(parent, title, question, items, 0, /*editable=*/false, &chosen);
  return chosen ? item : QString();
}

UnsavedAnswer WidgetDialogs::askUnsaved(QWidget* parent, const QString& name) {
  QMessageBox box(QMessageBox::Question, tr("Unsaved edits"), tr("Save the edits of %1 first?").arg(name),
                  QMessageBox::NoButton, parent);
  QPushButton* save = box.addButton(tr("&Save"), QMessageBox::AcceptRole);
  QPushButton* discard = box.addButton(tr("&Discard"), QMessageBox::DestructiveRole);
  box.addButton(QMessageBox::Cancel);
  box.setDefaultButton(save);
  box.exec();
  if (box.clickedButton() == save) return UnsavedAnswer::save;
  return box.clickedButton() == discard ? UnsavedAnswer::discard : UnsavedAnswer::cancel;
}

CloseChoice WidgetDialogs::askClose(QWidget* parent, const QString& sentence) {
  QMessageBox box(QMessageBox::Question, tr("A run is in progress"), sentence, QMessageBox::NoButton, parent);
  box.setObjectName(QStringLiteral("closeDialog"));
  box.setInformativeText(
      tr("Keep running saves at the next boundary and continues without a window; the next start offers to attach. "
         "Checkpoint and stop ends after the current update, and Resume continues from there. Stop now discards "
         "everything trained since the last checkpoint."));
  QPushButton* keep = box.addButton(tr("&Keep running"), QMessageBox::AcceptRole);
  QPushButton* checkpoint = box.addButton(tr("&Checkpoint and stop"), QMessageBox::AcceptRole);
  QPushButton* stop = box.addButton(tr("&Stop now"), QMessageBox::DestructiveRole);
  box.addButton(QMessageBox::Cancel);
  box.setDefaultButton(checkpoint);
  auto* remember = new QCheckBox(tr("&Do the same next time"), &box);
  box.setCheckBox(remember);
  box.exec();
  if (box.clickedButton() == keep) return {CloseAnswer::keepRunning, remember->isChecked()};
  if (box.clickedButton() == checkpoint) return {CloseAnswer::checkpointAndStop, remember->isChecked()};
  if (box.clickedButton() == stop) return {CloseAnswer::stopNow, remember->isChecked()};
  return {};
}

std::optional<std::int64_t> WidgetDialogs::askSteps(QWidget* parent, std::int64_t now) {
  const SpecField& field = *find_field("accumulation.steps");
  const int least = static_cast<int>(field.minimum);
  const int most = static_cast<int>(std::min(field.maximum, static_cast<double>(std::numeric_limits<int>::max())));
  bool accepted = false;
  const int steps = QInputDialog::getInt(
      parent, tr("Accumulation steps"),
      tr("Micro-steps per window, from the next window on.\nThe learning rate keeps its planned course."),
      static_cast<int>(now), least, most, 1, &accepted);
  return accepted ? std::optional<std::int64_t>(steps) : std::nullopt;
}

std::optional<int> WidgetDialogs::askSeeds(QWidget* parent) {
  constexpr int usual = 5, most = 100;
  bool accepted = false;
  const int seeds = QInputDialog::getInt(
      parent, tr("Run several seeds"),
      tr("How many runs, each with the next seed, one after another.\nTheir spread is the noise of this set-up."),
      usual, 2, most, 1, &accepted);
  return accepted ? std::optional(seeds) : std::nullopt;
}

}  // namespace accrue::ui
