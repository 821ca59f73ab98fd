// SPDX-License-Identifier: GPL-3.0-or-later
#include "single_instance.h"

#include <QCryptographicHash>
#include <QDataStream>
#include <QDir>
#include <QFile>
#include <QGuiApplication>
#include <QIODevice>
#include <QLocalSocket>

namespace accrue::ui {

namespace {

constexpr int answer_ms = 1000;
constexpr qsizetype message_limit = qsizetype{64} * 1024;

/// Socket paths hold 107 bytes and displays may have long names, so a short digest replaces the display.
QString displayKey() {
  const QByteArray display = QGuiApplication::platformName().toUtf8() + qgetenv("WAYLAND_DISPLAY") + qgetenv("DISPLAY");
  return QString::fromLatin1(QCryptographicHash::hash(display, QCryptographicHash::Sha1).toHex().left(8));
}

}  // namespace

SingleInstance::SingleInstance(const QString& socket_dir, QObject* parent)
    : QObject(parent),
      dir_(socket_dir),
      name_(QDir(socket_dir).filePath(QStringLiteral("studio-%1").arg(displayKey()))) {
  server_.setSocketOptions(QLocalServer::UserAccessOption);
  connect(&server_, &QLocalServer::newConnection, this, &SingleInstance::receive);
}

bool SingleInstance::handOver(const QStringList& files) const {
  QLocalSocket socket;
  socket.connectToServer(name_);
  if (!socket.waitForConnected(answer_ms)) return false;
  QByteArray message;
  QDataStream out(&message, QIODevice::WriteOnly);
  out << files;
  socket.write(message);
  socket.waitForBytesWritten(answer_ms);
  socket.disconnectFromServer();
  return true;
}

bool SingleInstance::listen() {
  QDir().mkpath(dir_);
  QFile::setPermissions(dir_, QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
  if (server_.listen(name_)) return true;
  // No process answered on that name a moment ago, so the socket is stale.
  QLocalServer::removeServer(name_);
  return server_.listen(name_);
}

void SingleInstance::receive() {
  QLocalSocket* socket = server_.nextPendingConnection();
  connect(socket, &QLocalSocket::disconnected, this, [this, socket] {
    const QByteArray message = socket->read(message_limit);
    socket->deleteLater();
    QStringList files;
    QDataStream in(message);
    in >> files;
    Q_EMIT filesReceived(files);
  });
}

}  // namespace accrue::ui
