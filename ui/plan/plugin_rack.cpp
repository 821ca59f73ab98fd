// SPDX-License-Identifier: GPL-3.0-or-later
#include "plugin_rack.h"

#include <QCheckBox>
#include <QEvent>
#include <QFrame>
#include <QLabel>
#include <QScrollBar>
#include <QVBoxLayout>

#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/plan/forecast.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "plugin_card.h"
#include "plugin_matrix.h"
#include "runs/dock_panel.h"
#include "series/run_text.h"
#include "widgets/fold_button.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

/// Computes the cost and savings of each plug-in in the current spec, and why one cannot be switched on.
PluginComparison pluginsOf(const PlanFollower::Question& asked) {
  // As it runs, and without the fields, which would restore what is switched off. A user's model, which sets none, is
  // still trained.
  RunSpec effective = lower_megatron(asked.spec, environment_of(asked.host), asked.libraries).spec;
  effective.megatron = {.custom_model_provider_function = std::move(effective.megatron.custom_model_provider_function)};
  return compare_plugins(effective, asked.host, *asked.data, asked.base_dir, asked.libraries);
}

}  // namespace

PluginRack::PluginRack(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      plugins_(new PlanAnswers<PluginComparison>(document, preflight, pluginsOf, this)),
      total_(new QLabel(this)) {
  setObjectName(QStringLiteral("pluginRack"));
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(space::inGroup, 0, space::inGroup, space::inGroup);
  column->setSpacing(0);
  for (const Capability plugin : all_plugins()) {
    cards_.push_back(new PluginCard(document, preflight, plugin, content));
    column->addWidget(cards_.back());
  }
  column->addSpacing(space::inGroup);
  column->addWidget(buildMatrix(content));
  column->addStretch(1);
  scroll_ = scrolled(content, this);
  scroll_->setObjectName(QStringLiteral("pluginCards"));
  content->installEventFilter(this);
  auto* line = new QFrame(this);
  line->setFrameShape(QFrame::HLine);
  line->setFrameShadow(QFrame::Plain);
  line->setForegroundRole(QPalette::Mid);
  total_->setObjectName(QStringLiteral("pluginTotal"));
  total_->setFont(tabularFont(TextSize::small));
  total_->setWordWrap(true);
  total_->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(scroll_, 1);
  layout->addWidget(line);
  layout->addWidget(total_);
  connect(document_, &SpecDocument::changed, this, &PluginRack::showDocument);
  connect(plugins_, &PlanFollower::finished, this, &PluginRack::showResult);
  showDocument();
  showResult();
}

QWidget* PluginRack::buildMatrix(QWidget* parent) {
  auto* group = new QWidget(parent);
  auto* fold = new FoldButton(QStringLiteral("pluginMatrixFold"), tr("What goes with what"), group);
  fold->setFont(textFont(TextSize::body, QFont::DemiBold));
  auto* body = new QWidget(group);
  matrix_ = new PluginMatrix(body);
  auto* sentence = new QLabel(matrix_->sentence(), body);
  sentence->setObjectName(QStringLiteral("pluginPair"));
  sentence->setFont(textFont(TextSize::small));
  sentence->setWordWrap(true);
  sentence->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  // Reserves three lines, so that the pairs do not move under the cursor.
  sentence->setMinimumHeight(3 * QFontMetrics(sentence->font()).lineSpacing());
  auto* legend =
      new QLabel(tr("\u2715 excludes, \u25CF needs, \u25CB is needed by, \u00B7 go together; bold: on"), body);
  legend->setFont(textFont(TextSize::small));
  legend->setForegroundRole(QPalette::PlaceholderText);
  legend->setWordWrap(true);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, space::base, 0, 0);
  column->setSpacing(space::inGroup);
  column->addWidget(matrix_);
  column->addWidget(legend);
  column->addWidget(sentence);
  auto* layout = new QVBoxLayout(group);
  layout->setContentsMargins(space::base, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(fold, 0, Qt::AlignLeft);
  layout->addWidget(body);
  body->hide();
  connect(fold, &QAbstractButton::toggled, body, &QWidget::setVisible);
  connect(matrix_, &PluginMatrix::sentenceChanged, sentence, &QLabel::setText);
  return group;
}

void PluginRack::showDocument() {
  for (PluginCard* card : cards_) card->showSpec(preflight_->lowered());
  matrix_->showSpec(preflight_->lowered().spec);
}

void PluginRack::showResult() {
  const auto& result = plugins_->result();
  for (std::size_t index = 0; index < cards_.size(); ++index)
    cards_[index]->showState(result ? &result->plugins[index] : nullptr);
  if (result && result->now)
    //: Two numbers of bytes
    total_->setText(tr("The fullest rank holds %1 and sends %2 for an update.")
                        .arg(bytesText(result->now->total()), bytesText(sent_bytes(*result->now))));
  else if (!cost_is_known(preflight_->lowered().spec))
    total_->setText(unknownCostText());
  else
    total_->setText(tr("Fix the spec's errors to see costs."));
}

void PluginRack::focusFirst() {
  for (auto* box : findChildren<QCheckBox*>())
    if (box->isEnabled()) return box->setFocus(Qt::ShortcutFocusReason);
}

void PluginRack::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  keepCardsWhole();
  plugins_->setWanted(true);
}

bool PluginRack::eventFilter(QObject* object, QEvent* event) {
  if (object == scroll_->widget() && event->type() == QEvent::LayoutRequest) keepCardsWhole();
  return QWidget::eventFilter(object, event);
}

/// The cards do not scroll sideways: the dock is never narrower than they are.
void PluginRack::keepCardsWhole() {
  scroll_->setMinimumWidth(scroll_->widget()->minimumSizeHint().width() +
                           scroll_->verticalScrollBar()->sizeHint().width());
}

void PluginRack::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  plugins_->setWanted(false);
}

DockPanel PluginRack::dock() {
  return {.name = "rackDock",
          .title = tr("Plug-ins"),
          .panel = this,
          .area = Qt::LeftDockWidgetArea,
          .behind = "setupDock",
          .focus = [this] { focusFirst(); }};
}

}  // namespace accrue::ui
