// SPDX-License-Identifier: Apache-2.0
// Addresses on which processes listen, read from /proc.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <QByteArray>
#include <QDir>
#include <QFile>
#include <QList>
#include <QSet>

namespace accrue::test {

/// Inodes of the sockets that a process holds.
inline QSet<QByteArray> sockets_of(pid_t pid) {
  QSet<QByteArray> inodes;
  const QDir folder(QStringLiteral("/proc/%1/fd").arg(pid));
  for (const auto& entry : folder.entryInfoList(QDir::Files | QDir::System | QDir::NoDotAndDotDot)) {
    char target[64] = "";
    const ssize_t length = ::readlink(entry.absoluteFilePath().toLocal8Bit().constData(), target, sizeof target - 1);
    const QByteArray text(target, length > 0 ? static_cast<qsizetype>(length) : 0);
    if (text.startsWith("socket:[")) inodes.insert(text.mid(8, text.size() - 9));
  }
  return inodes;
}

struct Listeners {
  int loopback = 0;
  QList<QByteArray> beyond;
};

/// Listening TCP sockets (state 0A) of the processes, by address.
inline Listeners listeners_of(const QList<pid_t>& pids) {
  QSet<QByteArray> inodes;
  for (const pid_t pid : pids) inodes.unite(sockets_of(pid));
  Listeners found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    QFile file(QString::fromLatin1(table));
    if (!file.open(QIODevice::ReadOnly)) continue;
    for (const QByteArray& line : file.readAll().split('\n')) {
      const auto fields = line.simplified().split(' ');
      if (fields.size() < 10 || fields[3] != "0A" || !inodes.contains(fields[9])) continue;
      const bool loopback =
          fields[1].startsWith("0100007F:") || fields[1].startsWith("00000000000000000000000001000000:");
      loopback ? void(++found.loopback) : found.beyond.append(line);
    }
  }
  return found;
}

}  // namespace accrue::test
