// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QWidget>
#include <optional>

#include "accrue/run/plugins.h"
#include "accrue/run/spec_fields.h"

class QGridLayout;
class QLabel;

namespace accrue::ui {

class FieldEditor;
class SpecDocument;
class SwitchBox;

/// One plug-in: a switch, the fields that set how it works, what it costs and saves, and why it cannot be switched on.
class PluginCard : public QWidget {
  Q_OBJECT

 public:
  PluginCard(SpecDocument* document, Capability plugin, QWidget* parent);

  void showSpec(const RunSpec& spec);
  /// nullptr while nothing is known of the current spec.
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

  SpecDocument* document_;
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
  QString reason_;   ///< why the switch is locked, or why the spec is refused for it
  QString problem_;  ///< of text in a field
};

/// "+1.2 MiB", "−20 B", "0 B"
QString signedBytesText(std::int64_t bytes);

}  // namespace accrue::ui
