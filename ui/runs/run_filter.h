// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSortFilterProxyModel>
#include <QString>
#include <QStringList>

namespace accrue::ui {

class RunSeries;
class RunTableModel;

/// Filter of a RunTableModel: keeps the rows that have every word of a text in the name, the state or the notes;
/// "#word" matches a tag, "*" a star. Sorts by the columns' values.
class RunFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit RunFilter(QObject* parent = nullptr);
  void setText(const QString& text);
  /// Keeps a run listed for any text, so that a filter does not move the focus.
  void setKept(const RunSeries* run);
  /// Marks the name of a run that is listed although it does not match.
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  /// Whether any run matches, including the kept one.
  bool matches() const;

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  const RunTableModel& runs() const;
  bool hasWords(int row) const;
  /// Call when the kept run's mark may have changed.
  void refreshKept();

  QStringList words_;
  const RunSeries* kept_ = nullptr;  ///< only compared
};

}  // namespace accrue::ui
