// SPDX-License-Identifier: GPL-3.0-or-later
#include "studio_on_x.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QSettings>
#include <algorithm>

#include "accrue/run/fields/spec_fields.h"
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
    // An orphan that ended stays a zombie if no process reaps it, as in a container without an init.
    const QByteArray text = status.readAll();
    return text.mid(text.lastIndexOf(')') + 2, 1) != "Z";
  });
}

bool StudioOnX::press(const char* key, const std::function<bool()>& done) {
  return waitUntil([&] {
    x_.key(QLatin1String(key));
    return waitUntil(done, 3000);
  });
}

bool StudioOnX::choose(const char* menu, const char* command) {
  const QStringList visible{QStringLiteral("search"), QStringLiteral("--onlyvisible"), QStringLiteral("--pid"),
                            QString::number(studio_.processId())};
  const auto windows = [&] { return x_.tool(visible).split(QLatin1Char('\n')).size(); };
  const qsizetype before = windows();
  if (!press(menu, [&] { return windows() > before; })) return false;
  x_.key(QLatin1String(command));
  return true;
}

void StudioOnX::answer(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find('='));
  const accrue::SpecField* field = accrue::find_field(key);
  x_.key(QStringLiteral("ctrl+f"));
  x_.type(QString::fromStdString(key));
  x_.key(QStringLiteral("Return"));
  if (field->type == accrue::FieldType::boolean) {
    x_.key(QStringLiteral("space"));
  } else {
    if (field->type != accrue::FieldType::choice) x_.key(QStringLiteral("ctrl+a"));
    x_.type(QString::fromStdString(setting.substr(setting.find('=') + 1)));
  }
}

void StudioOnX::clickPlot() {
  x_.click(700, 200);
}

QString StudioOnX::begun(const std::function<void()>& start) {
  const QStringList before = runs();
  QString run;
  start();
  waitUntil([&] {
    for (const QString& each : runs())
      if (!before.contains(each)) run = each;
    return !run.isEmpty();
  });
  return run;
}

void StudioOnX::keepPicture(const QString& name) const {
  // Of a screen that has come to rest; the row of numbers at its foot goes on.
  constexpr int foot = 40, rest_ms = 200, patience_ms = 3000;
  QImage picture;
  QElapsedTimer since;
  waitUntil(
      [&] {
        const QImage now = x_.picture();
        const QImage above = now.copy(0, 0, now.width(), now.height() - foot);
        if (above != picture) since.start();
        picture = above;
        return since.elapsed() >= rest_ms;
      },
      patience_ms);
  const QDir folder(accrue::test::programPath("../test-results/pictures"));
  folder.mkpath(QStringLiteral("."));
  x_.picture().save(folder.filePath(name + QStringLiteral(".png")));
}

QVariant StudioOnX::setting(const char* key) const {
  return QSettings(home_.filePath(QStringLiteral(".local/state/accrue/studio.conf")), QSettings::IniFormat)
      .value(QLatin1String(key));
}
