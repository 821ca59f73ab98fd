// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QWidget>
#include <optional>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/whatif/plugins.h"

class QGridLayout;
class QLabel;

namespace accrue::ui {

class FieldEditor;
class PreflightRunner;
class SpecDocument;
class SwitchBox;

/// One plug-in: a switch, its fields, its costs and savings, and the reason if it cannot be switched on.
class PluginCard : public QWidget {
  Q_OBJECT

 public:
  PluginCard(SpecDocument* document, PreflightRunner* preflight, Capability plugin, QWidget* parent);

  /// Shows the spec as it runs. A key that a field of the Megatron-LM plug-in sets is edited in that field.
  void showSpec(const LoweredMegatron& lowered);
  /// nullptr while nothing is known about the current spec.
  void showState(const PluginState* state);
  bool isLocked() const;
  QString reason() const;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Row {
    const SpecField* field;
    QLabel* label;
    FieldEditor* editor;
    QLabel* unit;
  };
  void addField(QGridLayout* grid, std::string_view key);
  QLabel* addText(const char* object_name);
  void showNote();
  void showCosts();
  void showLock();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  Capability plugin_;
  SwitchBox* switch_;
  QLabel* help_;
  QWidget* fields_;
  QLabel* memory_;
  QLabel* wire_;
  QWidget* note_;
  QLabel* note_icon_;
  QLabel* note_text_;
  QList<Row> rows_;
  std::optional<RankCost> difference_;
  bool on_ = false;
  bool refused_ = false;  ///< the switch would give a spec that cannot run
  QString reason_;        ///< why the switch is locked, or why the spec is refused because of it
  QString set_by_;        ///< field that sets one of its keys
  QString problem_;       ///< of text in a field
};

/// Returns "+1.2 MiB", "−20 B" or "0 B".
QString signedBytesText(std::int64_t bytes);

}  // namespace accrue::ui
