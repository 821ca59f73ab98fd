// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QObject>
#include <QTimer>
#include <vector>

class QTreeView;

namespace accrue::ui {

class RunTableModel;

/// Column widths of the runs table: defaults, or the user's widths, while there is space; the name gets the rest.
/// Names, states, verdicts and weights get the width of their text. If space is short, columns become narrower, names
/// last, and the least informative are hidden, so that no horizontal scrolling is necessary.
class RunsColumns : public QObject {
  Q_OBJECT

 public:
  /// view shows the table through any sort proxy.
  RunsColumns(QTreeView* view, const RunTableModel* table);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  struct Width {
    int usual, least;
    bool is_text = false;  ///< becomes narrower only after the others
    bool hidden = false;
  };

  void fit();
  /// Widths of all sections with enough space.
  std::vector<Width> wanted() const;
  void giveNameTheRest(const std::vector<Width>& widths);
  /// Measures columns with texts of variable length.
  void measure();
  /// Widens columns whose texts have grown since they were measured.
  void widen();
  void keepOwn(int section, int width);
  /// Name of a column that stays the same while others are added or removed.
  QString nameOf(int section) const;

  QTreeView* view_;
  const RunTableModel* table_;
  QHash<QString, double> own_;  ///< widths set by the user, at the normal text size
  QHash<int, int> needs_;       ///< by column, as last measured
  QTimer widening_;
  bool fitting_ = false;
  bool changing_ = false;  ///< columns are being inserted or removed
};

}  // namespace accrue::ui
