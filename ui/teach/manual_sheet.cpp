// SPDX-License-Identifier: GPL-3.0-or-later
#include "manual_sheet.h"

#include <QDesktopServices>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollBar>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "kit/command_table.h"
#include "kit/theme.h"
#include "manual.h"

namespace accrue::ui {

namespace {

/// Pictures come from the resources, at most as wide as the page.
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
    : QDialog(parent),
      search_(new QLineEdit(this)),
      back_(new QPushButton(tr("&Back"), this)),
      pages_(new QListWidget(this)),
      page_(new PageBrowser(this)) {
  setObjectName(QStringLiteral("manualSheet"));
  setWindowTitle(tr("Manual"));
  search_->setObjectName(QStringLiteral("manualSearch"));
  search_->setPlaceholderText(tr("Search all pages for words; Enter goes to the next place"));
  search_->setAccessibleName(tr("Search all pages"));
  search_->setClearButtonEnabled(true);
  pages_->setObjectName(QStringLiteral("manualPages"));
  pages_->setAccessibleName(tr("Pages"));
  page_->setObjectName(QStringLiteral("manualPage"));
  page_->setAccessibleName(tr("Page"));
  page_->setOpenLinks(false);
  back_->setObjectName(QStringLiteral("manualBack"));
  back_->setShortcut(keysOf(Command::manualBack).value(0));
  back_->setAutoDefault(false);
  back_->setEnabled(false);
  for (const ManualPage& page : manual()) pages_->addItem(page.title);
  connect(search_, &QLineEdit::textChanged, this, &ManualSheet::filter);
  connect(search_, &QLineEdit::returnPressed, this, &ManualSheet::goToNext);
  connect(pages_, &QListWidget::currentRowChanged, this, &ManualSheet::showPage);
  connect(page_, &QTextBrowser::anchorClicked, this, &ManualSheet::follow);
  connect(back_, &QPushButton::clicked, this, &ManualSheet::goBack);
  auto* columns = new QHBoxLayout;
  columns->setSpacing(space::inGroup);
  pages_->setFixedWidth(pages_->sizeHintForColumn(0) + 2 * pages_->frameWidth() + space::betweenGroups);
  columns->addWidget(pages_);
  columns->addWidget(page_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::betweenGroups, space::betweenGroups, space::betweenGroups);
  layout->setSpacing(space::inGroup);
  auto* top = new QHBoxLayout;
  top->setSpacing(space::inGroup);
  top->addWidget(back_);
  top->addWidget(search_, 1);
  layout->addLayout(top);
  layout->addLayout(columns);
  resize(120 * fontMetrics().averageCharWidth(), 36 * fontMetrics().lineSpacing());
  pages_->setCurrentRow(0);
  search_->setFocus();
}

QStringList ManualSheet::words() const {
  return search_->text().split(QLatin1Char(' '), Qt::SkipEmptyParts);
}

void ManualSheet::filter() {
  const QStringList wanted = words();
  int first = -1;
  for (int row = 0; row < pages_->count(); ++row) {
    const QString& shown = manual()[static_cast<std::size_t>(row)].shown;
    const bool fits = std::ranges::all_of(
        wanted, [&shown](const QString& word) { return shown.contains(word, Qt::CaseInsensitive); });
    pages_->item(row)->setHidden(!fits);
    if (fits && first < 0) first = row;
  }
  if (pages_->currentRow() < 0 || pages_->currentItem()->isHidden()) pages_->setCurrentRow(first);
  markFound();
}

void ManualSheet::showPage(int row) {
  if (row < 0)
    page_->setPlainText(tr("No page has all of these words."));
  else
    page_->setMarkdown(manual()[static_cast<std::size_t>(row)].text);
  markFound();
}

void ManualSheet::follow(const QUrl& link) {
  const auto page = std::ranges::find(manual(), link.fileName().section(QLatin1Char('.'), 0, 0), &ManualPage::topic);
  if (!link.isRelative()) QDesktopServices::openUrl(link);
  if (!link.isRelative() || page == manual().end()) return;
  visited_.push_back(pages_->currentRow());
  back_->setEnabled(true);
  search_->clear();
  pages_->setCurrentRow(static_cast<int>(page - manual().begin()));
}

void ManualSheet::goBack() {
  if (visited_.empty()) return;
  search_->clear();
  pages_->setCurrentRow(visited_.back());
  visited_.pop_back();
  back_->setEnabled(!visited_.empty());
}

void ManualSheet::markFound() {
  found_.clear();
  at_ = -1;
  QList<QTextEdit::ExtraSelection> marks;
  for (const QString& word : words())
    for (QTextCursor place = page_->document()->find(word); !place.isNull();
         place = page_->document()->find(word, place)) {
      QTextEdit::ExtraSelection mark;
      mark.cursor = place;
      mark.format.setFontUnderline(true);
      mark.format.setBackground(palette().alternateBase());
      marks.append(mark);
      found_.append(place);
    }
  std::ranges::sort(found_, {}, &QTextCursor::position);
  page_->setExtraSelections(marks);
  goToNext();
}

/// After the last match comes the first again.
void ManualSheet::goToNext() {
  if (found_.isEmpty()) return;
  at_ = (at_ + 1) % found_.size();
  page_->setTextCursor(found_[at_]);
  page_->ensureCursorVisible();
}

}  // namespace accrue::ui
