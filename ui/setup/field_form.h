// SPDX-License-Identifier: GPL-3.0-or-later
// FieldForm: the set-up form, generated from the spec's field table: one section per table of the file, basic fields
// first, findings under their fields. It edits a SpecDocument and names no field.
#pragma once

#include <QPointer>
#include <QScrollArea>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"

class QAction;
class QLabel;

namespace accrue::ui {

class FieldRow;
class FieldSection;
class PlaceKeeper;
class SpecDocument;

class FieldForm : public QScrollArea {
  Q_OBJECT

 public:
  explicit FieldForm(SpecDocument* document, QWidget* parent = nullptr);

  void setFindings(const std::vector<Finding>& findings);
  /// Sets the libraries with parts that the spec names; they also set keys.
  void setLibraries(const std::vector<PluginFacts>& libraries);
  /// Sets the document's spec as the weights that it starts from fill it; the keys that they set are shown and fixed.
  void setStart(const RunSpec& filled);
  /// Marks the fields with edits for the next run, and their sections.
  void setEditsWaiting(const std::vector<SpecDifference>& edits);
  /// Shows only fields that match the text by label, key, help or another tool's name. Empty shows all.
  void setFilter(const QString& text);
  /// Shows only these fields, as a lesson does; empty shows all.
  void restrictTo(std::vector<const SpecField*> fields);
  /// Unfolds and scrolls to a field without moving the focus. A filtered field stays hidden. The field stays visible
  /// until the user scrolls or goes to another field, even if findings or the arithmetic take space.
  void reveal(const QString& key);
  /// Unfolds, scrolls to and focuses a field; removes a filter that hides it.
  void focusField(const QString& key);
  /// Focuses the best match of the filter; false if there is none.
  bool focusBestFound();
  FieldRow* row(const QString& key) const;
  /// Adds a command beside the title of a section, which has the name of the spec's table ("accumulation").
  void addTitleAction(const QString& section, QAction* action);
  /// Adds a control under a field, after it in the tab order.
  void addBelow(const QString& key, const QString& label, QWidget* control);
  /// Keys of the fields without a valid value.
  QStringList rejectedFields() const;
  /// Replaces invalid text in fields by the spec's values. Returns false if there was none.
  bool discardRejectedText();
  void setEditable(bool editable);
  /// Folded sections, for the window's state.
  QStringList foldState() const;
  void restoreFoldState(const QStringList& state);

  QSize sizeHint() const override;

 Q_SIGNALS:
  /// A field is about to be focused, so the form must become visible.
  void attentionWanted();
  /// The filter hid the requested field and was cleared.
  void filterDropped();
  void rejectedFieldsChanged();
  /// The user is done with the form.
  void left();
  /// The user wants to choose plug-in libraries for the names in a field.
  void librariesWanted();

 protected:
  /// Escape undoes the current typing and leaves the form.
  void keyPressEvent(QKeyEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  /// Measures the columns at the current text size.
  void measureColumns();
  void keepContentInSight();
  std::vector<QWidget*> editorsInSight() const;
  void build();
  void connectRow(FieldRow* row);
  void showDocument();
  void showPlugin(const LoweredMegatron& lowered);
  void showOtherDocument();
  void arrange();
  /// Keeps the sections in order, but puts those with the best matches of a filter first.
  void orderSections(const std::vector<const SpecField*>& found);
  /// Opens the section of a field, and its advanced part if necessary.
  void unfold(const FieldRow* wanted);
  void chainTabOrder();

  SpecDocument* document_;
  QWidget* content_;
  QLabel* nothing_found_;
  PlaceKeeper* place_;
  std::vector<FieldSection*> sections_;
  std::map<std::string, FieldRow*, std::less<>> rows_;
  std::vector<std::pair<FieldRow*, QWidget*>> below_;  ///< controls below fields
  int label_width_ = 0;
  int unit_width_ = 0;
  bool stacked_ = false;  ///< labels stand above their fields
  bool measured_ = true;  ///< the columns have the widths of the present size of text
  std::vector<Finding> findings_;
  QString filter_;
  std::vector<const SpecField*> only_;
  QStringList folds_before_;  ///< folding before the form was restricted
  std::vector<PluginFacts> libraries_;
  RunSpec start_;
  RunSpec lowered_;                 ///< the document's spec with the keys that weights and the Megatron-LM plug-in set
  QPointer<QWidget> focus_before_;  ///< had the focus when the form was disabled
  QPointer<QWidget> focus_meanwhile_;
};

}  // namespace accrue::ui
