// SPDX-License-Identifier: GPL-3.0-or-later
#include "draft_keeper.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QLockFile>
#include <QSaveFile>
#include <QUuid>
#include <array>
#include <utility>

#include "accrue/run/fields/spec_io.h"
#include "spec_document.h"

namespace accrue::ui {

namespace {

constexpr auto base_mark = "# base_dir = ";
constexpr auto name_mark = "# name = ";
constexpr auto file_mark = "# file = ";
constexpr auto keep_mark = "# keep = ";
/// In the order of SampleLock.
constexpr std::array lock_names = {"nothing", "samples per update", "samples in total"};

QString markedLine(const QString& text, const char* mark) {
  for (const QString& line : text.split(QLatin1Char('\n')))
    if (line.startsWith(QLatin1String(mark))) return line.mid(static_cast<qsizetype>(qstrlen(mark)));
  return {};
}

SampleLock lockNamed(const QString& name) {
  for (std::size_t lock = 0; lock < lock_names.size(); ++lock)
    if (name == QLatin1String(lock_names[lock])) return static_cast<SampleLock>(lock);
  return SampleLock::none;
}

std::unique_ptr<QLockFile> lockFor(const QString& file) {
  auto lock = std::make_unique<QLockFile>(file + QStringLiteral(".lock"));
  lock->setStaleLockTime(0);  // never stale while its process lives
  return lock->tryLock(0) ? std::move(lock) : nullptr;
}

}  // namespace

DraftKeeper::DraftKeeper(SpecDocument* document, QString folder, QObject* parent)
    : QObject(parent),
      document_(document),
      folder_(std::move(folder)),
      id_(QUuid::createUuid().toString(QUuid::WithoutBraces)) {
  timer_.setSingleShot(true);
  timer_.setInterval(5000);
  connect(&timer_, &QTimer::timeout, this, &DraftKeeper::keep);
  const auto soon = [this] {
    if (!timer_.isActive()) timer_.start();
  };
  connect(document_, &SpecDocument::changed, this, soon);
  connect(document_, &SpecDocument::sampleLockChanged, this, soon);
  connect(document_, &SpecDocument::fileChanged, this, &DraftKeeper::keep);
}

DraftKeeper::~DraftKeeper() = default;

QString DraftKeeper::file() const {
  return QDir(folder_).filePath(QStringLiteral("draft-%1.accrue").arg(id_));
}

void DraftKeeper::keep() {
  timer_.stop();
  if (!document_->isModified()) {
    if (!own_lock_) return;
    QFile::remove(file());
    own_lock_.reset();
    return;
  }
  QDir().mkpath(folder_);
  if (!own_lock_) own_lock_ = lockFor(file());
  QSaveFile out(file());
  if (!out.open(QIODevice::WriteOnly)) return;
  const char* lock = lock_names[static_cast<std::size_t>(document_->sampleLock())];
  const QString text =
      QStringLiteral("%1%2\n%3%4\n%5%6\n%7%8\n%9")
          .arg(QLatin1String(base_mark), QString::fromStdString(document_->baseDir().string()),
               QLatin1String(name_mark), document_->displayName(), QLatin1String(file_mark), document_->filePath(),
               QLatin1String(keep_mark), QLatin1String(lock), QString::fromStdString(write_spec(document_->spec())));
  out.write(text.toUtf8());
  out.commit();
}

std::optional<Draft> DraftKeeper::leftOver() {
  const QDir dir(folder_);
  for (const QString& name : dir.entryList({QStringLiteral("draft-*.accrue")}, QDir::Files, QDir::Time)) {
    const QString path = dir.filePath(name);
    if (path == file()) continue;
    auto lock = lockFor(path);
    QFile in(path);
    if (!lock || !in.open(QIODevice::ReadOnly)) continue;
    const QString text = QString::fromUtf8(in.readAll());
    SpecReading reading = parse_spec(text.toStdString(), path.toStdString());
    if (!reading.ok()) continue;
    left_over_ = path;
    left_over_lock_ = std::move(lock);
    return Draft{std::move(reading.spec),
                 markedLine(text, name_mark),
                 markedLine(text, base_mark),
                 markedLine(text, file_mark),
                 lockNamed(markedLine(text, keep_mark)),
                 QFileInfo(in).lastModified()};
  }
  return std::nullopt;
}

void DraftKeeper::dropLeftOver() {
  QFile::remove(left_over_);
  left_over_.clear();
  left_over_lock_.reset();
}

}  // namespace accrue::ui
