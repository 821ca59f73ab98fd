// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QLineEdit;
class QScrollArea;

namespace accrue::ui {

struct DockPanel;
class ArithmeticPanel;
class FieldForm;
class PreflightRunner;
class SpecDocument;

/// The set-up dock: the form, below it the plan's arithmetic, and in its title the search.
class SetupPanel : public QWidget {
  Q_OBJECT

 public:
  SetupPanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);
  DockPanel dock();

  FieldForm* form() const { return form_; }
  ArithmeticPanel* arithmetic() const { return arithmetic_; }
  /// Search for a field, for the dock's title bar.
  QWidget* titleControl() const;
  /// In front of the tabs of its dock.
  void bringUp();
  /// Brings the panel up, too.
  void focusSearch();
  void focusFirstError();

  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  /// The spec names a part that no plug-in library registers yet, and the user wants to choose one.
  void librariesWanted();

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  /// Gives the arithmetic its required height, as long as the form keeps a few rows.
  void divideHeight();
  void showPreflight();
  void connectSignals();
  void addSampleLock(SpecDocument* document);

  SpecDocument* document_;
  PreflightRunner* preflight_;
  QLineEdit* search_;
  FieldForm* form_;
  ArithmeticPanel* arithmetic_;
  QScrollArea* arithmetic_area_ = nullptr;
  QDockWidget* dock_ = nullptr;
};

}  // namespace accrue::ui
