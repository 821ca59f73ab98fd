// SPDX-License-Identifier: GPL-3.0-or-later
#include "differences_sheet.h"

#include <QCheckBox>
#include <QLabel>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/whatif/upstream_defects.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

QLabel* paragraph(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setWordWrap(true);
  return label;
}

/// Whether switching it on and off again leaves a spec unchanged.
bool canBeUndone(const UpstreamDefect& defect) {
  if (defect.setting.empty()) return false;
  RunSpec spec;
  std::vector<Finding> findings;
  for (const bool on : {true, false}) set_field(spec, replay_setting(defect, spec, on), findings);
  return spec == RunSpec();
}

}  // namespace

DifferencesSheet::DifferencesSheet(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QDialog(parent), document_(document), preflight_(preflight) {
  setObjectName(QStringLiteral("differencesSheet"));
  setWindowTitle(tr("Differences from the originals"));
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(space::page, space::page, space::page, space::page);
  column->setSpacing(space::betweenGroups);
  for (const UpstreamDefect& defect : upstream_defects()) column->addWidget(buildEntry(defect));
  column->addStretch(1);
  QScrollArea* scroll = fillScrolled(this, content);
  scroll->setObjectName(QStringLiteral("differencesScroll"));
  scroll->setAccessibleName(windowTitle());
  scroll->setFocusPolicy(Qt::StrongFocus);  // the keys scroll it
  resize(640, 600);
  connect(preflight_, &PreflightRunner::finished, this, &DifferencesSheet::showPlan);
  showPlan();
}

QWidget* DifferencesSheet::buildEntry(const UpstreamDefect& defect) {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(space::base);
  //: %1 is a title, %2 the name of another tool
  auto* title = paragraph(tr("%1 (%2)").arg(fromView(defect.title), fromView(defect.system)), box);
  title->setFont(textFont(TextSize::body, QFont::DemiBold));
  column->addWidget(title);
  column->addWidget(paragraph(tr("There: %1").arg(fromView(defect.upstream)), box));
  column->addWidget(paragraph(tr("Here: %1").arg(fromView(defect.here)), box));
  Entry entry{&defect, paragraph(QString(), box), nullptr};
  entry.effect->setObjectName(QStringLiteral("effect.%1").arg(fromView(defect.id)));
  column->addWidget(entry.effect);
  if (canBeUndone(defect)) {
    entry.replay = new QCheckBox(tr("Do as upstream"), box);
    entry.replay->setObjectName(QStringLiteral("replay.%1").arg(fromView(defect.id)));
    entry.replay->setAccessibleName(tr("Do as upstream: %1").arg(fromView(defect.title)));
    column->addWidget(entry.replay);
    connect(entry.replay, &QCheckBox::clicked, this, [this, &defect](bool on) { switchReplay(defect, on); });
  }
  entries_.push_back(entry);
  return box;
}

void DifferencesSheet::showPlan() {
  const std::optional<RunPlan>& plan = preflight_->result().plan;
  for (const Entry& entry : entries_) {
    const DefectEffect effect = plan ? effect_of(*entry.defect, *plan) : DefectEffect{};
    entry.effect->setText(plan ? tr("This spec: %1").arg(QString::fromStdString(effect.sentence))
                               : tr("This spec cannot be planned yet."));
    entry.effect->setForegroundRole(effect.concerns ? QPalette::WindowText : QPalette::PlaceholderText);
    if (!entry.replay) continue;
    const QSignalBlocker quiet(entry.replay);
    entry.replay->setChecked(effect.replayed);
    entry.replay->setEnabled(effect.can_replay || effect.replayed);
  }
}

void DifferencesSheet::switchReplay(const UpstreamDefect& defect, bool on) {
  const QString setting = QString::fromStdString(replay_setting(defect, document_->spec(), on));
  const QString key = setting.section(QLatin1Char('='), 0, 0);
  if (const SpecField* field = find_field(key.toStdString()))
    document_->setFieldText(*field, setting.mid(key.size() + 1));
}

}  // namespace accrue::ui
