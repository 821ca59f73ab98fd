// SPDX-License-Identifier: GPL-3.0-or-later
#include "tip_text.h"

#include <QStringList>

namespace accrue::ui {

QString tipText(const QString& text) {
  constexpr qsizetype most = 60;
  QStringList lines;
  for (const QString& paragraph : text.split(QLatin1Char('\n'))) {
    lines.append(QString());
    for (const QString& word : paragraph.split(QLatin1Char(' '))) {
      QString& line = lines.last();
      if (line.isEmpty())
        line = word;
      else if (line.size() + 1 + word.size() <= most)
        line += QLatin1Char(' ') + word;
      else
        lines.append(word);
    }
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace accrue::ui
