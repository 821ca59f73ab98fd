// SPDX-License-Identifier: Apache-2.0
// Checkpoints inside a window: what each dialect keeps of it, and that Accrue keeps all of it.
#include <QTest>
#include <csignal>
#include <filesystem>

#include "support/inline_data.h"
#include "support/training_body.h"

namespace test_resume_inside {

using namespace accrue;
using namespace accrue::test;

namespace {

namespace fs = std::filesystem;

constexpr int world = 2;
constexpr std::int64_t steps = 3;
constexpr std::int64_t micro_steps = 11;  // 21 samples in pairs on two ranks: six a epoch, the last one short

/// Ragged sequences, dropout-free but shuffled, with momentum and a moving rate: everything that a resume could lose.
std::string spec_text(const std::string& accumulation) {
  const auto length = [](int i) { return i % 5 + 1; };
  return "accrue = 1\n[model]\nkind = \"linear\"\noutputs = 2\nloss = \"cross_entropy\"\n"
         "[data]\nkind = \"inline\"\nsequences = " +
         lists(21, length, [](int i, int t) { return (i * 7 + t * 3) % 9 - 4 + 0.5; }) +
         "\nlabels = " + lists(21, length, [](int i, int t) { return (i + t) % 2; }) +
         "\n[optimizer]\nkind = \"adamw\"\nlr = 0.05\n[schedule]\nkind = \"linear\"\n"
         "[accumulation]\nmicro_batch = 2\n" +
         (accumulation.find("steps = ") == std::string::npos ? "steps = 3\n" : "") + accumulation +
         "\n[parallel]\ndata = 2\n[run]\nepochs = 2\n[checkpoint]\nevery_micro_steps = 1\nkeep = 2\n";
}

QString warnings(const TrainedRank& rank) {
  QStringList all;
  for (const Warning& warning : rank.all<Warning>()) all << QString::fromStdString(warning.message);
  return all.join('\n');
}

std::vector<std::int64_t> update_micro_steps(const TrainedRank& rank) {
  std::vector<std::int64_t> at;
  for (const Update& update : rank.all<Update>()) at.push_back(update.micro_step);
  return at;
}

/// Killed before a micro-step and resumed from the newest checkpoint: the resumed run's first rank.
TrainedRank killed_and_resumed(const std::string& spec, std::int64_t before) {
  const RunFolder dir;
  const auto killed = train({.spec = spec, .run_dir = dir, .kill_before = before}, world);
  if (killed.back().process.signal != SIGKILL) return killed.back();
  return train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, world).front();
}

}  // namespace

class TestResumeInside : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_kill_at_any_micro_step_ends_at_the_same_bits_data() {
    QTest::addColumn<QString>("accumulation");
    QTest::newRow("accrue") << "";
    QTest::newRow("counted before it is divided") << "normalize_when = \"eager\"";
    QTest::newRow("compensated, windows that cross epochs")
        << "accumulation_dtype = \"float32_compensated\"\ntail = \"carry\"";
    QTest::newRow("llm with all of its window kept") << "dialect = \"llm\"\ncheckpoint_scope = \"anywhere\"";
  }
  void a_kill_at_any_micro_step_ends_at_the_same_bits() {
    QFETCH(QString, accumulation);
    const std::string spec = spec_text(accumulation.toStdString());
    const TrainedRank whole = train({.spec = spec}, world).front();
    QVERIFY2(whole.outcome == "finished", whole.text().c_str());
    for (std::int64_t before = 2; before <= micro_steps; ++before) {
      const TrainedRank resumed = killed_and_resumed(spec, before);
      QVERIFY2(resumed.outcome == "finished", resumed.text().c_str());
      QVERIFY2(resumed.weights_sha256 == whole.weights_sha256, QByteArray::number(qlonglong(before)));
      QCOMPARE(warnings(resumed), QString());
      QCOMPARE(resumed.all<Update>().back().loss, whole.all<Update>().back().loss);
      QCOMPARE(resumed.all<Update>().back().tokens, whole.all<Update>().back().tokens);
    }
  }

  void accelerate_keeps_its_place_and_loses_its_gradients() {
    const std::string spec = spec_text("dialect = \"accelerate\"");
    const TrainedRank whole = train({.spec = spec}, world).front();
    const TrainedRank resumed = killed_and_resumed(spec, 6);  // two micro-steps into the second window
    QVERIFY2(resumed.outcome == "finished", resumed.text().c_str());
    QVERIFY(warnings(resumed).contains("the gradients of 2 micro-steps of the open window are lost"));
    auto expected = update_micro_steps(whole);
    expected.erase(expected.begin());
    QCOMPARE(update_micro_steps(resumed), expected);
    QVERIFY(resumed.weights_sha256 != whole.weights_sha256);
  }

  void llm_waits_for_the_end_of_its_window() {
    const RunFolder dir;
    const auto stopped = train({.spec = spec_text("dialect = \"llm\""), .run_dir = dir, .stop_before = 6}, world);
    QCOMPARE(stopped[0].outcome, std::string("stopped"));
    QVERIFY(fs::exists(dir / "checkpoints/step-1/manifest.json"));
    QVERIFY(!fs::exists(dir / "checkpoints/step-1+1"));
  }

  void colossalai_begins_its_window_anew() {
    const std::string spec = spec_text("dialect = \"colossalai\"\nuneven_ranks = \"empty_micro_steps\"");
    const TrainedRank resumed = killed_and_resumed(spec, 3);  // two micro-steps into the first window
    QVERIFY2(resumed.outcome == "finished", resumed.text().c_str());
    QVERIFY(warnings(resumed).contains("and so is the place in the window"));
    QCOMPARE(update_micro_steps(resumed).front(), 2 + steps);
  }

  void an_open_window_belongs_to_the_ranks_that_opened_it() {
    const RunFolder dir;
    train({.spec = spec_text(""), .run_dir = dir, .stop_before = 3}, world);
    QVERIFY(fs::exists(dir / "checkpoints/step-0+2/manifest.json"));
    const auto refused =
        train({.spec = spec_text(""), .set = {"parallel.data=1"}, .run_dir = dir, .resume_from = "newest"}, 1);
    QVERIFY2(refused[0].message.find("inside a window by 2 ranks, and there are 1 now") != std::string::npos,
             refused[0].text().c_str());
  }

  void evaluation_inside_a_window_changes_nothing() {
    const auto trained = [](const char* evaluate) {
      return train({.spec = spec_text(""), .set = {"data.validation_fraction=0.2", evaluate}}, world).front();
    };
    const TrainedRank plain = trained("evaluate.every_micro_steps=0");
    const TrainedRank evaluated = trained("evaluate.every_micro_steps=1");
    QVERIFY2(evaluated.outcome == "finished", evaluated.text().c_str());
    QVERIFY(evaluated.all<Evaluation>().size() > evaluated.all<Update>().size());
    QCOMPARE(evaluated.weights_sha256, plain.weights_sha256);
    QCOMPARE(update_micro_steps(evaluated), update_micro_steps(plain));
  }

  void mmengine_counts_from_its_iteration_or_replays_counting_from_0() {
    const auto updates = [](const std::string& more) {
      return update_micro_steps(killed_and_resumed(spec_text("dialect = \"mmengine\"\n" + more), 6));
    };
    QCOMPARE(updates(""), (std::vector<std::int64_t>{6, 9, 12}));
    // From 5 on: 8 and 11 are its third and sixth, and the flush at 12 never comes.
    QCOMPARE(updates("replay = [\"restart_count\"]"), (std::vector<std::int64_t>{8, 11}));
  }

  void llm_replays_a_rate_that_stays_where_it_was() {
    const RunFolder dir;
    const std::string spec = spec_text("dialect = \"llm\"\nreplay = [\"scheduler_state\"]");
    train({.spec = spec, .run_dir = dir, .stop_before = 7}, world);
    const TrainedRank resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, world).front();
    QVERIFY2(resumed.outcome == "finished", resumed.text().c_str());
    const auto updates = resumed.all<Update>();
    QCOMPARE(updates.size(), std::size_t{2});
    QCOMPARE(updates[0].lr, updates[1].lr);
  }

  void the_rate_that_llm_froze_survives_a_second_resume() {
    const RunFolder dir;
    const std::string spec = spec_text("dialect = \"llm\"\nsteps = 1\nreplay = [\"scheduler_state\"]");
    train({.spec = spec, .run_dir = dir, .stop_before = 3}, world);
    const auto second = train({.spec = spec, .run_dir = dir, .resume_from = "newest", .stop_before = 5}, world).front();
    const auto third = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, world).front();
    QVERIFY2(third.outcome == "finished", third.text().c_str());
    QVERIFY(!second.all<Update>().empty() && !third.all<Update>().empty());
    QCOMPARE(third.all<Update>().back().lr, second.all<Update>().front().lr);
  }
};

ACCRUE_RANK_TEST_MAIN(TestResumeInside, {{"train", train_body}})

}  // namespace test_resume_inside
#include "test_resume_inside.moc"
