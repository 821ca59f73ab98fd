// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QList>
#include <QString>
#include <QStringList>

class QCheckBox;
class QListWidget;
class QPushButton;

namespace accrue::ui {

/// A run that a bundle could contain.
struct BundleRow {
  QString folder;
  QString name;
  bool chosen = false;
  qint64 weight_bytes = 0;  ///< of its final weights; 0: none
};

/// Contents of a bundle.
struct BundleChoice {
  QStringList folders;
  bool spec = true;
  bool notes = true;
  bool weights = false;
};

/// Dialog for the contents of a bundle: its runs and everything else.
class BundleDialog : public QDialog {
  Q_OBJECT

 public:
  explicit BundleDialog(QList<BundleRow> rows, QWidget* parent = nullptr);
  BundleChoice choice() const;

 private:
  void showWeights();

  QList<BundleRow> rows_;
  QListWidget* runs_;
  QCheckBox* spec_;
  QCheckBox* notes_;
  QCheckBox* weights_;
  QPushButton* accept_;
};

}  // namespace accrue::ui
