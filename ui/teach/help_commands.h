// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <QObject>

namespace accrue::ui {

class Actions;
class DifferencesSheet;
class GlossarySheet;
class ManualSheet;
class MessageBar;
class PreflightRunner;
class RunControl;
class ShortcutSheet;
class SpecDocument;

/// The Help menu. Its sheets are windows of their own, made when first opened.
class HelpCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    PreflightRunner* preflight;
    RunControl* control;
    MessageBar* bar;
  };
  HelpCommands(const Actions& actions, const Parts& parts, QMainWindow* window);

 private:
  void explainFocus();
  void showManual();
  void showGlossary(const QString& about, const QString& help);
  void showShortcuts();
  void showDifferences();
  void showReport();
  void showAbout();

  const Actions& actions_;
  Parts parts_;
  QMainWindow* window_;
  ShortcutSheet* shortcuts_ = nullptr;
  DifferencesSheet* differences_ = nullptr;
  GlossarySheet* glossary_ = nullptr;
  ManualSheet* manual_ = nullptr;
};

}  // namespace accrue::ui
