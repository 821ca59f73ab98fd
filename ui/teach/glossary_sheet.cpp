// SPDX-License-Identifier: GPL-3.0-or-later
#include "glossary_sheet.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QListWidget>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "glossary.h"
#include "kit/theme.h"

namespace accrue::ui {

GlossarySheet::GlossarySheet(QWidget* parent)
    : QDialog(parent), search_(new QLineEdit(this)), words_(new QListWidget(this)), meaning_(new QTextBrowser(this)) {
  setObjectName(QStringLiteral("glossarySheet"));
  setWindowTitle(tr("Glossary"));
  search_->setObjectName(QStringLiteral("glossarySearch"));
  search_->setPlaceholderText(tr("Find a word, or its name in another tool"));
  search_->setAccessibleName(tr("Find a word"));
  search_->setClearButtonEnabled(true);
  words_->setObjectName(QStringLiteral("glossaryWords"));
  words_->setAccessibleName(tr("Words"));
  meaning_->setObjectName(QStringLiteral("glossaryMeaning"));
  meaning_->setAccessibleName(tr("Meaning"));
  meaning_->setOpenLinks(false);
  for (const GlossaryEntry& entry : glossary()) words_->addItem(entry.words.front());
  connect(search_, &QLineEdit::textChanged, this, &GlossarySheet::filter);
  connect(words_, &QListWidget::currentRowChanged, this, &GlossarySheet::showEntry);
  auto* columns = new QHBoxLayout;
  columns->setSpacing(space::inGroup);
  columns->addWidget(words_, 1);
  columns->addWidget(meaning_, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::betweenGroups, space::betweenGroups, space::betweenGroups);
  layout->setSpacing(space::inGroup);
  layout->addWidget(search_);
  layout->addLayout(columns);
  resize(40 * fontMetrics().averageCharWidth() * 2, 24 * fontMetrics().lineSpacing());
  words_->setCurrentRow(0);
}

void GlossarySheet::openAt(const QString& text, const QString& help) {
  search_->clear();
  const int entry = text.isEmpty() ? -1 : glossaryEntryFor(glossary(), text);
  if (entry >= 0 || !help.isEmpty()) words_->setCurrentRow(entry);
  words_->scrollToItem(words_->currentItem());
  if (!help.isEmpty()) meaning_->setHtml(entry < 0 ? help : help + entryText(entry));
  search_->setFocus(Qt::ShortcutFocusReason);
}

void GlossarySheet::filter(const QString& text) {
  int first = -1;
  for (int row = 0; row < words_->count(); ++row) {
    const bool fits = glossary()[static_cast<std::size_t>(row)].has(text);
    words_->item(row)->setHidden(!fits);
    if (fits && first < 0) first = row;
  }
  // A matching title takes precedence over a word inside a meaning.
  const int meant = text.isEmpty() ? -1 : glossaryEntryFor(glossary(), text);
  if (meant >= 0 && !words_->item(meant)->isHidden()) first = meant;
  words_->setCurrentRow(first);
}

void GlossarySheet::showEntry(int row) {
  if (row < 0)
    meaning_->setPlainText(tr("No word of the glossary has this text."));
  else
    meaning_->setHtml(entryText(row));
}

QString GlossarySheet::entryText(int row) {
  const GlossaryEntry& entry = glossary()[static_cast<std::size_t>(row)];
  QString text = QStringLiteral("<h3>%1</h3><p>%2</p>").arg(entry.words.front().toHtmlEscaped(), entry.meaning);
  if (!entry.elsewhere.isEmpty()) text += QStringLiteral("<p>%1</p>").arg(tr("Elsewhere: %1").arg(entry.elsewhere));
  return text;
}

QString focusedHelp(const QWidget* focus) {
  for (const QWidget* widget = focus; widget && !widget->isWindow(); widget = widget->parentWidget())
    if (widget->objectName().startsWith(QLatin1String("field.")))
      return QStringLiteral("<h3>%1</h3>%2").arg(widget->accessibleName().toHtmlEscaped(), widget->toolTip());
  return {};
}

QString focusedWords(const QWidget* focus) {
  const auto isExplained = [](const QString& text) {
    return !text.isEmpty() && glossaryEntryFor(glossary(), text) >= 0;
  };
  for (const QWidget* widget = focus; widget && !widget->isWindow(); widget = widget->parentWidget()) {
    const QString name = widget->objectName(), label = widget->accessibleName();
    if (name.startsWith(QLatin1String("field."))) {
      // By its key, its label, or a word of its key. Its section, the set-up, is not informative.
      const QString key = name.section(QLatin1Char('.'), 1);
      for (const QString& text :
           {key, label, key.section(QLatin1Char('.'), 1).replace(QLatin1Char('_'), QLatin1Char(' '))})
        if (isExplained(text)) return text;
      return {};
    }
    for (const QString& text : {widget->whatsThis(), label})
      if (isExplained(text)) return text;
  }
  return {};
}

}  // namespace accrue::ui
