// SPDX-License-Identifier: Apache-2.0
// Losses are read at boundaries, and often enough for a live plot; never once a micro-step, for on a device each read
// waits for all that was computed. Operators are counted as they are called, which is the same on every device.
#include <ATen/record_function.h>

#include <QTest>
#include <atomic>
#include <chrono>
#include <cstring>

#include "support/rank_checks.h"
#include "support/training_body.h"

namespace test_read_backs {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t windows = 10;
constexpr std::int64_t micro_steps = 400;  // of each
constexpr std::int64_t frame_ms = 33;

std::atomic<std::int64_t> reads = 0;

/// Losses that wait are stacked and read together; whatever else is read becomes a scalar.
std::unique_ptr<at::ObserverContext> count_read(const at::RecordFunction& function) {
  for (const char* name : {"aten::stack", "aten::_local_scalar_dense"})
    if (std::strcmp(function.name(), name) == 0) ++reads;
  return nullptr;
}

int train_and_count(RankContext& rank) {
  const auto begin = std::chrono::steady_clock::now();
  at::addGlobalCallback(at::RecordFunctionCallback(count_read).scopes({at::RecordScope::FUNCTION}));
  const int status = train_body(rank);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  const std::int64_t frames = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count() / frame_ms;
  if (reads < windows || reads > 2 * windows + frames)
    throw std::runtime_error(std::to_string(reads) + " reads in " + std::to_string(windows) + " windows and " +
                             std::to_string(frames) + " frames");
  return status;
}

}  // namespace

class TestReadBacks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void losses_are_read_by_windows_and_frames_and_not_by_micro_steps() {
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [4]\n[data]\nkind = \"synthetic\"\nsamples = 4096\n"
        "[optimizer]\nkind = \"sgd\"\nlr = 0.01\n[accumulation]\nmicro_batch = 1\nsteps = " +
        std::to_string(micro_steps) + "\n[run]\nupdates = " + std::to_string(windows) + "\n";
    const auto ranks = train({.spec = spec}, 1);
    VERIFY_FINISHED(ranks);
    QVERIFY2(ranks[0].process.ok(), ranks[0].text().c_str());
    QCOMPARE(ranks[0].updates, windows);
  }
};

ACCRUE_RANK_TEST_MAIN(TestReadBacks, {{"train", train_and_count}})

}  // namespace test_read_backs
#include "test_read_backs.moc"
