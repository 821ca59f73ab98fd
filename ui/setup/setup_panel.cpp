// SPDX-License-Identifier: GPL-3.0-or-later
#include "setup_panel.h"

#include <QComboBox>
#include <QDockWidget>
#include <QEvent>
#include <QFrame>
#include <QLineEdit>
#include <QShortcut>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "arithmetic_panel.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "field_form.h"
#include "field_row.h"
#include "kit/theme.h"
#include "runs/dock_panel.h"
#include "sample_lock_row.h"
#include "widgets/dock_switch.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

/// Minimum of each part in a low panel, in lines of text.
constexpr int form_lines = 6;
constexpr int arithmetic_lines = 3;

}  // namespace

SetupPanel::SetupPanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      search_(new QLineEdit(this)),
      form_(new FieldForm(document, this)),
      arithmetic_(new ArithmeticPanel(this)) {
  setObjectName(QStringLiteral("setupPanel"));
  search_->setObjectName(QStringLiteral("fieldSearch"));
  search_->setPlaceholderText(tr("Find a field by any tool\u2019s name"));
  search_->setToolTip(search_->placeholderText());  // a narrow panel cuts it
  search_->setAccessibleName(tr("Find a field"));
  search_->setClearButtonEnabled(true);
  search_->addAction(themedIcon(QStringLiteral("search")), QLineEdit::LeadingPosition);
  addSampleLock(document);
  auto* line = new QFrame(this);
  line->setFrameShape(QFrame::HLine);
  line->setFrameShadow(QFrame::Plain);
  line->setForegroundRole(QPalette::Mid);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(form_, 1);
  layout->addWidget(line);
  arithmetic_area_ = scrolled(arithmetic_, this);
  arithmetic_->installEventFilter(this);
  layout->addWidget(arithmetic_area_);
  connectSignals();
  connect(document, &SpecDocument::changed, this, [this] { arithmetic_->setChecking(true); });
  arithmetic_->setChecking(!preflight_->isCurrent());
}

void SetupPanel::addSampleLock(SpecDocument* document) {
  auto* lock = new SampleLockRow(document, preflight_, this);
  form_->addBelow(QStringLiteral("accumulation.micro_batch"), tr("Keep"), lock);
  lock->setFocusProxy(lock->choice());
  static constexpr std::array factors = {"accumulation.steps", "accumulation.micro_batch", "parallel.data"};
  const auto mark = [this, document] {
    for (const char* key : factors)
      form_->row(QLatin1String(key))->setLocked(document->sampleLock() != SampleLock::none);
  };
  connect(form_, &FieldForm::rejectedFieldsChanged, lock, [this, lock] {
    lock->setRejected(std::ranges::any_of(
        factors, [this](const char* key) { return form_->row(QLatin1String(key))->isTextRejected(); }));
  });
  connect(document, &SpecDocument::sampleLockChanged, this, mark);
  mark();
}

void SetupPanel::connectSignals() {
  connect(search_, &QLineEdit::textChanged, form_, &FieldForm::setFilter);
  connect(search_, &QLineEdit::returnPressed, form_, &FieldForm::focusBestFound);
  const auto onKey = [this](Qt::Key key, auto does) {
    connect(new QShortcut(key, search_, nullptr, nullptr, Qt::WidgetShortcut), &QShortcut::activated, this, does);
  };
  onKey(Qt::Key_Escape, [this] { search_->clear(); });
  onKey(Qt::Key_Down, [this] { form_->focusBestFound(); });
  connect(form_, &FieldForm::filterDropped, search_, &QLineEdit::clear);
  connect(form_, &FieldForm::rejectedFieldsChanged, this,
          [this] { arithmetic_->setRejectedFields(form_->rejectedFields()); });
  connect(preflight_, &PreflightRunner::finished, this, &SetupPanel::showPreflight);
  connect(arithmetic_, &ArithmeticPanel::fieldRequested, form_, &FieldForm::focusField);
  connect(arithmetic_, &ArithmeticPanel::librariesWanted, this, &SetupPanel::librariesWanted);
  connect(form_, &FieldForm::librariesWanted, this, &SetupPanel::librariesWanted);
}

void SetupPanel::showPreflight() {
  form_->setLibraries(preflight_->libraries());
  form_->setStart(preflight_->spec());
  form_->setFindings(preflight_->result().findings);
  arithmetic_->showResult(preflight_->result(), preflight_->sketch());
  arithmetic_->setLibrariesAtFault(!check_plugins(document_->spec().megatron, preflight_->libraries()).empty());
  arithmetic_->setChecking(!preflight_->isCurrent());
}

QSize SetupPanel::minimumSizeHint() const {
  const int width = std::max(form_->minimumWidth(), arithmetic_->minimumSizeHint().width());
  return {width, fontMetrics().height() * (form_lines + arithmetic_lines)};
}

void SetupPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  divideHeight();
}

bool SetupPanel::eventFilter(QObject* object, QEvent* event) {
  if (object == arithmetic_ && event->type() == QEvent::LayoutRequest) divideHeight();
  return QWidget::eventFilter(object, event);
}

void SetupPanel::divideHeight() {
  const int line = fontMetrics().height();
  const QLayout* layout = arithmetic_->layout();
  const int needed =
      layout->hasHeightForWidth() ? layout->minimumHeightForWidth(width()) : layout->minimumSize().height();
  const int most = std::max(height() - form_lines * line, arithmetic_lines * line);
  arithmetic_area_->setFixedHeight(std::min(needed, most));
}

QWidget* SetupPanel::titleControl() const {
  return search_;
}

void SetupPanel::bringUp() {
  if (dock_) raiseDock(dock_);
}

void SetupPanel::focusSearch() {
  bringUp();
  search_->setFocus(Qt::ShortcutFocusReason);
  search_->selectAll();
}

void SetupPanel::focusFirstError() {
  const auto& findings = preflight_->result().findings;
  const auto error = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::error && !finding.key.empty();
  });
  if (error != findings.end()) form_->focusField(QString::fromStdString(error->key));
}

DockPanel SetupPanel::dock() {
  return {.name = "setupDock",
          .title = tr("Set-up"),
          .panel = this,
          .area = Qt::LeftDockWidgetArea,
          .size = 368,
          .control = titleControl(),
          .control_stretch = 1,
          .focus = [this] { focusSearch(); },
          .docked =
              [this](QDockWidget* dock) {
                dock_ = dock;
                connect(form_, &FieldForm::attentionWanted, this, &SetupPanel::bringUp);
              },
          .set_editable = [this](bool editable) { form_->setEditable(editable); }};
}

}  // namespace accrue::ui
