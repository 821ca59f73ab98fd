// SPDX-License-Identifier: GPL-3.0-or-later
// The questions that the rooms ask, in one object.
#pragma once

#include "compare/seed_dialogs.h"
#include "document/spec_dialogs.h"
#include "exchange/exchange_dialogs.h"
#include "live/run_dialogs.h"

namespace accrue::ui {

class Dialogs : public ExchangeDialogs, public SpecDialogs, public RunDialogs, public SeedDialogs {};

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
