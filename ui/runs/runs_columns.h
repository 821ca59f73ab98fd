// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QObject>
#include <QTimer>
#include <vector>

class QTreeView;

namespace accrue::ui {

class RunTableModel;

/// How wide the columns of the runs table are: as usual, or as a user made them, while there is room; what is left is
/// the name's. Names, states, verdicts and weights get what they need. Where there is less room the columns become
/// narrower, names last, and those that tell least are hidden, so that the table need not be scrolled sideways.
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
    bool is_text = false;  ///< becomes narrower only where the others cannot
    bool hidden = false;
  };

  void fit();
  /// Of all sections, before there is too little room.
  std::vector<Width> wanted() const;
  void giveNameTheRest(const std::vector<Width>& widths);
  /// What the columns need whose texts are as long as they come.
  void measure();
  /// Makes room where texts have grown longer than they were when measured.
  void widen();
  void keepOwn(int section, int width);
  /// The same while columns beside it come and go.
  QString nameOf(int section) const;

  QTreeView* view_;
  const RunTableModel* table_;
  QHash<QString, double> own_;  ///< widths that a user gave, at the normal size of text
  QHash<int, int> needs_;       ///< by column, as measured last
  QTimer widening_;
  bool fitting_ = false;
  bool changing_ = false;  ///< columns are being inserted or removed
};

}  // namespace accrue::ui
