// SPDX-License-Identifier: GPL-3.0-or-later
#include "finding_note.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <algorithm>

#include "accrue/run/megatron/megatron_fields.h"
#include "document/findings_model.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

RunState stateLike(Severity severity) {
  return severity == Severity::error     ? RunState::failed
         : severity == Severity::warning ? RunState::degraded
                                         : RunState::idle;
}

}  // namespace

FindingNote::FindingNote(QWidget* parent)
    : QWidget(parent), icon_(new QLabel(this)), text_(new QLabel(this)), fix_(new QPushButton(this)) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, space::base);
  layout->setSpacing(space::base);
  layout->addWidget(icon_, 0, Qt::AlignTop);
  layout->addWidget(text_, 1);
  layout->addWidget(fix_, 0, Qt::AlignTop);
  text_->setWordWrap(true);
  text_->setFont(textFont(TextSize::small));
  text_->setTextFormat(Qt::PlainText);
  fix_->setFont(textFont(TextSize::small));
  fix_->setAutoDefault(false);
  connect(fix_, &QPushButton::clicked, this, [this] {
    if (fix_value_.isEmpty())
      Q_EMIT librariesWanted();
    else
      Q_EMIT fixRequested(fix_value_);
  });
  hide();
}

void FindingNote::setFindings(const std::vector<Finding>& findings) {
  setVisible(!findings.empty());
  if (findings.empty()) {
    text_->clear();
    return;
  }
  QStringList sentences;
  const SpecField* field = find_field(findings.front().key);
  severity_ = Severity::note;
  fix_value_.clear();
  for (const Finding& finding : findings) {
    sentences.append(findingText(finding));
    severity_ = std::max(severity_, finding.severity);
    if (fix_value_.isEmpty() && finding.fix_value) fix_value_ = QString::fromStdString(*finding.fix_value);
  }
  text_->setText(sentences.join(QLatin1Char('\n')));
  fix_->setText(fixText(field));
  fix_->setVisible(!fix_->text().isEmpty());
  fix_->setAccessibleName(fix_->text());
  updateIcon();
}

/// Empty if no button can fix it.
QString FindingNote::fixText(const SpecField* field) const {
  if (fix_value_.isEmpty()) {
    const MegatronField* plugin = field ? find_megatron_field(field->name()) : nullptr;
    const bool named =
        plugin && plugin->key == field->key && plugin->group == MegatronGroup::hooks && field->type == FieldType::text;
    return named && severity_ == Severity::error ? tr("Choose plug-in libraries\u2026") : QString();
  }
  //: Button that corrects a field; %1 is the value it would get
  if (!field || field->type != FieldType::boolean) return tr("Use %1").arg(fix_value_);
  return fix_value_ == QLatin1String("true") ? tr("Turn it on") : tr("Turn it off");
}

QString FindingNote::text() const {
  return text_->text();
}

void FindingNote::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) updateIcon();
}

void FindingNote::updateIcon() {
  const int side = fontMetrics().height();
  icon_->setPixmap(stateIcon(stateLike(severity_)).pixmap(QSize(side, side), devicePixelRatioF()));
}

}  // namespace accrue::ui
