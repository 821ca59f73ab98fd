// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDateTime>
#include <QObject>
#include <QString>
#include <QTimer>
#include <memory>
#include <optional>

#include "accrue/run/fields/sample_lock.h"
#include "accrue/run/fields/spec.h"

class QLockFile;

namespace accrue::ui {

class SpecDocument;

/// Unsaved edits found at the start.
struct Draft {
  RunSpec spec;
  QString name;
  QString base_dir;
  QString spec_file;  ///< file of the last save; empty: never saved
  SampleLock lock = SampleLock::none;
  QDateTime when;
};

/// Keeper of unsaved edits: writes them to the state folder every few seconds, so that neither closing nor a crash
/// loses them. Every window has its own file, locked while the window is open, so that no other window mistakes it for
/// a left-over draft.
class DraftKeeper : public QObject {
  Q_OBJECT

 public:
  DraftKeeper(SpecDocument* document, QString folder, QObject* parent = nullptr);
  ~DraftKeeper() override;

  /// Returns the newest draft of a window that no longer exists. Only this window may offer it until dropLeftOver(); it
  /// stays on disk until then.
  std::optional<Draft> leftOver();
  /// Removes the draft from leftOver(), after it was restored or dismissed.
  void dropLeftOver();
  /// Writes or removes the draft now.
  void keep();

 private:
  QString file() const;

  SpecDocument* document_;
  QString folder_;
  QString id_;
  QTimer timer_;
  std::unique_ptr<QLockFile> own_lock_;
  std::unique_ptr<QLockFile> left_over_lock_;
  QString left_over_;
};

}  // namespace accrue::ui
