// SPDX-License-Identifier: GPL-3.0-or-later
#include "self_test.h"

#include <QDir>
#include <QEventLoop>
#include <QFile>
#include <QSaveFile>
#include <QTemporaryDir>
#include <QTimer>
#include <chrono>
#include <cstdio>
#include <optional>
#include <variant>

#include "accrue/run/base/printable.h"
#include "accrue/run/preflight/preflight.h"

namespace accrue::ui {

namespace {

RunSpec selfTestSpec() {
  RunSpec spec;
  spec.model.kind = ModelKind::gpt;
  spec.model.layers = 1;
  spec.model.width = 16;
  spec.model.heads = 2;
  spec.model.context = 16;
  spec.data.samples = 32;
  spec.accumulation.steps = 2;
  spec.accumulation.micro_batch = 2;
  spec.parallel.data = 2;
  spec.run.updates = 4;
  return spec;
}

int refuse(const std::string& why) {
  std::printf("selftest: failed: %s\n", printable(why).c_str());
  return exit_status(ErrorCode::config);
}

}  // namespace

int runSelfTest(const BridgeOptions& options) {
  const QTemporaryDir folder;
  const Preflight checked = preflight_files(selfTestSpec(), local_facts(), folder.path().toStdString());
  if (!checked.plan) return refuse(checked.findings.empty() ? "no plan" : checked.findings.front().text());

  EngineBridge bridge(options);
  QEventLoop loop;
  std::optional<RunFinished> end;
  std::string trouble = "no end within 60 s";
  QObject::connect(&bridge, &EngineBridge::batch, &loop, [&](const EventBatch& events) {
    for (const RunEvent& event : events) {
      if (const auto* finished = std::get_if<RunFinished>(&event.body)) end = *finished;
      if (const auto* failed = std::get_if<RankFailed>(&event.body)) trouble = failed->message;
    }
  });
  QObject::connect(&bridge, &EngineBridge::stateChanged, &loop, [&loop](RunState state) {
    if (is_over(state)) loop.quit();
  });
  QTimer::singleShot(std::chrono::seconds(60), &loop, &QEventLoop::quit);
  const std::filesystem::path dir = folder.filePath(QStringLiteral("run")).toStdString();
  if (const auto started = bridge.start({.plan = *checked.plan, .run_dir = dir}); !started)
    return refuse(started.error().text());
  loop.exec();
  if (!end || end->outcome != "finished") {
    if (end && !end->reason.empty()) trouble = end->reason;
    std::printf("selftest: failed: %s\n", printable(trouble).c_str());
    return end && end->exit_status != 0 ? end->exit_status : exit_status(ErrorCode::peer_lost);
  }
  std::printf("selftest: ok, 2 ranks, %lld updates, loss %.6f, %.2f s\n", static_cast<long long>(end->updates),
              end->loss, end->seconds);
  return 0;
}

void nameThePicture(const QString& cacheDir) {
  const bool display = !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
  if (!display || qgetenv("QT_QPA_PLATFORM").startsWith("offscreen")) return;
  QFile picture(QStringLiteral(":/what-you-should-see.png"));
  QSaveFile copy(QDir(cacheDir).filePath(QStringLiteral("what-you-should-see.png")));
  if (!QDir().mkpath(cacheDir) || !picture.open(QIODevice::ReadOnly) || !copy.open(QIODevice::WriteOnly)) return;
  copy.write(picture.readAll());
  if (copy.commit()) std::fprintf(stderr, "what you should see: %s\n", qPrintable(copy.fileName()));
}

}  // namespace accrue::ui
