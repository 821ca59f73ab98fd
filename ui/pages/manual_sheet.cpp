// SPDX-License-Identifier: GPL-3.0-or-later
#include "manual_sheet.h"

#include <QDesktopServices>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QListWidget>
#include <QScrollBar>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "models/manual.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

/// Pictures come from the resources, no wider than the page.
class PageBrowser final : public QTextBrowser {
 public:
  using QTextBrowser::QTextBrowser;
  QVariant loadResource(int type, const QUrl& name) override {
    if (type != QTextDocument::ImageResource) return QTextBrowser::loadResource(type, name);
    const QImage picture(QStringLiteral(":/screenshots/%1").arg(name.fileName()));
    const int bar = verticalScrollBar()->isVisible() ? 0 : verticalScrollBar()->sizeHint().width();
    const int room = viewport()->width() - bar - 2 * static_cast<int>(document()->documentMargin());
    return picture.width() > room ? picture.scaledToWidth(std::max(room, 1), Qt::SmoothTransformation) : picture;
  }
};

}  // namespace

ManualSheet::ManualSheet(QWidget* parent)
    : QDialog(parent), search_(new QLineEdit(this)), pages_(new QListWidget(this)), page_(new PageBrowser(this)) {
  setObjectName(QStringLiteral("manualSheet"));
  setWindowTitle(tr("Manual"));
  search_->setObjectName(QStringLiteral("manualSearch"));
  search_->setPlaceholderText(tr("Search all pages; Enter goes to the next place"));
  search_->setAccessibleName(tr("Search all pages"));
  search_->setClearButtonEnabled(true);
  pages_->setObjectName(QStringLiteral("manualPages"));
  pages_->setAccessibleName(tr("Pages"));
  page_->setObjectName(QStringLiteral("manualPage"));
  page_->setAccessibleName(tr("Page"));
  page_->setOpenLinks(false);
  for (const ManualPage& page : manual()) pages_->addItem(page.title);
  connect(search_, &QLineEdit::textChanged, this, &ManualSheet::filter);
  connect(search_, &QLineEdit::returnPressed, this, &ManualSheet::goToNext);
  connect(pages_, &QListWidget::currentRowChanged, this, &ManualSheet::showPage);
  connect(page_, &QTextBrowser::anchorClicked, this, &ManualSheet::follow);
  auto* columns = new QHBoxLayout;
  columns->setSpacing(space::inGroup);
  pages_->setFixedWidth(pages_->sizeHintForColumn(0) + 2 * pages_->frameWidth() + space::betweenGroups);
  columns->addWidget(pages_);
  columns->addWidget(page_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::betweenGroups, space::betweenGroups, space::betweenGroups);
  layout->setSpacing(space::inGroup);
  layout->addWidget(search_);
  layout->addLayout(columns);
  resize(120 * fontMetrics().averageCharWidth(), 36 * fontMetrics().lineSpacing());
  pages_->setCurrentRow(0);
  search_->setFocus();
}

void ManualSheet::filter() {
  const QString text = search_->text();
  int first = -1;
  for (int row = 0; row < pages_->count(); ++row) {
    const bool fits = manual()[static_cast<std::size_t>(row)].text.contains(text, Qt::CaseInsensitive);
    pages_->item(row)->setHidden(!fits);
    if (fits && first < 0) first = row;
  }
  if (pages_->currentRow() < 0 || pages_->currentItem()->isHidden()) pages_->setCurrentRow(first);
  markFound();
}

void ManualSheet::showPage(int row) {
  if (row < 0)
    page_->setPlainText(tr("No page has this text."));
  else
    page_->setMarkdown(manual()[static_cast<std::size_t>(row)].text);
  markFound();
}

void ManualSheet::follow(const QUrl& link) {
  const auto page = std::ranges::find(manual(), link.fileName().section(QLatin1Char('.'), 0, 0), &ManualPage::topic);
  if (!link.isRelative())
    QDesktopServices::openUrl(link);
  else if (page != manual().end())
    search_->clear(), pages_->setCurrentRow(static_cast<int>(page - manual().begin()));
}

void ManualSheet::markFound() {
  QList<QTextEdit::ExtraSelection> marks;
  const QString text = search_->text();
  if (!text.isEmpty())
    for (QTextCursor found = page_->document()->find(text); !found.isNull();
         found = page_->document()->find(text, found)) {
      QTextEdit::ExtraSelection mark;
      mark.cursor = found;
      mark.format.setBackground(palette().highlight());
      mark.format.setForeground(palette().highlightedText());
      marks.append(mark);
    }
  page_->setExtraSelections(marks);
  if (marks.isEmpty()) return;
  page_->moveCursor(QTextCursor::Start);
  goToNext();
}

void ManualSheet::goToNext() {
  if (search_->text().isEmpty() || page_->find(search_->text())) return;
  page_->moveCursor(QTextCursor::Start);  // past the last place comes the first
  page_->find(search_->text());
}

}  // namespace accrue::ui
