// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QIcon>
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include "accrue/run/base/standard_streams.h"
#include "accrue/run/base/version.h"
#include "command_line.h"
#include "kit/app_paths.h"
#include "self_test.h"
#include "single_instance.h"
#include "wiring.h"

namespace {

void setIdentity() {
  QCoreApplication::setOrganizationName(QStringLiteral("Accrue"));
  QCoreApplication::setOrganizationDomain(QStringLiteral("accrue.org"));
  QCoreApplication::setApplicationName(QStringLiteral("accrue"));
  QCoreApplication::setApplicationVersion(QString::fromLatin1(accrue::version()));
  QGuiApplication::setApplicationDisplayName(QStringLiteral("Accrue"));
  QGuiApplication::setDesktopFileName(QStringLiteral("org.accrue.Accrue"));
}

/// Options that print and exit work without a display.
bool needsNoWindow(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const QByteArray argument(argv[i]);
    for (const char* option : {"--version", "-v", "--help", "-h", "--paths", "--selftest"})
      if (argument == option) return true;
  }
  return false;
}

/// A program's arguments, with "--plugin FILE" as one: QGuiApplication would take the two for its own option.
struct Arguments {
  Arguments(int given, char** words) {
    for (int i = 0; i < given; ++i) {
      const bool joins = QByteArrayView(words[i]) == "--plugin" && i + 1 < given;
      texts.push_back(joins ? QByteArray("--plugin=") + words[++i] : QByteArray(words[i]));
    }
    for (QByteArray& text : texts) pointers.push_back(text.data());
    count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
  }
  std::vector<QByteArray> texts;
  std::vector<char*> pointers;
  int count = 0;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace accrue::ui;
  accrue::open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file-size limit then fails the write, like a full disk
  setIdentity();
  if (needsNoWindow(argc, argv)) {
    const QCoreApplication application(argc, argv);
    const CommandLine line = parseCommandLine(QCoreApplication::arguments());
    if (line.self_test) {
      Q_INIT_RESOURCE(accrue);
      const int status = runSelfTest(bridgeOptions(false));
      if (status == 0) nameThePicture(appPaths().cache_dir);
      return status;
    }
    for (const auto& [name, path] : describePaths(appPaths()))
      std::printf("%s: %s\n", qPrintable(name), qPrintable(path));
    return 0;
  }
  Arguments arguments(argc, argv);
  QApplication application(arguments.count, arguments.pointers.data());
  Q_INIT_RESOURCE(accrue);
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/org.accrue.Accrue.svg")));
  const CommandLine line = parseCommandLine(QCoreApplication::arguments());
  const AppPaths paths = appPaths();
  if (!line.wantsInstanceOfItsOwn() && SingleInstance(paths.socket_dir).handOver(line.files)) return 0;
  Studio studio(application, line, paths);
  studio.start();
  return QApplication::exec();
}
