// SPDX-License-Identifier: GPL-3.0-or-later
#include "studio_on_x.h"

#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <algorithm>

#include "support/places.h"

StudioOnX::~StudioOnX() {
  if (studio_.state() == QProcess::NotRunning) return;
  studio_.kill();
  studio_.waitForFinished();
}

bool StudioOnX::begin(const char* rank_program, const char* script) {
  if (const QString problem = x_.start(); !problem.isEmpty()) {
    qWarning("%s", qPrintable(problem));
    return false;
  }
  QProcessEnvironment environment = x_.environment();
  environment.insert(QStringLiteral("HOME"), home_.path());
  environment.insert(QStringLiteral("XDG_RUNTIME_DIR"), home_.path());
  for (const char* name : {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"})
    environment.remove(QLatin1String(name));
  environment.insert(QStringLiteral("ACCRUE_RANK_PROGRAM"), accrue::test::programPath(rank_program));
  environment.insert(QStringLiteral("ACCRUE_FAKE_RANK"), QLatin1String(script));
  studio_.setProcessEnvironment(environment);
  studio_.setProcessChannelMode(QProcess::ForwardedChannels);
  return true;
}

bool StudioOnX::startStudio(const QStringList& arguments) {
  studio_.start(accrue::test::programPath("accrue"), QStringList{QStringLiteral("--new-instance")} + arguments);
  if (!studio_.waitForStarted()) return false;
  window_ = x_.window(QStringLiteral(" - Accrue$"));
  return !window_.isEmpty() && waitUntil([this] { return x_.tool({QStringLiteral("getactivewindow")}) == window_; });
}

QStringList StudioOnX::runs() const {
  const QDir dir(home_.filePath(QStringLiteral(".local/share/accrue/runs")));
  QStringList paths;
  for (const QString& name : dir.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name))
    paths.append(dir.filePath(name));
  return paths;
}

QList<QJsonObject> StudioOnX::events(const QString& run, const QString& kind) const {
  QFile file(QDir(run).filePath(QStringLiteral("events.jsonl")));
  QList<QJsonObject> found;
  if (!file.open(QIODevice::ReadOnly)) return found;
  for (const QByteArray& line : file.readAll().split('\n')) {
    const QJsonObject event = QJsonDocument::fromJson(line).object();
    if (event.value(QStringLiteral("kind")).toString() == kind) found.append(event);
  }
  return found;
}

QString StudioOnX::state(const QString& run) const {
  const QList<QJsonObject> changes = events(run, QStringLiteral("state"));
  return changes.isEmpty() ? QString() : changes.last().value(QStringLiteral("state")).toString();
}

bool StudioOnX::ranksAreGone(const QString& run) const {
  const QList<QJsonObject> ready = events(run, QStringLiteral("rank_ready"));
  return !ready.isEmpty() && std::none_of(ready.begin(), ready.end(), [](const QJsonObject& rank) {
    QFile status(QStringLiteral("/proc/%1/stat").arg(rank.value(QStringLiteral("pid")).toInteger()));
    if (!status.open(QIODevice::ReadOnly)) return false;
    // An orphan that ended stays a zombie where nobody reaps it, as in a container without an init.
    const QByteArray text = status.readAll();
    return text.mid(text.lastIndexOf(')') + 2, 1) != "Z";
  });
}
