// SPDX-License-Identifier: GPL-3.0-or-later
#include "manual.h"

#include <QFile>
#include <QRegularExpression>
#include <QTextDocument>

namespace accrue::ui {

namespace {

QString textOf(const QString& resource) {
  QFile file(resource);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

ManualPage readPage(const QString& topic) {
  static const QRegularExpression intoSources(QStringLiteral("\\[([^\\]]+)\\]\\(\\.\\./(?!screenshots)[^)]*\\)"));
  QString text = textOf(QStringLiteral(":/manual/%1.md").arg(topic));
  text.replace(intoSources, QStringLiteral("`\\1`"));
  QTextDocument page;
  page.setMarkdown(text);
  return {topic, text.section(QLatin1Char('\n'), 0, 0).mid(2), text, page.toPlainText()};
}

}  // namespace

const std::vector<ManualPage>& manual() {
  static const std::vector<ManualPage> pages = [] {
    std::vector<ManualPage> read;
    const QString contents = textOf(QStringLiteral(":/manual/contents.txt"));
    for (const QString& topic : contents.split(QLatin1Char('\n'), Qt::SkipEmptyParts)) read.push_back(readPage(topic));
    return read;
  }();
  return pages;
}

}  // namespace accrue::ui
