// SPDX-License-Identifier: GPL-3.0-or-later
// The loss as a tone, heard by a test in place of a device.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "models/tone.h"
#include "pages/loss_tone.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_loss_tone {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Hears what is played, or says that it cannot be.
class Listener final : public AudioOutput {
 public:
  explicit Listener(QString problem = {}) : problem_(std::move(problem)) {}
  QString play(const std::vector<std::int16_t>& samples) override {
    ++tones;
    heard = static_cast<int>(std::ranges::count_if(samples, [](std::int16_t sample) { return sample != 0; }));
    return problem_;
  }
  void close() override { ++closed; }
  std::atomic<int> closed = 0;
  std::atomic<int> tones = 0;
  std::atomic<int> heard = 0;

 private:
  QString problem_;
};

int risesThroughZero(const std::vector<std::int16_t>& samples) {
  int count = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) count += samples[i - 1] <= 0 && samples[i] > 0;
  return count;
}

}  // namespace

class TestLossTone : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void equal_differences_of_the_loss_are_equal_intervals() {
    QCOMPARE(toneHz(1.0, 1.0, 3.0), 220.0);
    QCOMPARE(toneHz(2.0, 1.0, 3.0), 440.0);
    QCOMPARE(toneHz(3.0, 1.0, 3.0), 880.0);
    QCOMPARE(toneHz(1.5, 1.0, 3.0) / toneHz(1.0, 1.0, 3.0), toneHz(3.0, 1.0, 3.0) / toneHz(2.5, 1.0, 3.0));
    QCOMPARE(toneHz(9.0, 1.0, 3.0), 880.0);
    QCOMPARE(toneHz(0.0, 1.0, 3.0), 220.0);
    QCOMPARE(toneHz(5.0, 5.0, 5.0), 440.0);
    QCOMPARE(toneHz(std::nan(""), 1.0, 3.0), 110.0);
    QCOMPARE(toneHz(HUGE_VAL, 1.0, 3.0), 110.0);
  }

  void a_tone_has_its_pitch_and_does_not_click() {
    for (const double hz : {110.0, 440.0, 880.0}) {
      const std::vector<std::int16_t> samples = toneSamples(hz, 0.5);
      QCOMPARE(samples.size(), std::size_t{22050});
      QVERIFY(std::abs(risesThroughZero(samples) - hz * 0.5) <= 1.0);
      QCOMPARE(samples.front(), std::int16_t{0});
      QVERIFY(std::abs(samples.back()) < 20);
      const auto [low, high] = std::ranges::minmax(samples);
      QVERIFY(high > 10'000 && high < 11'000 && low < -10'000 && low > -11'000);
      for (std::size_t i = 0; i < 44; ++i) QVERIFY(std::abs(samples[i]) < 1200);  // the first millisecond
    }
  }

  void a_run_is_heard_only_while_it_is_switched_on() {
    RunningStudio studio("micro_ms=2");
    const auto listener = std::make_shared<Listener>();
    LossTone tone(studio.control.get(), listener);
    studio.control->togglePause();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QCOMPARE(listener->tones.load(), 0);
    tone.setOn(true);
    QTRY_COMPARE_WITH_TIMEOUT(listener->tones.load(), 1, patience_ms);  // the loss where it stands
    QVERIFY(listener->heard > 4000);
    studio.control->togglePause();
    QTRY_VERIFY_WITH_TIMEOUT(listener->tones > 3, patience_ms);
    QCOMPARE(listener->closed.load(), 0);
    tone.setOn(false);
    QTRY_COMPARE_WITH_TIMEOUT(listener->closed.load(), 1, patience_ms);  // others may have the device
    studio.endRun();
  }

  void what_cannot_be_heard_is_said_once() {
    RunningStudio studio("micro_ms=2");
    const auto listener = std::make_shared<Listener>(QStringLiteral("No device."));
    LossTone tone(studio.control.get(), listener);
    QSignalSpy failed(&tone, &LossTone::failed);
    tone.setOn(true);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    QVERIFY(!tone.isOn());
    const std::int64_t before = studio.control->run()->last().update;
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().update > before + 3, patience_ms);
    QCOMPARE(listener->tones.load(), 1);
    QCOMPARE(failed.count(), 1);
    studio.endRun();
  }

  void the_view_menu_has_it_and_it_is_off_at_first() {
    StudioFixture studio;
    studio.show();
    QAction* action = studio.action("lossToneAction");
    QVERIFY(action && action->isCheckable() && !action->isChecked());
    action->setChecked(true);
    QVERIFY(studio.settings->value(QStringLiteral("view/lossTone")).toBool());
    auto* tone = studio.window->findChild<LossTone*>();
    QVERIFY(tone->isOn());
    Q_EMIT tone->failed(QStringLiteral("No device."));
    QVERIFY(!action->isChecked());
    QCOMPARE(studio.find<MessageBar>("messageBar")->text(), QStringLiteral("No device."));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestLossTone)

}  // namespace test_loss_tone
#include "test_loss_tone.moc"
