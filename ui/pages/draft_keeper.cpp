// SPDX-License-Identifier: GPL-3.0-or-later
#include "draft_keeper.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>
#include <utility>

#include "accrue/run/spec_io.h"
#include "models/spec_document.h"

namespace accrue::ui {

namespace {

constexpr auto base_mark = "# base_dir = ";
constexpr auto name_mark = "# name = ";

QString markedLine(const QString& text, const char* mark) {
  for (const QString& line : text.split(QLatin1Char('\n')))
    if (line.startsWith(QLatin1String(mark))) return line.mid(static_cast<qsizetype>(qstrlen(mark)));
  return {};
}

}  // namespace

DraftKeeper::DraftKeeper(SpecDocument* document, QString folder, QObject* parent)
    : QObject(parent), document_(document), folder_(std::move(folder)) {
  timer_.setSingleShot(true);
  timer_.setInterval(5000);
  connect(&timer_, &QTimer::timeout, this, &DraftKeeper::keep);
  connect(document_, &SpecDocument::changed, this, [this] {
    if (!timer_.isActive()) timer_.start();
  });
  connect(document_, &SpecDocument::fileChanged, this, &DraftKeeper::keep);
}

QString DraftKeeper::file() const {
  return QDir(folder_).filePath(QStringLiteral("draft.accrue"));
}

void DraftKeeper::keep() {
  timer_.stop();
  if (!document_->isModified()) {
    QFile::remove(file());
    return;
  }
  QDir().mkpath(folder_);
  QSaveFile out(file());
  if (!out.open(QIODevice::WriteOnly)) return;
  const QString text = QStringLiteral("%1%2\n%3%4\n%5")
                           .arg(QLatin1String(base_mark), QString::fromStdString(document_->baseDir().string()),
                                QLatin1String(name_mark), document_->displayName(),
                                QString::fromStdString(write_spec(document_->spec())));
  out.write(text.toUtf8());
  out.commit();
}

std::optional<Draft> DraftKeeper::takeLeftOver() {
  QFile in(file());
  if (!in.open(QIODevice::ReadOnly)) return std::nullopt;
  const QString text = QString::fromUtf8(in.readAll());
  const QDateTime when = QFileInfo(in).lastModified();
  in.close();
  QFile::remove(file());
  SpecReading reading = parse_spec(text.toStdString(), file().toStdString());
  if (!reading.ok()) return std::nullopt;
  return Draft{std::move(reading.spec), markedLine(text, name_mark), markedLine(text, base_mark), when};
}

}  // namespace accrue::ui
