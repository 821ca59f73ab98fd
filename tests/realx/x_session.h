// SPDX-License-Identifier: GPL-3.0-or-later
// An X server and a window manager of our own, a hand that types and clicks, and an eye.
#pragma once

#include <QImage>
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <QTemporaryDir>
#include <functional>

class XSession {
 public:
  ~XSession();
  /// Starts server and window manager; an empty answer means success.
  QString start();
  QProcessEnvironment environment() const { return environment_; }

  /// Runs xdotool with these arguments and returns its output; empty if it failed.
  QString tool(const QStringList& arguments) const;
  /// The id of a visible window whose title matches, waited for; empty when it did not come.
  QString window(const QString& title) const;
  void key(const QString& keys) const { tool({QStringLiteral("key"), QStringLiteral("--clearmodifiers"), keys}); }
  void type(const QString& text) const {
    tool({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("20"), text});
  }
  /// With the left button, at a place on the screen.
  void click(int x, int y) const {
    tool({QStringLiteral("mousemove"), QString::number(x), QString::number(y), QStringLiteral("click"),
          QStringLiteral("1")});
  }
  QString title(const QString& window) const;
  /// The screen as it is now.
  QImage picture() const;

 private:
  QProcess server_;
  QProcess manager_;
  QTemporaryDir screen_;  ///< the server's memory of it, as a file
  QProcessEnvironment environment_ = QProcessEnvironment::systemEnvironment();
};

/// Polls until the condition holds or the time is over.
bool waitUntil(const std::function<bool()>& condition, int timeout_ms = 30000);
