// SPDX-License-Identifier: GPL-3.0-or-later
// The questions the window asks. An interface, so that a test can answer them.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>

#include "exchange/bundle_dialog.h"
#include "plots/figure_size.h"

class QWidget;

namespace accrue::ui {

enum class UnsavedAnswer { save, discard, cancel };
enum class CloseAnswer { keepRunning, checkpointAndStop, stopNow, cancel };

struct CloseChoice {
  CloseAnswer answer = CloseAnswer::cancel;
  bool remember = false;
};

class Dialogs {
 public:
  virtual ~Dialogs() = default;
  /// Empty = cancelled, for all of these.
  virtual QString openSpec(QWidget* parent, const QString& folder) = 0;
  virtual QString openRunFolder(QWidget* parent, const QString& folder) = 0;
  virtual QString saveSpec(QWidget* parent, const QString& suggested) = 0;
  /// Of the figure to export, at which `check` finds nothing. Nothing = cancelled.
  virtual std::optional<FigureSize> askFigure(QWidget* parent, const FigureSize& size, const FigureCheck& check) = 0;
  virtual QString exportFile(QWidget* parent, const QString& suggested, const QString& filter) = 0;
  /// What a bundle is to carry. Nothing = cancelled.
  virtual std::optional<BundleChoice> askBundle(QWidget* parent, const QList<BundleRow>& rows) = 0;
  virtual QString openFile(QWidget* parent, const QString& title, const QString& folder, const QString& filter) = 0;
  virtual QString chooseFolder(QWidget* parent, const QString& title, const QString& folder) = 0;
  virtual QString chooseItem(QWidget* parent, const QString& title, const QString& question,
                             const QStringList& items) = 0;
  virtual UnsavedAnswer askUnsaved(QWidget* parent, const QString& name) = 0;
  /// A run is hosted in the window that is about to close.
  virtual CloseChoice askClose(QWidget* parent, const QString& sentence) = 0;
  /// N from the next window on; empty = cancelled.
  virtual std::optional<std::int64_t> askSteps(QWidget* parent, std::int64_t now) = 0;
  /// How many seeds to train; empty = cancelled.
  virtual std::optional<int> askSeeds(QWidget* parent) = 0;
};

/// Asks with Qt's dialogs.
class WidgetDialogs final : public Dialogs {
 public:
  QString openSpec(QWidget* parent, const QString& folder) override;
  QString openRunFolder(QWidget* parent, const QString& folder) override;
  QString saveSpec(QWidget* parent, const QString& suggested) override;
  std::optional<FigureSize> askFigure(QWidget* parent, const FigureSize& size, const FigureCheck& check) override;
  QString exportFile(QWidget* parent, const QString& suggested, const QString& filter) override;
  std::optional<BundleChoice> askBundle(QWidget* parent, const QList<BundleRow>& rows) override;
  QString openFile(QWidget* parent, const QString& title, const QString& folder, const QString& filter) override;
  QString chooseFolder(QWidget* parent, const QString& title, const QString& folder) override;
  QString chooseItem(QWidget* parent, const QString& title, const QString& question, const QStringList& items) override;
  UnsavedAnswer askUnsaved(QWidget* parent, const QString& name) override;
  CloseChoice askClose(QWidget* parent, const QString& sentence) override;
  std::optional<std::int64_t> askSteps(QWidget* parent, std::int64_t now) override;
  std::optional<int> askSeeds(QWidget* parent) override;

 private:
  QString exported_to_;  ///< the folder of the last export; empty: the suggested one
};

}  // namespace accrue::ui
