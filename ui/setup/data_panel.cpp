// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_panel.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>
#include <utility>

#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "runs/dock_panel.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

QString share(double part) {
  //: A share in per cent
  return DataPanel::tr("%1\u00A0%").arg(QString::number(100 * part, 'f', 1));
}

QString countText(std::int64_t count, const QString& one, const QString& many) {
  return (count == 1 ? one : many).arg(groupedNumber(count));
}

/// Contents of a dataset, and the part of it that is read.
QString heldText(const CorpusRow& row) {
  QString all = DataPanel::tr("%1, %2").arg(
      countText(row.documents, DataPanel::tr("%1 document"), DataPanel::tr("%1 documents")),
      countText(row.sequences, DataPanel::tr("%1 sequence"), DataPanel::tr("%1 sequences")));
  if (!row.tokenizer.empty()) all += DataPanel::tr(", tokenizer %1").arg(fromView(row.tokenizer));
  if (row.elements.begin >= row.elements.end) return all + QStringLiteral("<br>") + DataPanel::tr("none of it is read");
  const QString first = groupedNumber(row.elements.begin);
  const bool one = row.elements.end - row.elements.begin == 1;
  //: Sequences or documents, by number
  const QString part = one ? DataPanel::tr("only number %1 is read").arg(first)
                           : DataPanel::tr("%1 to %2 are read").arg(first, groupedNumber(row.elements.end - 1));
  return all + QStringLiteral("<br>") +
         DataPanel::tr("%1: %2, %3")
             .arg(part, countText(row.tokens, DataPanel::tr("%1 token"), DataPanel::tr("%1 tokens")),
                  countText(row.passes, DataPanel::tr("%1 pass"), DataPanel::tr("%1 passes")));
}

/// A row of a table whose first cell is text and whose others are numbers.
QString tableRow(const QStringList& cells) {
  QString row = QStringLiteral("<tr>");
  for (qsizetype i = 0; i < cells.size(); ++i)
    row +=
        (i == 0 ? QStringLiteral("<td>%1&nbsp;&nbsp;</td>") : QStringLiteral("<td align='right'>&nbsp;&nbsp;%1</td>"))
            .arg(cells[i]);
  return row + QStringLiteral("</tr>");
}

QString table(const QString& rows) {
  return QStringLiteral("<table width='100%' cellspacing='0' cellpadding='1'>%1</table>").arg(rows);
}

}  // namespace

DataPanel::DataPanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      title_(new QLabel(this)),
      sets_(new QLabel(this)),
      choice_(new QWidget(this)),
      sample_(new QSpinBox(this)),
      show_(new QPushButton(tr("Show"), this)),
      origin_(new QLabel(this)),
      empty_(new QLabel(this)) {
  setObjectName(QStringLiteral("dataPanel"));
  title_->setObjectName(QStringLiteral("dataTitle"));
  sets_->setObjectName(QStringLiteral("dataSets"));
  sample_->setObjectName(QStringLiteral("dataSample"));
  show_->setObjectName(QStringLiteral("dataShow"));
  origin_->setObjectName(QStringLiteral("dataOrigin"));
  empty_->setObjectName(QStringLiteral("dataEmpty"));
  title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  for (QLabel* label : {title_, sets_, origin_, empty_}) label->setWordWrap(true);
  for (QLabel* label : {sets_, origin_}) {
    label->setFont(tabularFont(TextSize::small));
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  empty_->setForegroundRole(QPalette::PlaceholderText);
  sample_->setAccessibleName(tr("Sample"));
  show_->setToolTip(tr("Loads the index of the samples, or builds it in memory"));
  auto* row = new QHBoxLayout(choice_);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(new QLabel(tr("Sample"), this));
  row->addWidget(sample_, 1);
  row->addWidget(show_);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  column->setSpacing(space::inGroup);
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, choice_, origin_, sets_, empty_})
    column->addWidget(widget);
  column->addStretch(1);
  fillScrolled(this, content, Qt::ScrollBarAsNeeded);
  connect(preflight, &PreflightRunner::finished, this, &DataPanel::look);
  connect(show_, &QPushButton::clicked, this, &DataPanel::lookAtSample);
}

void DataPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && isVisible()) showCorpus(corpus_);
}

void DataPanel::focusSample() {
  (sample_->isVisible() ? static_cast<QWidget*>(sample_) : this)->setFocus(Qt::ShortcutFocusReason);
}

void DataPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  look();
}

/// Reads while shown. Edits during reading are handled together afterwards.
void DataPanel::look() {
  if (!isVisible()) return;
  const RunSpec& spec = preflight_->lowered().spec;
  if (spec.data.kind != DataKind::indexed) {
    for (QWidget* widget : std::initializer_list<QWidget*>{title_, sets_, choice_, origin_}) widget->hide();
    empty_->setText(tr("Indexed datasets are shown here: set data.kind to indexed."));
    empty_->show();
    return;
  }
  if (std::exchange(looking_, true)) {
    look_again_ = true;
    return;
  }
  jobs_.run([spec, base_dir = document_->baseDir()] { return report_corpus(spec, base_dir); },
            [this](const Result<CorpusReport>& report) {
              looking_ = false;
              if (std::exchange(look_again_, false))
                look();
              else
                showCorpus(report);
            });
}

void DataPanel::lookAtSample() {
  const quint64 request = ++sample_request_;
  show_->setEnabled(false);
  jobs_.run([spec = preflight_->lowered().spec, base_dir = document_->baseDir(),
             sample = std::int64_t{sample_->value()}] { return report_sample(spec, base_dir, sample); },
            [this, request](const Result<SampleReport>& report) {
              show_->setEnabled(true);
              if (request == sample_request_) showSample(report);
            });
}

void DataPanel::showCorpus(const Result<CorpusReport>& report) {
  corpus_ = report;
  if (preflight_->lowered().spec.data.kind != DataKind::indexed) return;
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, sets_, choice_})
    widget->setVisible(report.has_value());
  empty_->setVisible(!report);
  if (!report) {
    origin_->hide();
    empty_->setText(QString::fromStdString(report.error().text()));
    return;
  }
  title_->setText(tr("%1 samples to train on, %2 to evaluate on")
                      .arg(groupedNumber(report->training_samples), groupedNumber(report->validation_samples)));
  const QString muted = themeColors(palette()).muted.name();
  QString rows;
  QString part;
  QStringList said;
  for (const CorpusRow& row : report->rows) {
    if (const QString now = QString::fromStdString(row.part); now != part) {
      part = now;
      //: Above the datasets of training or of evaluation
      rows += QStringLiteral(
                  "<tr style='color:%1'><td>%2</td><td align='right'>%3</td><td align='right'>%4</td>"
                  "<td align='right'>%5</td></tr>")
                  .arg(muted, row.part == "training" ? tr("Training") : tr("Evaluation"), tr("Samples"), tr("Share"),
                       tr("Asked"));
    }
    const QString name = QString::fromStdString(row.name).toHtmlEscaped();
    rows += tableRow({name, groupedNumber(row.samples), share(row.real), share(row.asked)});
    const QString held = heldText(row);
    rows += QStringLiteral("<tr style='color:%1'><td colspan='4'>%2</td></tr>").arg(muted, held);
    said << tr("%1: %2 samples, %3").arg(name, groupedNumber(row.samples), held);
  }
  sets_->setText(table(rows));
  sets_->setAccessibleName(said.join(QStringLiteral("; ")));
  const std::int64_t most = std::min<std::int64_t>(report->training_samples, std::numeric_limits<int>::max());
  sample_->setRange(0, static_cast<int>(std::max<std::int64_t>(0, most - 1)));
  // Text about a sample belongs to the spec before the edit.
  shown_.reset();
  origin_->hide();
}

void DataPanel::showSample(const Result<SampleReport>& report) {
  shown_ = report;
  origin_->show();
  if (!report) {
    origin_->setText(QString::fromStdString(report.error().text()).toHtmlEscaped());
    return;
  }
  const QString muted = themeColors(palette()).muted.name();
  QString text = tr("Sample %1 is sample %2 of %3:")
                     .arg(groupedNumber(report->sample), groupedNumber(report->item),
                          QString::fromStdString(report->dataset).toHtmlEscaped());
  for (const SamplePart& part : report->parts) {
    text += QStringLiteral("<br>") + tr("document %1, sequence %2: tokens %3 to %4 of %5")
                                         .arg(groupedNumber(part.document), groupedNumber(part.sequence),
                                              groupedNumber(part.begin), groupedNumber(part.end - 1),
                                              groupedNumber(part.length));
    const auto grey = [&muted](const std::string& words) {
      return QStringLiteral("<span style='color:%1'>%2</span>")
          .arg(muted, QString::fromStdString(words).toHtmlEscaped());
    };
    text += QStringLiteral("<br>") + grey(report->prompts ? part.prompt : part.text);
    if (report->prompts) text += QStringLiteral(" %1").arg(QString::fromStdString(part.text).toHtmlEscaped());
  }
  if (report->prompts) text += QStringLiteral("<br>") + tr("Grey: prompts, which have no part in the loss.");
  origin_->setText(text);
}

DockPanel DataPanel::dock() {
  return {.name = "dataDock",
          .title = tr("Data"),
          .panel = this,
          .area = Qt::RightDockWidgetArea,
          .behind = "windowDock",
          .focus = [this] { focusSample(); }};
}

}  // namespace accrue::ui
