// SPDX-License-Identifier: GPL-3.0-or-later
#include "x_session.h"

#include <QFile>
#include <QProcess>
#include <QTest>
#include <QtEndian>

bool waitUntil(const std::function<bool()>& condition, int timeout_ms) {
  return QTest::qWaitFor(condition, timeout_ms);
}

XSession::~XSession() {
  for (QProcess* process : {&manager_, &server_}) {
    if (process->state() == QProcess::NotRunning) continue;
    process->terminate();
    if (!process->waitForFinished(5000)) process->kill();
    process->waitForFinished(5000);
  }
}

QString XSession::start() {
  // The server picks a free display and writes its number down when it is ready.
  server_.setStandardErrorFile(QProcess::nullDevice());
  server_.start(QStringLiteral("Xvfb"),
                {QStringLiteral("-displayfd"), QStringLiteral("1"), QStringLiteral("-screen"), QStringLiteral("0"),
                 QStringLiteral("1366x768x24"), QStringLiteral("-nolisten"), QStringLiteral("tcp"),
                 QStringLiteral("-noreset"), QStringLiteral("-fbdir"), screen_.path()});
  if (!server_.waitForReadyRead(20000)) return QStringLiteral("Xvfb did not start");
  const QString display = QStringLiteral(":%1").arg(QString::fromLatin1(server_.readAllStandardOutput()).trimmed());
  environment_.insert(QStringLiteral("DISPLAY"), display);
  environment_.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb"));
  environment_.remove(QStringLiteral("WAYLAND_DISPLAY"));
  manager_.setProcessEnvironment(environment_);
  manager_.setStandardErrorFile(QProcess::nullDevice());
  // A window that opens while the manager is taking over the screen may be lost: wait until it answers for desktops.
  // One that the server turned away in its first moments is started again.
  const auto manages = [this] {
    if (manager_.state() == QProcess::NotRunning) manager_.start(QStringLiteral("openbox"), QStringList());
    return manager_.waitForStarted(10000) && !tool({QStringLiteral("get_num_desktops")}).isEmpty();
  };
  if (!waitUntil(manages)) return QStringLiteral("openbox does not manage the screen");
  return {};
}

QString XSession::tool(const QStringList& arguments) const {
  QProcess process;
  process.setProcessEnvironment(environment_);
  process.start(QStringLiteral("xdotool"), arguments);
  if (!process.waitForFinished(20000) || process.exitCode() != 0) return {};
  return QString::fromUtf8(process.readAllStandardOutput()).trimmed();
}

QString XSession::window(const QString& title) const {
  QString id;
  waitUntil([&] {
    id = tool({QStringLiteral("search"), QStringLiteral("--onlyvisible"), QStringLiteral("--name"), title})
             .section(QLatin1Char('\n'), 0, 0);
    return !id.isEmpty();
  });
  return id;
}

// The file is an X window dump: a header of big-endian words, colours of twelve bytes, and the rows.
QImage XSession::picture() const {
  enum Word { header_bytes = 0, width = 4, height = 5, row_bytes = 12, colours = 19, words = 25 };
  QFile file(screen_.filePath(QStringLiteral("Xvfb_screen0")));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray dump = file.readAll();
  if (dump.size() < 4 * words) return {};
  const auto word = [&dump](Word at) { return static_cast<int>(qFromBigEndian<quint32>(dump.constData() + 4 * at)); };
  const qsizetype begin = word(header_bytes) + 12 * word(colours);
  if (dump.size() < begin + static_cast<qsizetype>(word(row_bytes)) * word(height)) return {};
  const auto* rows = reinterpret_cast<const uchar*>(dump.constData() + begin);
  return QImage(rows, word(width), word(height), word(row_bytes), QImage::Format_RGB32).copy();
}

QString XSession::title(const QString& window) const {
  return tool({QStringLiteral("getwindowname"), window});
}
