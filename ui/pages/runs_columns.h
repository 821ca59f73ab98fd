// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QObject>
#include <vector>

class QTreeView;

namespace accrue::ui {

class RunTableModel;

/// How wide the columns of the runs table are: as usual, or as a user made them, while there is room; what is left is
/// the name's. Where there is less they become narrower, and those that tell least are hidden, so that the table need
/// not be scrolled sideways.
class RunsColumns : public QObject {
  Q_OBJECT

 public:
  /// view shows the table, through whatever sorts it.
  RunsColumns(QTreeView* view, const RunTableModel* table);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  struct Width {
    int usual, least;
    bool hidden = false;
  };

  void fit();
  /// Of all sections, before there is too little room.
  std::vector<Width> wanted() const;
  void giveNameTheRest(const std::vector<Width>& widths);
  /// Weights that have grown longer than their column.
  void widenWeights();
  void keepOwn(int section, int width);
  /// The same while columns beside it come and go.
  QString nameOf(int section) const;

  QTreeView* view_;
  const RunTableModel* table_;
  QHash<QString, double> own_;  ///< widths that a user gave, at the normal size of text
  bool fitting_ = false;
  bool changing_ = false;  ///< columns are being inserted or removed
};

}  // namespace accrue::ui
