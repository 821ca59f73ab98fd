// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSortFilterProxyModel>
#include <QString>
#include <QStringList>

namespace accrue::ui {

class RunSeries;
class RunTableModel;

/// The rows of a RunTableModel that have every word of a text: in the name, the state or the notes; "#word" asks for a
/// tag, "*" for a star. Sorts by the columns' values.
class RunFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit RunFilter(QObject* parent = nullptr);
  void setText(const QString& text);
  /// A run that stays listed whatever the text: a filter does not take the focus away.
  void setKept(const RunSeries* run);
  /// Marks the name of a run that is listed although it does not have the words.
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  /// Whether any run has the words, the kept one counting like the others.
  bool matches() const;

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  const RunTableModel& runs() const;
  bool hasWords(int row) const;
  /// The kept run's mark may have changed.
  void refreshKept();

  QStringList words_;
  const RunSeries* kept_ = nullptr;  ///< compared only
};

}  // namespace accrue::ui
