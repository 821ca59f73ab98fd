// SPDX-License-Identifier: Apache-2.0
// The promise of checkpoints: every update up to the last commit survives, and what is computed again comes out to the
// same bits.
#include <QTest>
#include <filesystem>
#include <fstream>

#include "support/training_body.h"

namespace test_resume {

using namespace accrue;
using namespace accrue::test;

namespace {

namespace fs = std::filesystem;

std::string spec_text(int world, const std::string& rest = {}) {
  return "accrue = 1\n"
         "[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\nvocabulary = 48\ndropout = 0.1\n"
         "[data]\nkind = \"synthetic\"\nsamples = 200\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay = 0.1\nclip_norm = 1.0\n"
         "[schedule]\nkind = \"cosine\"\nwarmup = 5\n"
         "[accumulation]\nsteps = 3\nmicro_batch = 4\n[parallel]\ndata = " +
         std::to_string(world) + "\n[run]\nupdates = 45\n[checkpoint]\nevery_updates = 10\nkeep = 3\n" + rest;
}

std::int64_t first_update(const TrainedRank& rank) {
  const auto updates = rank.all<Update>();
  return updates.empty() ? 0 : updates.front().update;
}

void flip_byte(const fs::path& file, std::streamoff from_end) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-from_end, std::ios::end);
  const char byte = static_cast<char>(stream.get() ^ 1);
  stream.seekp(-from_end, std::ios::end);
  stream.put(byte);
}

}  // namespace

class TestResume : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Of four windows the second and the last have no label.
  void windows_without_a_label_are_counted_and_leave_the_loss() {
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"linear\"\noutputs = 2\nloss = \"cross_entropy\"\n"
        "[data]\nkind = \"inline\"\nshuffle = false\nsequences = [[1.0], [3.0], [4.0], [7.0], [1.0], [2.0], [3.0], "
        "[5.0]]\n"
        "labels = [[0], [1], [-100], [-100], [1], [0], [-100], [-100]]\n[optimizer]\nkind = \"sgd\"\n"
        "[accumulation]\nsteps = 1\nmicro_batch = 2\n[run]\nepochs = 1\n[checkpoint]\nevery_updates = 1\n";
    const RunFolder dir;
    const TrainedRank whole = train({.spec = spec}, 1).front();
    const TrainedRank stopped = train({.spec = spec, .run_dir = dir, .stop_before = 3}, 1).front();
    const TrainedRank resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 1).front();
    QVERIFY2(stopped.outcome == "stopped", stopped.text().c_str());
    QCOMPARE(stopped.all<RunFinished>().back().loss, whole.all<Update>().at(0).loss);
    for (const TrainedRank* rank : {&whole, &resumed}) {
      QVERIFY2(rank->outcome == "finished", rank->text().c_str());
      const Update last = rank->all<Update>().back();
      QVERIFY(last.outcome == StepOutcome::skipped_empty);
      QCOMPARE(last.empty_windows, 2);
      QCOMPARE(last.overflowed_windows, 0);
      QCOMPARE(rank->all<RunFinished>().back().loss, whole.all<Update>().at(2).loss);
    }
  }

  void initTestCase() {
    whole_ = train({.spec = spec_text(2), .run_dir = whole_dir_}, 2);
    QVERIFY2(whole_[0].outcome == "finished", whole_[0].text().c_str());
  }

  void a_killed_run_ends_at_the_same_bits() {
    const RunFolder dir;
    const auto killed = train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 26}, 2);
    QCOMPARE(killed[0].process.exit_status, 9);
    QVERIFY(fs::exists(dir / "checkpoints/step-20/manifest.json"));
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    for (const TrainedRank& rank : resumed) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, whole_[0].weights_sha256);
      QVERIFY(rank.all<Warning>().empty());
    }
    QCOMPARE(first_update(resumed[0]), 21);
    // Every update after the commit is the uninterrupted run's, in every figure that is not a time.
    const auto expected = whole_[0].all<Update>();
    for (const Update& update : resumed[0].all<Update>()) {
      const Update& same = expected[static_cast<std::size_t>(update.update - 1)];
      QCOMPARE(update.loss, same.loss);
      QCOMPARE(update.lr, same.lr);
      QCOMPARE(update.grad_norm, same.grad_norm);
      QCOMPARE(update.samples, same.samples);
      QCOMPARE(update.tokens, same.tokens);
      QCOMPARE(update.micro_step, same.micro_step);
    }
  }

  void the_final_weights_file_is_the_same() {
    QVERIFY(fs::exists(whole_dir_ / "final/model.safetensors"));
    QVERIFY(!fs::exists(whole_dir_ / "final/.model.safetensors.part"));
  }

  void a_stop_with_checkpoint_continues_where_it_stopped() {
    const RunFolder dir;
    const auto stopped = train({.spec = spec_text(2), .run_dir = dir, .stop_request = 13}, 2);
    for (const TrainedRank& rank : stopped) {
      QVERIFY2(rank.outcome == "stopped", rank.text().c_str());  // only the last rank was told: the others agreed
      QCOMPARE(rank.updates, 13);
    }
    QVERIFY(fs::exists(dir / "checkpoints/step-13/manifest.json"));
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QCOMPARE(first_update(resumed[0]), 14);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void a_checkpoint_requested_for_changes_nothing_else() {
    const RunFolder dir;
    const auto trained = train({.spec = spec_text(2), .run_dir = dir, .checkpoint_request = 44}, 2);
    QCOMPARE(trained[0].weights_sha256, whole_[0].weights_sha256);
    std::vector<std::string> paths;
    for (const CheckpointDone& done : trained[0].all<CheckpointDone>()) paths.push_back(done.path);
    const std::vector<std::string> expected{"checkpoints/step-10", "checkpoints/step-20", "checkpoints/step-30",
                                            "checkpoints/step-40", "checkpoints/step-44", "checkpoints/step-45"};
    QCOMPARE(paths, expected);
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(dir / "checkpoints")) kept += entry.is_directory();
    QCOMPARE(kept, 3);  // checkpoint.keep
  }

  void a_flipped_byte_is_refused_by_name_and_the_previous_one_taken() {
    const RunFolder dir;
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 36}, 2);
    flip_byte(dir / "checkpoints/step-30/shard-0.safetensors", 100);
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    QVERIFY(resumed[0].warned("step-30 was refused"));
    QVERIFY(resumed[0].warned("shard-0.safetensors"));
    QCOMPARE(first_update(resumed[0]), 21);
    QVERIFY(fs::exists(dir / "checkpoints/refused-step-30/shard-0.safetensors"));  // the new step-30 took only its name
    QVERIFY(fs::exists(dir / "checkpoints/step-30/manifest.json"));
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void a_damaged_shard_of_one_rank_sends_all_ranks_back() {
    const RunFolder dir;
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 36}, 2);
    fs::resize_file(dir / "checkpoints/step-30/shard-1.safetensors", 64);
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    for (const TrainedRank& rank : resumed) QCOMPARE(rank.weights_sha256, whole_[0].weights_sha256);
    QCOMPARE(first_update(resumed[0]), 21);
    QVERIFY(resumed[0].warned("shard-1.safetensors"));
  }

  void without_any_checkpoint_it_starts_over_and_says_so() {
    const RunFolder dir;
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY(resumed[0].warned("starts from the beginning"));
    QCOMPARE(first_update(resumed[0]), 1);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void without_a_good_one_among_the_checkpoints_it_names_them_all_and_touches_none() {
    const RunFolder dir;
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 22}, 2);
    fs::remove(dir / "checkpoints/step-10/manifest.json");
    flip_byte(dir / "checkpoints/step-20/shard-1.safetensors", 100);
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    for (const TrainedRank& rank : resumed) {
      QCOMPARE(rank.outcome, std::string("error protocol"));
      for (const char* words : {"step-20 was refused: ", "shard-1.safetensors", "step-10 was refused: "})
        QVERIFY2(rank.message.find(words) != std::string::npos, rank.text().c_str());
    }
    QVERIFY(resumed[0].all<Update>().empty());
    QVERIFY(fs::exists(dir / "checkpoints/step-10/shard-0.safetensors"));
    QVERIFY(fs::exists(dir / "checkpoints/step-20/shard-1.safetensors"));
  }

  void another_number_of_ranks_continues_and_is_labelled() {
    const RunFolder dir;
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 26}, 2);
    const auto resumed =
        train({.spec = spec_text(1), .set = {"accumulation.steps=6"}, .run_dir = dir, .resume_from = "newest"}, 1);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    QVERIFY(resumed[0].warned("not bit-exact"));
    QVERIFY(resumed[0].warned("number of ranks (saved with 2, now 1)"));
  }

  void another_model_is_refused_with_every_difference() {
    const auto resumed =
        train({.spec = spec_text(2), .set = {"model.layers=3"}, .run_dir = whole_dir_, .resume_from = "step-40"}, 2);
    QCOMPARE(resumed[0].outcome, std::string("error config"));
    QVERIFY2(resumed[0].message.find("another model") != std::string::npos, resumed[0].text().c_str());
    QVERIFY(resumed[0].message.find("blocks.2.") != std::string::npos);
  }

  void changed_data_is_refused() {
    const auto resumed =
        train({.spec = spec_text(2), .set = {"data.samples=201"}, .run_dir = whole_dir_, .resume_from = "step-40"}, 2);
    QCOMPARE(resumed[0].outcome, std::string("error data"));
    QVERIFY2(resumed[0].message.find("changed") != std::string::npos, resumed[0].text().c_str());
  }

  void a_full_disk_costs_the_checkpoint_and_not_the_run() {
    const RunFolder dir;
    const auto trained = train({.spec = spec_text(2), .run_dir = dir, .full_disk_update = 20}, 2);
    for (const TrainedRank& rank : trained) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, whole_[0].weights_sha256);
    }
    QVERIFY(trained[0].warned("checkpoint at update 20 failed"));
    QVERIFY(trained[0].warned("a file may hold at most"));
    QCOMPARE(trained[0].all<Warning>().front().what_to_do,
             std::string("The newest checkpoint is still step-10, and the next one is tried as planned."));
    QVERIFY(!fs::exists(dir / "checkpoints/step-20"));
    QVERIFY(fs::exists(dir / "checkpoints/step-30/manifest.json"));
    for (const auto& entry : fs::directory_iterator(dir / "checkpoints"))
      QVERIFY2(entry.path().filename().string().starts_with("step-"), entry.path().c_str());
  }

  void a_full_disk_at_the_end_promises_nothing() {
    const RunFolder dir;
    const auto stopped = train({.spec = spec_text(2), .run_dir = dir, .stop_request = 5, .full_disk_update = 5}, 2);
    const auto warned = stopped[0].all<Warning>();
    QCOMPARE(warned.size(), std::size_t{1});
    QVERIFY2(warned[0].message.find("checkpoint at update 5 failed") != std::string::npos, warned[0].message.c_str());
    QCOMPARE(warned[0].what_to_do, std::string("There is no checkpoint yet."));
  }

  void a_finished_run_resumes_to_its_end_at_once() {
    const auto again = train({.spec = spec_text(2), .run_dir = whole_dir_, .resume_from = "newest"}, 2);
    QVERIFY2(again[0].outcome == "finished", again[0].text().c_str());
    QVERIFY(again[0].all<Update>().empty());
    QCOMPARE(again[0].weights_sha256, whole_[0].weights_sha256);
    QCOMPARE(again[0].updates, 45);
  }

 private:
  RunFolder whole_dir_;
  std::vector<TrainedRank> whole_;
};

ACCRUE_RANK_TEST_MAIN(TestResume, {{"train", train_body}})

}  // namespace test_resume
#include "test_resume.moc"
