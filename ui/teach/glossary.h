// SPDX-License-Identifier: GPL-3.0-or-later
// The words that the program uses, read from the table of the glossary that the sources come with.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace accrue::ui {

struct GlossaryEntry {
  QStringList words;  ///< "encoder", "decoder": those that the entry explains, the first is its title
  QString meaning;    ///< as HTML
  QString elsewhere;  ///< the same thing in other systems; as HTML, may be empty
  QStringList keys;   ///< of a spec, "accumulation.steps": those that the meaning names
  QString plainText() const;
  /// Whether each word of the text occurs in the entry, somewhere.
  bool has(const QString& text) const;
};

/// The rows of a Markdown table of word, meaning and other names.
std::vector<GlossaryEntry> readGlossary(const QString& markdown);
/// The glossary that is compiled in.
const std::vector<GlossaryEntry>& glossary();
/// The entry that a text speaks of: whose word or key it is, else the longest of its words that occurs in it; -1 if
/// none does.
int glossaryEntryFor(const std::vector<GlossaryEntry>& entries, const QString& text);

}  // namespace accrue::ui
