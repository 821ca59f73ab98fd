// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_panel.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QScreen>
#include <QScrollBar>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/fields/choice_names.h"
#include "dialect_strip.h"
#include "document/findings_model.h"
#include "document/spec_document.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "live/run_queue.h"
#include "series/run_series.h"
#include "series/run_text.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

QString dialectName(Dialect dialect) {
  return fromView(system_name(dialect));
}

QString outcomeOf(const QueuedRun& queued) {
  switch (queued.state) {
    case QueuedState::waiting:
      return DialectPanel::tr("waiting for its turn");
    case QueuedState::running:
      return DialectPanel::tr("training");
    case QueuedState::failed:
      return DialectPanel::tr("did not finish");
    case QueuedState::stopped:
      return DialectPanel::tr("stopped by you");
    case QueuedState::left_out:
      return DialectPanel::tr("left out");
    case QueuedState::finished:
      break;
  }
  const QString weights = queued.run ? lastWeightsText(*queued.run) : QString();
  return weights.isEmpty() ? DialectPanel::tr("finished") : DialectPanel::tr("finished at %1").arg(weights);
}

}  // namespace

DialectCard::DialectCard(Dialect dialect, QWidget* parent)
    : QWidget(parent),
      dialect_(dialect),
      name_(new QLabel(dialectName(dialect), this)),
      outcome_(new QLabel(this)),
      use_(new QPushButton(tr("Use"), this)),
      strip_(new DialectStrip(this)) {
  const QString id = fromView(to_name(dialect));
  setObjectName(QStringLiteral("dialectCard.%1").arg(id));
  name_->setFont(textFont(TextSize::body, QFont::DemiBold));
  outcome_->setObjectName(QStringLiteral("dialectOutcome.%1").arg(id));
  outcome_->setFont(tabularFont(TextSize::small));
  outcome_->hide();
  use_->setObjectName(QStringLiteral("useDialect.%1").arg(id));
  use_->setAutoDefault(false);
  use_->setAccessibleName(tr("Use the dialect %1").arg(dialectName(dialect)));
  strip_->setObjectName(QStringLiteral("dialectStrip.%1").arg(id));
  strip_->setAccessibleName(tr("Plan under %1").arg(dialectName(dialect)));
  auto* head = new QHBoxLayout;
  head->setSpacing(space::inGroup);
  head->addWidget(name_);
  head->addWidget(outcome_);
  head->addStretch(1);
  head->addWidget(use_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::inGroup, space::base, 0, space::base + 2);
  layout->setSpacing(2);
  layout->addLayout(head);
  layout->addWidget(strip_);
  fate_ = addText("dialectFate", false);
  facts_ = addText("dialectFacts", true);
  notes_ = addText("dialectNotes", true);
  for (QLabel* label : {fate_, facts_, notes_}) {
    layout->addWidget(label);
    label->hide();  // until there is a text, which also names it
  }
}

QLabel* DialectCard::addText(const char* object_name, bool muted) {
  auto* label = new QLabel(this);
  label->setObjectName(QStringLiteral("%1.%2").arg(QLatin1String(object_name), fromView(to_name(dialect_))));
  label->setFont(textFont(TextSize::small));
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  if (muted) label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

void DialectCard::show(const std::shared_ptr<const DialectComparison>& comparison,
                       const std::shared_ptr<const DialectColumns>& columns, std::size_t row) {
  const DialectPlan& answer = comparison->dialects[row];
  chosen_ = answer.chosen;
  const bool planned = answer.plan.has_value();
  strip_->setPlan(comparison, columns, row);
  strip_->setVisible(planned);
  facts_->setVisible(planned);
  fate_->show();
  fate_->setText(planned ? QString::fromStdString(answer.fate()) : tr("Refused: %1").arg(refusalOf(answer)));
  facts_->setText(tr("Updates: %1. Loss divided: %2. Schedule %3.")
                      .arg(QString::fromStdString(updates_text(answer)), QString::fromStdString(answer.divisors()),
                           QString::fromStdString(schedule_text(answer))));
  QStringList notes;
  for (const std::string& note : answer.notes) notes << QString::fromStdString(note);
  notes_->setText(notes.join(QStringLiteral("; ")));
  notes_->setVisible(!notes.isEmpty());
  use_->setEnabled(planned && !chosen_);
  use_->setText(chosen_ ? tr("In use") : tr("Use"));
  update();
}

void DialectCard::showOutcome(const QString& text) {
  outcome_->setText(text);
  outcome_->setVisible(!text.isEmpty());
}

QString DialectCard::text() const {
  QStringList parts{name_->text()};
  for (const QLabel* label : {outcome_, fate_, facts_, notes_})
    if (!label->isHidden() && !label->text().isEmpty()) parts << label->text();
  return parts.join(QLatin1Char('\n'));
}

void DialectCard::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setPen(colors.hairline);
  painter.drawLine(0, height() - 1, width(), height() - 1);
  if (!chosen_) return;
  painter.fillRect(QRect(0, space::base, 3, height() - 2 * space::base), colors.accent);
}

DialectPanel::DialectPanel(SpecDocument* document, DialectPlans* dialects, RunQueue* queue, QAction* run_all,
                           QWidget* parent)
    : QDialog(parent),
      document_(document),
      dialects_(dialects),
      queue_(queue),
      ruler_(new DialectRuler(this)),
      bar_(new QScrollBar(Qt::Horizontal, this)),
      detail_(new QLabel(this)),
      status_(new QLabel(this)),
      cancel_(new QPushButton(tr("Cancel the rest"), this)) {
  setObjectName(QStringLiteral("dialectPanel"));
  setWindowTitle(tr("What would each dialect do?"));
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, space::inGroup, 0);
  column->setSpacing(0);
  for (const Dialect dialect : all_dialects) {
    auto* card = new DialectCard(dialect, content);
    cards_.push_back(card);
    column->addWidget(card);
    connectCard(card, dialect);
  }
  column->addStretch(1);
  scroll_ = scrolled(content, this);
  scroll_->setObjectName(QStringLiteral("dialectCards"));
  bar_->setObjectName(QStringLiteral("dialectScroll"));
  bar_->setAccessibleName(tr("Visible micro-steps"));
  bar_->setFocusPolicy(Qt::NoFocus);
  detail_->setObjectName(QStringLiteral("dialectDetail"));
  detail_->setFont(tabularFont(TextSize::small));
  detail_->setWordWrap(true);
  detail_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  detail_->setMinimumHeight(2 * QFontMetrics(detail_->font()).height() + space::base);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  layout->setSpacing(space::base);
  layout->addWidget(buildTop());
  // Indented like the strips in their cards.
  auto* ruler_row = new QHBoxLayout;
  ruler_row->setContentsMargins(space::inGroup, 0, 0, 0);
  ruler_row->addWidget(ruler_);
  layout->addLayout(ruler_row);
  layout->addWidget(scroll_, 1);
  layout->addWidget(bar_);
  layout->addWidget(detail_);
  layout->addWidget(buildBottom(run_all));
  connect(bar_, &QScrollBar::valueChanged, this, &DialectPanel::setOffset);
  connect(dialects_, &PlanFollower::finished, this, &DialectPanel::showResult);
  connect(document_, &SpecDocument::changed, this, &DialectPanel::showChecking);
  connect(queue_, &RunQueue::changed, this, &DialectPanel::showQueue);
  connect(queue_, &RunQueue::finished, this, &DialectPanel::showQueue);
  const QSize room = screen() ? screen()->availableSize() : QSize(1366, 768);
  resize(std::min(1180, room.width() - 2 * space::page), std::min(700, room.height() - 2 * space::page));
  showQueue();
}

QWidget* DialectPanel::buildTop() {
  auto* top = new QWidget(this);
  auto* what = new QLabel(tr("The current set-up under the rules of each system."), top);
  what->setWordWrap(true);
  auto* row = new QHBoxLayout(top);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(what, 1);
  row->addWidget(new DialectLegend(top), 0, Qt::AlignVCenter);
  return top;
}

QWidget* DialectPanel::buildBottom(QAction* run_all) {
  auto* bottom = new QWidget(this);
  auto* copy = new QPushButton(themedIcon(QStringLiteral("copy")), tr("Copy as text"), bottom);
  copy->setObjectName(QStringLiteral("copyDialects"));
  auto* run = new QPushButton(themedIcon(QStringLiteral("run")), run_all->iconText(), bottom);
  run->setObjectName(QStringLiteral("runAllButton"));
  run->setToolTip(run_all->toolTip());
  run->setEnabled(run_all->isEnabled());
  auto* close = new QPushButton(tr("Close"), bottom);
  close->setObjectName(QStringLiteral("closeDialects"));
  cancel_->setObjectName(QStringLiteral("cancelQueue"));
  status_->setObjectName(QStringLiteral("dialectStatus"));
  auto* row = new QHBoxLayout(bottom);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(copy);
  row->addWidget(status_, 1, Qt::AlignRight | Qt::AlignVCenter);
  row->addWidget(cancel_);
  row->addWidget(run);
  row->addWidget(close);
  for (QPushButton* button : {copy, run, close, cancel_}) button->setAutoDefault(false);
  connect(copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(text()); });
  connect(run, &QPushButton::clicked, run_all, &QAction::trigger);
  connect(run_all, &QAction::changed, run, [run, run_all] { run->setEnabled(run_all->isEnabled()); });
  connect(close, &QPushButton::clicked, this, &QDialog::reject);
  connect(cancel_, &QPushButton::clicked, queue_, &RunQueue::cancel);
  return bottom;
}

/// A focused strip loses the focus when QDialog's destructor hides it, and must not report that any more.
DialectPanel::~DialectPanel() {
  for (DialectCard* card : cards_) card->strip()->disconnect(this);
}

void DialectPanel::connectCard(DialectCard* card, Dialect dialect) {
  connect(card->useButton(), &QPushButton::clicked, this, [this, dialect] { use(dialect); });
  connect(card->strip(), &DialectStrip::chosen, this, [this, dialect] { use(dialect); });
  connect(card->strip(), &DialectStrip::described, this, [this](const QString& text) {
    QString line = text;
    line.replace(QLatin1Char('\n'), QLatin1Char(' '));
    detail_->setText(line);
  });
  connect(card->strip(), &DialectStrip::cellReached, this, &DialectPanel::reach);
}

DialectCard* DialectPanel::card(Dialect dialect) const {
  const auto at = std::ranges::find(all_dialects, dialect);
  return cards_[static_cast<std::size_t>(at - all_dialects.begin())];
}

QString DialectPanel::text() const {
  return shown_ ? QString::fromStdString(dialect_report(*shown_)) : QString();
}

void DialectPanel::use(Dialect dialect) {
  const DialectPlan* answer = shown_ ? shown_->of(dialect) : nullptr;
  // An outdated comparison must not undo later edits.
  if (!answer || !answer->plan || answer->chosen || !dialects_->isCurrent()) return;
  document_->setSpec(answer->spec, tr("Use the dialect %1").arg(dialectName(dialect)));
}

void DialectPanel::showResult() {
  if (!dialects_->isCurrent()) return;
  shown_ = dialects_->result();
  if (!shown_) {
    status_->setText(tr("The data cannot be read, so there is nothing to compare."));
    scroll_->setEnabled(false);
    return;
  }
  scroll_->setEnabled(true);
  columns_ = std::make_shared<DialectColumns>(DialectColumns::of(*shown_, DialectStrip::glyphSize()));
  for (std::size_t row = 0; row < cards_.size(); ++row) cards_[row]->show(shown_, columns_, row);
  ruler_->setColumns(columns_);
  fitScrollBar();
  showQueue();
}

void DialectPanel::showChecking() {
  if (isVisible() && !queue_->isActive()) status_->setText(tr("checking\u2026"));
}

void DialectPanel::showQueue() {
  const auto& runs = queue_->runs();
  for (const Dialect dialect : all_dialects) {
    const auto at = std::ranges::find_if(
        runs, [dialect](const QueuedRun& run) { return run.plan.spec.accumulation.dialect == dialect; });
    card(dialect)->showOutcome(at == runs.end() ? QString() : outcomeOf(*at));
  }
  status_->setText(queue_->sentence());
  const bool waiting =
      std::ranges::any_of(runs, [](const QueuedRun& run) { return run.state == QueuedState::waiting; });
  cancel_->setVisible(queue_->isActive() && waiting);
}

void DialectPanel::fitScrollBar() {
  const int room = ruler_->width() - 2 * space::inGroup;
  const int needed = columns_ ? columns_->width : 0;
  bar_->setVisible(needed > room);
  bar_->setPageStep(room);
  bar_->setSingleStep(DialectStrip::glyphSize() * 2);
  bar_->setRange(0, std::max(needed - room, 0));
  setOffset(bar_->value());
}

void DialectPanel::setOffset(int offset) {
  ruler_->setOffset(offset);
  for (DialectCard* card : cards_) card->strip()->setOffset(offset);
}

void DialectPanel::reach(int x, int width) {
  if (x < bar_->value()) bar_->setValue(x - space::page);
  if (x + width > bar_->value() + bar_->pageStep()) bar_->setValue(x + width - bar_->pageStep() + space::page);
}

void DialectPanel::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  dialects_->setWanted(true);
  showResult();
}

void DialectPanel::hideEvent(QHideEvent* event) {
  dialects_->setWanted(false);
  QDialog::hideEvent(event);
}

void DialectPanel::resizeEvent(QResizeEvent* event) {
  QDialog::resizeEvent(event);
  // Queued until the layout has given the strips their new width.
  QTimer::singleShot(0, this, &DialectPanel::fitScrollBar);
}

}  // namespace accrue::ui
