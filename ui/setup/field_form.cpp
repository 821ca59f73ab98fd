// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_form.h"

#include <QAbstractSpinBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/base/program.h"
#include "accrue/run/weights/start_weights.h"
#include "document/spec_document.h"
#include "field_row.h"
#include "field_section.h"
#include "form_sections.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "place_keeper.h"

namespace accrue::ui {

namespace {

QString remarkText(const MegatronEffect& effect) {
  const QString value = QString::fromStdString(format_value(effect.value.value));
  QString from = fromView(to_string(effect.value.origin));
  if (!effect.value.from.empty()) from = QStringLiteral("%1: %2").arg(from, QString::fromStdString(effect.value.from));
  QString what = QString::fromStdString(effect.nothing);
  if (what.isEmpty())
    for (const LoweredKey& key : effect.keys)
      what += QStringLiteral("%1%2 = %3")
                  .arg(what.isEmpty() ? QString() : QStringLiteral(", "), fromView(key.key),
                       QString::fromStdString(format_value(key.value)));
  else
    what = FieldForm::tr("changes nothing: %1").arg(what);
  //: a value, where it comes from, and what it does
  return FieldForm::tr("%1 (%2); %3").arg(value.isEmpty() ? QStringLiteral("None") : value, from, what);
}

bool isPluginSection(const FieldSection* section) {
  return !section->rows().empty() && section->rows().front()->field().section() == "megatron";
}

}  // namespace

FieldForm::FieldForm(SpecDocument* document, QWidget* parent)
    : QScrollArea(parent),
      document_(document),
      content_(new QWidget),
      nothing_found_(new QLabel),
      place_(new PlaceKeeper(this, [this] { return editorsInSight(); })) {
  setObjectName(QStringLiteral("fieldForm"));
  setAccessibleName(tr("Set-up form"));
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::NoFocus);
  nothing_found_->setText(tr("No field has that name, here or in the other tools. Clear the search to see all."));
  nothing_found_->setWordWrap(true);
  nothing_found_->setForegroundRole(QPalette::PlaceholderText);
  nothing_found_->hide();
  build();
  setWidget(content_);
  connect(document_, &SpecDocument::changed, this, &FieldForm::showDocument);
  connect(document_, &SpecDocument::lockedKeysChanged, this, &FieldForm::showDocument);
  connect(document_, &SpecDocument::fileChanged, this, &FieldForm::showOtherDocument);
  showDocument();
}

void FieldForm::build() {
  auto* layout = new QVBoxLayout(content_);
  layout->setContentsMargins(space::betweenGroups, space::base, space::inGroup, space::inGroup);
  layout->setSpacing(0);
  layout->addWidget(nothing_found_);
  std::map<std::string_view, FieldSection*> by_name;
  for (const bool advanced : {false, true}) {
    for (const SpecField& field : spec_fields()) {
      if (field.advanced != advanced || field.key.find('.') == std::string_view::npos) continue;
      FieldSection*& section = by_name[sectionOf(field)];
      if (!section) {
        section = new FieldSection(fromView(sectionOf(field)), sectionTitle(sectionOf(field)), content_);
        sections_.push_back(section);
      }
      FieldRow* row = section->addField(field);
      rows_.emplace(std::string(field.key), row);
      connectRow(row);
    }
  }
  std::stable_sort(sections_.begin(), sections_.end(), [&by_name](FieldSection* left, FieldSection* right) {
    const auto order = [&by_name](FieldSection* section) {
      const auto at = std::find_if(by_name.begin(), by_name.end(),
                                   [section](const auto& entry) { return entry.second == section; });
      return sectionOrder(at->first);
    };
    return order(left) < order(right);
  });
  measureColumns();
  for (FieldSection* section : sections_) {
    section->setExpanded(!isPluginSection(section));
    layout->addWidget(section);
    connect(section, &FieldSection::foldingChanged, this, &FieldForm::arrange);
  }
  layout->addStretch(1);
  chainTabOrder();
}

void FieldForm::measureColumns() {
  label_width_ = 0;
  unit_width_ = 0;
  for (const FieldSection* section : sections_) {
    label_width_ = std::max(label_width_, section->labelWidth());
    unit_width_ = std::max(unit_width_, section->unitWidth());
  }
  label_width_ = std::min(label_width_, fontMetrics().averageCharWidth() * 19);
  for (FieldSection* section : sections_) section->setColumns(label_width_, unit_width_, stacked_);
  measured_ = true;
}

void FieldForm::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  keepContentInSight();
  place_->areaResized();
}

void FieldForm::changeEvent(QEvent* event) {
  QScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange) measured_ = false;  // each field has its font before the next layout
}

void FieldForm::showEvent(QShowEvent* event) {
  QScrollArea::showEvent(event);
  keepContentInSight();
}

void FieldForm::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Escape) return QScrollArea::keyPressEvent(event);
  document_->cancelTyping();
  for (const auto& [key, row] : rows_)
    if (row->editorWidget()->hasFocus()) row->discardText(document_->spec());
  Q_EMIT left();
}

bool FieldForm::eventFilter(QObject* object, QEvent* event) {
  const bool laid_out = QScrollArea::eventFilter(object, event);
  if (object == content_ && event->type() == QEvent::LayoutRequest) keepContentInSight();
  if (object == content_ && event->type() == QEvent::Resize) place_->pageResized();
  return laid_out;
}

std::vector<QWidget*> FieldForm::editorsInSight() const {
  std::vector<QWidget*> editors;
  for (const auto& [key, row] : rows_)
    if (row->isVisible()) editors.push_back(row->editorWidget());
  return editors;
}

void FieldForm::keepContentInSight() {
  if (!measured_) measureColumns();
  // The form does not scroll sideways: the dock is never narrower than its fields. Labels that do not fit beside them
  // are above.
  const QMargins margins = content_->layout()->contentsMargins();
  const int around = margins.left() + margins.right() + verticalScrollBar()->sizeHint().width();
  int fields = 0;
  int titles = 0;
  for (const FieldSection* section : sections_) {
    if (section->isHidden()) continue;
    fields = std::max(fields, section->fieldsWidth(unit_width_));
    titles = std::max(titles, section->titleWidth());
  }
  setMinimumWidth(around + std::max(fields, titles));
  const bool stacked = width() < around + label_width_ + space::inGroup + fields;
  if (stacked == stacked_) return;
  stacked_ = stacked;
  measureColumns();
}

void FieldForm::connectRow(FieldRow* row) {
  connect(row, &FieldRow::edited, this,
          [this](const SpecField& field, const SpecValue& value) { document_->typeField(field, value); });
  connect(row, &FieldRow::textRejected, document_, &SpecDocument::takeBackTyped);
  connect(row, &FieldRow::finished, document_, &SpecDocument::endTyping);
  connect(row, &FieldRow::fixRequested, this,
          [this](const SpecField& field, const QString& value) { document_->setFieldText(field, value); });
  connect(row, &FieldRow::librariesWanted, this, &FieldForm::librariesWanted);
  connect(row, &FieldRow::textRejectedChanged, this, [this] {
    place_->hold();
    Q_EMIT rejectedFieldsChanged();
  });
}

void FieldForm::chainTabOrder() {
  QWidget* before = nullptr;
  const QLayout* layout = content_->layout();
  for (int item = 0; item < layout->count(); ++item) {
    const QWidget* section = layout->itemAt(item)->widget();
    if (!section) continue;
    for (QWidget* widget : section->findChildren<QWidget*>()) {
      if (widget->focusPolicy() == Qt::NoFocus || widget->objectName().isEmpty()) continue;
      if (widget->parentWidget() && qobject_cast<QAbstractScrollArea*>(widget->parentWidget())) continue;
      if (before) QWidget::setTabOrder(before, widget);
      before = widget;
    }
  }
  for (const auto& [row, control] : below_) {
    before = row->editorWidget();
    for (QWidget* widget : control->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
      if (widget->focusPolicy() == Qt::NoFocus) continue;
      QWidget::setTabOrder(before, widget);
      before = widget;
    }
  }
}

void FieldForm::setLibraries(const std::vector<PluginFacts>& libraries) {
  if (libraries == libraries_) return;
  libraries_ = libraries;
  showDocument();
}

void FieldForm::setStart(const RunSpec& filled) {
  if (filled == start_) return;
  start_ = filled;
  showDocument();
}

void FieldForm::showDocument() {
  place_->hold();
  const LoweredMegatron lowered = lower_megatron(with_keys_of(document_->spec(), start_), environment, libraries_);
  lowered_ = lowered.spec;
  showPlugin(lowered);
  arrange();
}

/// A field of the plug-in shows its result; a key that a field sets names it, and is edited there. So does a key that
/// the weights set.
void FieldForm::showPlugin(const LoweredMegatron& lowered) {
  const RunSpec defaults;
  const auto& locked = document_->lockedKeys().why;
  for (const auto& [key, row] : rows_) {
    const SpecField& field = row->field();
    const bool own = field.section() == "megatron";
    const LoweredKey* setter = own ? nullptr : lowered.setter_of(field.key);
    const bool untouched = field.get(document_->spec()) == field.get(defaults);
    const bool of_weights = !own && !setter && untouched && field.get(lowered.spec) != field.get(defaults);
    const bool follows = of_weights || (setter && untouched);
    row->showSpec(follows ? lowered.spec : document_->spec());
    const auto lock = locked.find(key);
    row->setFixed(follows || lock != locked.end());
    if (lock != locked.end()) {
      row->setRemark(tr("Locked: %1").arg(lock->second), false);
      continue;
    }
    const auto effect =
        std::find_if(lowered.fields.begin(), lowered.fields.end(),
                     [&](const MegatronEffect& candidate) { return own && candidate.name == field.name(); });
    if (effect != lowered.fields.end())
      row->setRemark(remarkText(*effect), !effect->nothing.empty());
    else
      row->setRemark(setter       ? tr("Set by %1 of the Megatron-LM plug-in").arg(QString::fromStdString(setter->by))
                     : of_weights ? tr("Set by the weights to start from")
                                  : QString(),
                     false);
  }
}

void FieldForm::showOtherDocument() {
  // Rejected text belongs to the document it was typed into. A document without history was just opened or created.
  if (document_->undoStack()->count() > 0) return;
  for (const auto& [key, row] : rows_) row->discardText(document_->spec());
  if (!filter_.isEmpty()) Q_EMIT filterDropped();
}

void FieldForm::setFindings(const std::vector<Finding>& findings) {
  if (findings == findings_) return;
  place_->hold();
  findings_ = findings;
  for (const auto& [key, row] : rows_) {
    std::vector<Finding> own;
    std::copy_if(findings.begin(), findings.end(), std::back_inserter(own),
                 [&row_key = key](const Finding& finding) { return finding.key == row_key; });
    row->setFindings(std::move(own));
  }
  arrange();
}

void FieldForm::setEditsWaiting(const std::vector<SpecDifference>& edits) {
  place_->hold();
  for (const auto& [key, row] : rows_) {
    const auto edit = std::ranges::find(edits, key, &SpecDifference::key);
    row->setWaiting(edit == edits.end() ? std::nullopt : std::optional(edit->left));
  }
  for (FieldSection* section : sections_) section->showWaiting();
}

void FieldForm::setFilter(const QString& text) {
  filter_ = text.trimmed();
  place_->letGo();
  arrange();
  if (!filter_.isEmpty()) verticalScrollBar()->setValue(0);
}

void FieldForm::restrictTo(std::vector<const SpecField*> fields) {
  // Fields listed by a lesson are initially visible, and their groups can be folded; afterwards folding is restored.
  if (only_.empty() && !fields.empty()) {
    folds_before_ = foldState();
    for (FieldSection* section : sections_) section->setExpanded(true);
  }
  const bool ends = fields.empty() && !only_.empty();
  only_ = std::move(fields);
  if (ends) restoreFoldState(folds_before_);
  showDocument();
}

void FieldForm::arrange() {
  if (filter_.isEmpty()) {
    for (const auto& [key, row] : rows_) row->setFoundAs(QString());
    for (FieldSection* section : sections_) section->arrange(lowered_, only_.empty() ? nullptr : &only_, false);
    nothing_found_->hide();
    orderSections({});
    return;
  }
  const std::vector<const SpecField*> found = search_fields(filter_.toStdString());
  for (FieldSection* section : sections_) section->arrange(lowered_, &found, true);
  for (const auto& [key, row] : rows_) {
    QString found_as;
    for (const FieldAlias& alias : row->field().aliases)
      if (found_as.isEmpty() && name_has_words(alias.name, filter_.toStdString())) found_as = aliasText(alias);
    row->setFoundAs(found_as);
  }
  nothing_found_->setVisible(found.empty());
  orderSections(found);
}

void FieldForm::orderSections(const std::vector<const SpecField*>& found) {
  std::vector<FieldSection*> order = sections_;
  std::ranges::stable_sort(order, {}, [&found](const FieldSection* section) {
    const std::string_view name = sectionOf(section->rows().front()->field());
    return std::ranges::find(found, name, [](const SpecField* field) { return sectionOf(*field); }) - found.begin();
  });
  auto* layout = static_cast<QVBoxLayout*>(content_->layout());
  bool moved = false;
  int place = layout->indexOf(nothing_found_);
  for (FieldSection* section : order) {
    if (layout->indexOf(section) == ++place) continue;
    layout->removeWidget(section);
    layout->insertWidget(place, section);
    moved = true;
  }
  if (moved) chainTabOrder();
}

FieldRow* FieldForm::row(const QString& key) const {
  const auto at = rows_.find(key.toStdString());
  return at == rows_.end() ? nullptr : at->second;
}

void FieldForm::addTitleAction(const QString& section, QAction* action) {
  for (FieldSection* candidate : sections_)
    if (!candidate->rows().empty() && fromView(candidate->rows().front()->field().section()) == section)
      candidate->addTitleAction(action);
  chainTabOrder();
}

void FieldForm::addBelow(const QString& key, const QString& label, QWidget* control) {
  row(key)->addBelow(label, control);
  below_.emplace_back(row(key), control);
  chainTabOrder();
}

bool FieldForm::discardRejectedText() {
  const QStringList rejected = rejectedFields();
  for (const QString& key : rejected) row(key)->discardText(document_->spec());
  return !rejected.isEmpty();
}

QStringList FieldForm::rejectedFields() const {
  QStringList keys;
  for (const auto& [key, row] : rows_)
    if (row->isTextRejected()) keys.append(QString::fromStdString(key));
  return keys;
}

void FieldForm::unfold(const FieldRow* wanted) {
  for (FieldSection* section : sections_) {
    if (std::find(section->rows().begin(), section->rows().end(), wanted) == section->rows().end()) continue;
    section->setExpanded(true);
    if (wanted->field().advanced) section->setAdvancedShown(true);
  }
  arrange();
}

void FieldForm::reveal(const QString& key) {
  FieldRow* wanted = row(key);
  if (!wanted) return;
  unfold(wanted);
  place_->scrollTo(wanted->editorWidget());
}

void FieldForm::focusField(const QString& key) {
  FieldRow* wanted = row(key);
  if (!wanted) return;
  Q_EMIT attentionWanted();
  unfold(wanted);
  if (!wanted->isVisible() && !filter_.isEmpty()) {
    setFilter(QString());
    Q_EMIT filterDropped();
  }
  place_->scrollTo(wanted->editorWidget());
  QWidget* editor = wanted->editorWidget();
  editor->setFocus(Qt::OtherFocusReason);
  // The next typing replaces the value.
  if (auto* spin = qobject_cast<QAbstractSpinBox*>(editor)) spin->selectAll();
  if (auto* line = qobject_cast<QLineEdit*>(editor)) line->selectAll();
}

bool FieldForm::focusBestFound() {
  for (const SpecField* field : search_fields(filter_.toStdString())) {
    const FieldRow* found = row(fromView(field->key));
    if (!found || !found->editorWidget()->isVisibleTo(content_)) continue;
    focusField(fromView(field->key));
    return true;
  }
  return false;
}

void FieldForm::setEditable(bool editable) {
  if (content_->isEnabled() == editable) return;
  if (!editable) {
    QWidget* focus = window()->focusWidget();
    focus_before_ = focus && content_->isAncestorOf(focus) ? focus : nullptr;
    content_->setEnabled(false);
    focus_meanwhile_ = window()->focusWidget();
    return;
  }
  content_->setEnabled(true);
  // Returns to the edited field, unless the user has moved on meanwhile.
  if (focus_before_ && window()->focusWidget() == focus_meanwhile_) focus_before_->setFocus(Qt::OtherFocusReason);
  focus_before_ = nullptr;
}

QStringList FieldForm::foldState() const {
  if (!only_.empty()) return folds_before_;
  QStringList state;
  for (const FieldSection* section : sections_) {
    const QString name = section->rows().empty() ? QString() : fromView(sectionOf(section->rows().front()->field()));
    if (isPluginSection(section)) {
      if (section->isExpanded()) state.append(QStringLiteral("%1:open").arg(name));
      continue;
    }
    if (!section->isExpanded()) state.append(QStringLiteral("%1:folded").arg(name));
    if (section->isAdvancedShown()) state.append(QStringLiteral("%1:advanced").arg(name));
  }
  return state;
}

void FieldForm::restoreFoldState(const QStringList& state) {
  for (FieldSection* section : sections_) {
    if (section->rows().empty()) continue;
    const QString name = fromView(sectionOf(section->rows().front()->field()));
    if (isPluginSection(section)) {
      section->setExpanded(state.contains(QStringLiteral("%1:open").arg(name)));
      continue;
    }
    section->setExpanded(!state.contains(QStringLiteral("%1:folded").arg(name)));
    section->setAdvancedShown(state.contains(QStringLiteral("%1:advanced").arg(name)));
  }
}

QSize FieldForm::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 52, fontMetrics().height() * 24};
}

}  // namespace accrue::ui
