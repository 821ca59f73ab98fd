// SPDX-License-Identifier: GPL-3.0-or-later
// Words of the program, read from the glossary's table in the sources.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace accrue::ui {

struct GlossaryEntry {
  QStringList words;  ///< words that the entry explains, such as "encoder", "decoder"; the first is its title
  QString meaning;    ///< as HTML
  QString elsewhere;  ///< names in other systems; as HTML, may be empty
  QStringList keys;   ///< keys of a spec that the meaning names, such as "accumulation.steps"
  QString plainText() const;
  /// Whether every word of the text occurs in the entry.
  bool has(const QString& text) const;
};

/// Returns the rows of a Markdown table of word, meaning and other names.
std::vector<GlossaryEntry> readGlossary(const QString& markdown);
/// The glossary that is compiled in.
const std::vector<GlossaryEntry>& glossary();
/// Returns the entry for a text: that with this word or key, else that of the longest contained word; -1 if there is
/// none.
int glossaryEntryFor(const std::vector<GlossaryEntry>& entries, const QString& text);

}  // namespace accrue::ui
