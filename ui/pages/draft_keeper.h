// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDateTime>
#include <QObject>
#include <QString>
#include <QTimer>
#include <optional>

#include "accrue/run/run_spec.h"

namespace accrue::ui {

class SpecDocument;

/// Edits that were never saved, as found at the start.
struct Draft {
  RunSpec spec;
  QString name;
  QString base_dir;
  QDateTime when;
};

/// Writes unsaved edits to the state folder every few seconds, so that neither closing nor a crash loses them.
class DraftKeeper : public QObject {
  Q_OBJECT

 public:
  DraftKeeper(SpecDocument* document, QString folder, QObject* parent = nullptr);

  /// Reads and removes the draft that the last session left.
  std::optional<Draft> takeLeftOver();
  /// Writes or removes the draft now.
  void keep();

 private:
  QString file() const;

  SpecDocument* document_;
  QString folder_;
  QTimer timer_;
};

}  // namespace accrue::ui
