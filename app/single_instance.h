// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLocalServer>
#include <QObject>
#include <QStringList>

namespace accrue::ui {

/// One window per user and display: a second start passes its files to the first and exits.
class SingleInstance : public QObject {
  Q_OBJECT

 public:
  explicit SingleInstance(const QString& socket_dir, QObject* parent = nullptr);

  /// Returns true if another instance took the files.
  bool handOver(const QStringList& files) const;
  /// Becomes the instance that receives the files of later starts.
  bool listen();

 Q_SIGNALS:
  /// Files of a later start; empty: show the window.
  void filesReceived(const QStringList& files);

 private:
  void receive();

  QString dir_;
  QString name_;
  QLocalServer server_;
};

}  // namespace accrue::ui
