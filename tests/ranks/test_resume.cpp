// SPDX-License-Identifier: Apache-2.0
// The promise of checkpoints: every update up to the last commit survives, and what is computed again comes out to the
// same bits.
#include <QtTest>
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

bool has_warning(const TrainedRank& rank, const std::string& part) {
  for (const Warning& warning : rank.all<Warning>())
    if (warning.message.find(part) != std::string::npos) return true;
  return false;
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
  void initTestCase() {
    QVERIFY(whole_dir_.isValid());
    whole_ = train({.spec = spec_text(2), .run_dir = whole_dir_.path().toStdString()}, 2);
    QVERIFY2(whole_[0].outcome == "finished", whole_[0].text().c_str());
  }

  void a_killed_run_ends_at_the_same_bits() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto killed = train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 26}, 2);
    QCOMPARE(killed[0].process.exit_status, 9);
    QVERIFY(fs::exists(dir + "/checkpoints/step-20/manifest.json"));
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
    QVERIFY(fs::exists(whole_dir_.path().toStdString() + "/final/model.safetensors"));
    QVERIFY(!fs::exists(whole_dir_.path().toStdString() + "/final/.model.safetensors.part"));
  }

  void a_stop_with_checkpoint_continues_where_it_stopped() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto stopped = train({.spec = spec_text(2), .run_dir = dir, .stop_wish = 13}, 2);
    for (const TrainedRank& rank : stopped) {
      QVERIFY2(rank.outcome == "stopped", rank.text().c_str());  // only the last rank was told: the others agreed
      QCOMPARE(rank.updates, 13);
    }
    QVERIFY(fs::exists(dir + "/checkpoints/step-13/manifest.json"));
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QCOMPARE(first_update(resumed[0]), 14);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void a_checkpoint_wished_for_changes_nothing_else() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto trained = train({.spec = spec_text(2), .run_dir = dir, .checkpoint_wish = 44}, 2);
    QCOMPARE(trained[0].weights_sha256, whole_[0].weights_sha256);
    std::vector<std::string> paths;
    for (const CheckpointDone& done : trained[0].all<CheckpointDone>()) paths.push_back(done.path);
    const std::vector<std::string> expected{"checkpoints/step-10", "checkpoints/step-20", "checkpoints/step-30",
                                            "checkpoints/step-40", "checkpoints/step-44", "checkpoints/step-45"};
    QCOMPARE(paths, expected);
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(dir + "/checkpoints")) kept += entry.is_directory();
    QCOMPARE(kept, 3);  // checkpoint.keep
  }

  void a_flipped_byte_is_refused_by_name_and_the_previous_one_taken() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 36}, 2);
    flip_byte(dir + "/checkpoints/step-30/shard-0.safetensors", 100);
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    QVERIFY(has_warning(resumed[0], "step-30 was refused"));
    QVERIFY(has_warning(resumed[0], "shard-0.safetensors"));
    QCOMPARE(first_update(resumed[0]), 21);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void a_damaged_shard_of_one_rank_sends_all_ranks_back() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 36}, 2);
    fs::resize_file(dir + "/checkpoints/step-30/shard-1.safetensors", 64);
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    for (const TrainedRank& rank : resumed) QCOMPARE(rank.weights_sha256, whole_[0].weights_sha256);
    QCOMPARE(first_update(resumed[0]), 21);
    QVERIFY(has_warning(resumed[0], "shard-1.safetensors"));
  }

  void without_any_good_checkpoint_it_starts_over_and_says_so() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 12}, 2);
    fs::remove(dir + "/checkpoints/step-10/manifest.json");
    const auto resumed = train({.spec = spec_text(2), .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY(has_warning(resumed[0], "starts from the beginning"));
    QCOMPARE(first_update(resumed[0]), 1);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
  }

  void another_number_of_ranks_continues_and_is_labelled() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    train({.spec = spec_text(2), .run_dir = dir, .die_at_update = 26}, 2);
    std::string alone = spec_text(1);
    alone.replace(alone.find("steps = 3"), 9, "steps = 6");
    const auto resumed = train({.spec = alone, .run_dir = dir, .resume_from = "newest"}, 1);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    QVERIFY(has_warning(resumed[0], "not bit-exact"));
    QVERIFY(has_warning(resumed[0], "number of ranks (saved with 2, now 1)"));
  }

  void another_model_is_refused_with_every_difference() {
    std::string wider = spec_text(2);
    wider.replace(wider.find("layers = 2"), 10, "layers = 3");
    const auto resumed =
        train({.spec = wider, .run_dir = whole_dir_.path().toStdString(), .resume_from = "step-40"}, 2);
    QCOMPARE(resumed[0].outcome, std::string("error config"));
    QVERIFY2(resumed[0].message.find("another model") != std::string::npos, resumed[0].text().c_str());
    QVERIFY(resumed[0].message.find("blocks.2.") != std::string::npos);
  }

  void changed_data_is_refused() {
    std::string other = spec_text(2);
    other.replace(other.find("samples = 200"), 13, "samples = 201");
    const auto resumed =
        train({.spec = other, .run_dir = whole_dir_.path().toStdString(), .resume_from = "step-40"}, 2);
    QCOMPARE(resumed[0].outcome, std::string("error data"));
    QVERIFY2(resumed[0].message.find("changed") != std::string::npos, resumed[0].text().c_str());
  }

  void a_full_disk_costs_the_checkpoint_and_not_the_run() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto trained = train({.spec = spec_text(2), .run_dir = dir, .full_disk_update = 20}, 2);
    for (const TrainedRank& rank : trained) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, whole_[0].weights_sha256);
    }
    QVERIFY(has_warning(trained[0], "checkpoint at update 20 failed"));
    QVERIFY(!fs::exists(dir + "/checkpoints/step-20"));
    QVERIFY(fs::exists(dir + "/checkpoints/step-30/manifest.json"));
    for (const auto& entry : fs::directory_iterator(dir + "/checkpoints"))
      QVERIFY2(entry.path().filename().string().starts_with("step-"), entry.path().c_str());
  }

  void a_finished_run_resumes_to_its_end_at_once() {
    const auto again =
        train({.spec = spec_text(2), .run_dir = whole_dir_.path().toStdString(), .resume_from = "newest"}, 2);
    QVERIFY2(again[0].outcome == "finished", again[0].text().c_str());
    QVERIFY(again[0].all<Update>().empty());
    QCOMPARE(again[0].weights_sha256, whole_[0].weights_sha256);
    QCOMPARE(again[0].updates, 45);
  }

 private:
  QTemporaryDir whole_dir_;
  std::vector<TrainedRank> whole_;
};

ACCRUE_RANK_TEST_MAIN(TestResume, {{"train", train_body}})

}  // namespace test_resume
#include "test_resume.moc"
