// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QAbstractItemView;

namespace accrue::ui {

/// Mark of a list's selection: a tint under its own text instead of the system's full colour, which would hide swatches
/// and icons. Owned by the list; follows the theme.
class SelectionTint : public QObject {
  Q_OBJECT

 public:
  explicit SelectionTint(QAbstractItemView* view);
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void apply();

  QAbstractItemView* view_;
  bool applying_ = false;
};

}  // namespace accrue::ui
