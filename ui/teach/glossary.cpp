// SPDX-License-Identifier: GPL-3.0-or-later
#include "glossary.h"

#include <QFile>
#include <QRegularExpression>
#include <algorithm>

namespace accrue::ui {

namespace {

/// `code`, *italic* and **bold** of Markdown as HTML.
QString html(const QString& markdown) {
  static const QRegularExpression bold(QStringLiteral("\\*\\*([^*]+)\\*\\*"));
  static const QRegularExpression code(QStringLiteral("`([^`]+)`"));
  static const QRegularExpression italic(QStringLiteral("\\*([^*]+)\\*"));
  QString text = markdown.toHtmlEscaped();
  text.replace(bold, QStringLiteral("<b>\\1</b>"));
  text.replace(code, QStringLiteral("<code>\\1</code>"));
  text.replace(italic, QStringLiteral("<i>\\1</i>"));
  return text;
}

QStringList wordsOf(const QString& cell) {
  static const QRegularExpression bold(QStringLiteral("\\*\\*([^*]+)\\*\\*"));
  QStringList words;
  for (auto found = bold.globalMatch(cell); found.hasNext();) words.append(found.next().captured(1));
  return words;
}

QStringList keysOf(const QString& cell) {
  static const QRegularExpression key(QStringLiteral("`([a-z_]+\\.[a-z_]+)`"));
  QStringList keys;
  for (auto found = key.globalMatch(cell); found.hasNext();) keys.append(found.next().captured(1));
  return keys;
}

}  // namespace

QString GlossaryEntry::plainText() const {
  static const QRegularExpression tag(QStringLiteral("<[^>]*>"));
  return QStringLiteral("%1 %2 %3").arg(words.join(QLatin1Char(' ')), meaning, elsewhere).remove(tag);
}

bool GlossaryEntry::has(const QString& text) const {
  const QString whole = plainText();
  const QStringList wanted = text.simplified().split(QLatin1Char(' '), Qt::SkipEmptyParts);
  return std::ranges::all_of(wanted,
                             [&whole](const QString& word) { return whole.contains(word, Qt::CaseInsensitive); });
}

std::vector<GlossaryEntry> readGlossary(const QString& markdown) {
  std::vector<GlossaryEntry> entries;
  for (const QString& line : markdown.split(QLatin1Char('\n'))) {
    if (!line.startsWith(QLatin1String("| **"))) continue;
    const QStringList cells = line.split(QLatin1Char('|'));
    if (cells.size() < 4) continue;
    GlossaryEntry entry{wordsOf(cells[1]), html(cells[2].trimmed()), html(cells[3].trimmed()), keysOf(cells[2])};
    // A word that is explained with another is bold in its meaning.
    entry.words += wordsOf(cells[2]);
    if (!entry.words.isEmpty()) entries.push_back(entry);
  }
  // As in a dictionary, without regard to case.
  std::ranges::sort(entries, [](const GlossaryEntry& left, const GlossaryEntry& right) {
    return left.words.front().compare(right.words.front(), Qt::CaseInsensitive) < 0;
  });
  return entries;
}

const std::vector<GlossaryEntry>& glossary() {
  static const std::vector<GlossaryEntry> entries = [] {
    QFile file(QStringLiteral(":/manual/glossary.md"));
    return file.open(QIODevice::ReadOnly) ? readGlossary(QString::fromUtf8(file.readAll()))
                                          : std::vector<GlossaryEntry>();
  }();
  return entries;
}

int glossaryEntryFor(const std::vector<GlossaryEntry>& entries, const QString& text) {
  int best = -1;
  qsizetype longest = 0;
  for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
    if (entries[static_cast<std::size_t>(i)].keys.contains(text)) return i;
    for (const QString& word : entries[static_cast<std::size_t>(i)].words) {
      if (word.compare(text, Qt::CaseInsensitive) == 0) return i;
      const QRegularExpression whole(QStringLiteral("\\b%1s?\\b").arg(QRegularExpression::escape(word)),
                                     QRegularExpression::CaseInsensitiveOption);
      if (word.size() <= longest || !text.contains(whole)) continue;
      longest = word.size();
      best = i;
    }
  }
  return best;
}

}  // namespace accrue::ui
