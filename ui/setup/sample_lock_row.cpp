// SPDX-License-Identifier: GPL-3.0-or-later
#include "sample_lock_row.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "accrue/run/fields/sample_lock.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "widgets/wheel_guard.h"

namespace accrue::ui {

namespace {

const SpecField& editedFactor(const SpecDocument& document) {
  const SpecField* field = find_field(document.lastFactor().toStdString());
  return field ? *field : *find_field("accumulation.steps");
}

}  // namespace

SampleLockRow::SampleLockRow(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      choice_(new QComboBox(this)),
      note_(new QLabel(this)),
      offers_{new QPushButton(this), new QPushButton(this)} {
  setObjectName(QStringLiteral("sampleLockRow"));
  choice_->setObjectName(QStringLiteral("sampleLock"));
  choice_->setAccessibleName(tr("Keep while editing"));
  choice_->setToolTip(tr("What stays the same while you edit accumulation steps, micro-batch or data-parallel ranks"));
  choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  choice_->setMinimumContentsLength(6);
  for (const SampleLock lock : {SampleLock::none, SampleLock::per_update, SampleLock::in_total})
    choice_->addItem(QString(), static_cast<int>(lock));
  choice_->setItemIcon(1, themedIcon(QStringLiteral("lock")));
  choice_->setItemIcon(2, themedIcon(QStringLiteral("lock")));
  WheelGuard::protect(choice_);
  note_->setObjectName(QStringLiteral("sampleLockNote"));
  note_->setFont(textFont(TextSize::small));
  note_->setWordWrap(true);
  auto* row = new QHBoxLayout;
  row->setSpacing(space::inGroup);
  for (int i = 0; i < 2; ++i) {
    offers_[i]->setObjectName(QStringLiteral("sampleLockOffer.%1").arg(i));
    offers_[i]->setFont(textFont(TextSize::small));
    offers_[i]->setAutoDefault(false);
    row->addWidget(offers_[i]);
    connect(offers_[i], &QPushButton::clicked, this, [this, i] {
      document_->setField(editedFactor(*document_),
                          SpecValue(std::int64_t{offers_[i]->property("value").toLongLong()}));
    });
  }
  row->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(space::base);
  layout->addWidget(choice_);
  layout->addWidget(note_);
  layout->addLayout(row);
  connect(choice_, &QComboBox::activated, this,
          [this](int index) { document_->setSampleLock(static_cast<SampleLock>(choice_->itemData(index).toInt())); });
  connect(document_, &SpecDocument::changed, this, &SampleLockRow::refresh);
  connect(document_, &SpecDocument::sampleLockChanged, this, &SampleLockRow::refresh);
  refresh();
}

QString SampleLockRow::note() const {
  return note_->isHidden() ? QString() : note_->text();
}

QString SampleLockRow::setter() const {
  for (const char* key : {"accumulation.steps", "accumulation.micro_batch", "parallel.data"})
    if (const LoweredKey* set = preflight_->lowered().setter_of(key)) return QString::fromStdString(set->by);
  return {};
}

void SampleLockRow::setRejected(bool rejected) {
  rejected_ = rejected;
  refresh();
}

void SampleLockRow::refresh() {
  const SampleLock lock = document_->sampleLock();
  const auto samples = [this, lock](SampleLock each) {
    return each == lock ? document_->samplesKept() : locked_samples(document_->spec(), each);
  };
  choice_->setItemText(0, tr("nothing"));
  //: What is kept; %1 is a number of samples
  choice_->setItemText(1, tr("%1 samples per update").arg(groupedNumber(samples(SampleLock::per_update))));
  const std::int64_t total = samples(SampleLock::in_total);
  choice_->setItemText(2, total > 0 ? tr("%1 samples in total").arg(groupedNumber(total)) : tr("the samples in total"));
  choice_->setCurrentIndex(choice_->findData(static_cast<int>(lock)));
  const QString by = setter();
  choice_->setEnabled(by.isEmpty());
  if (lock == SampleLock::none || rejected_ || document_->isFollowDue())
    showNote({}, {});
  else if (!by.isEmpty())
    showNote(tr("%1 of the Megatron-LM plug-in sets them, so nothing follows here").arg(by), {});
  else if (document_->samplesKept() == 0)
    showNote(tr("The run ends by samples, tokens or epochs, so its total stays as it is"), {});
  else
    showBreach();
}

void SampleLockRow::showBreach() {
  const RunSpec& spec = document_->spec();
  const SampleLock lock = document_->sampleLock();
  const std::int64_t kept = document_->samplesKept();
  const std::int64_t now = locked_samples(spec, lock);
  if (now == kept) return showNote({}, {});
  const SpecField& factor = editedFactor(*document_);
  const QString value = QString::fromStdString(format_value(factor.get(spec)));
  const QString what = lock == SampleLock::per_update ? tr("%1 samples per update").arg(groupedNumber(kept))
                                                      : tr("%1 samples in total").arg(groupedNumber(kept));
  //: %1 a number of samples, %2 a field of the form, %3 its value, %4 the samples that follow
  showNote(tr("%1 cannot be kept with %2 %3: no whole number gives them. Now there are %4.")
               .arg(what, fromView(factor.label).toLower(), value, groupedNumber(now)),
           nearest_kept(spec, factor.key, lock, kept));
}

void SampleLockRow::showNote(const QString& text, const std::vector<std::int64_t>& nearest) {
  note_->setText(text);
  note_->setVisible(!text.isEmpty());
  for (std::size_t i = 0; i < 2; ++i) {
    offers_[i]->setVisible(i < nearest.size());
    if (i >= nearest.size()) continue;
    offers_[i]->setProperty("value", QVariant::fromValue<qlonglong>(nearest[i]));
    offers_[i]->setText(tr("Use %1").arg(groupedNumber(nearest[i])));
    offers_[i]->setAccessibleName(
        //: %1 is a field of the form, %2 a value that keeps the samples
        tr("%1: use %2").arg(fromView(editedFactor(*document_).label), groupedNumber(nearest[i])));
  }
}

}  // namespace accrue::ui
