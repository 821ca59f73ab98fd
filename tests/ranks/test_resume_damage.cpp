// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose hashes are right and whose content is not: each is refused by name, the one before it is used, and
// the run ends at the same bits.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "support/signed_checkpoint.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_resume_damage {

using namespace accrue;
using namespace accrue::test;

namespace {

namespace fs = std::filesystem;

/// Compensated sums in float32, a checkpoint after each micro-step, and three of them kept.
const std::string spec_text =
    "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [8]\ninputs = 4\noutputs = 2\n"
    "[data]\nkind = \"synthetic\"\nsamples = 48\n[optimizer]\nkind = \"adamw\"\nlr = 0.05\n"
    "[accumulation]\nsteps = 4\nmicro_batch = 2\naccumulation_dtype = \"float32_compensated\"\n"
    "[run]\nupdates = 5\n[checkpoint]\nevery_micro_steps = 1\nkeep = 3\n";

at::Tensor& tensor_named(Archive& archive, const std::string& beginning) {
  for (auto& [name, tensor] : archive.tensors)
    if (name.starts_with(beginning)) return tensor;
  throw std::runtime_error("no tensor " + beginning);
}

std::function<void(Archive&)> replaced(const std::string& name, const at::Tensor& by) {
  return [=](Archive& archive) { tensor_named(archive, name) = by; };
}

std::function<void(Archive&)> retyped(const std::string& name, at::ScalarType type) {
  return [=](Archive& archive) {
    at::Tensor& tensor = tensor_named(archive, name);
    tensor = tensor.to(type);
  };
}

std::function<void(Archive&)> reshaped(const std::string& name) {
  return [=](Archive& archive) {
    at::Tensor& tensor = tensor_named(archive, name);
    tensor = tensor.reshape({-1, 1}).contiguous();
  };
}

std::function<void(Archive&)> removed(const std::string& name) {
  return [=](Archive& archive) {
    std::erase_if(archive.tensors, [&](const auto& named) { return named.first.starts_with(name); });
  };
}

std::function<void(Archive&)> tally_set(int i, double value) {
  return [=](Archive& archive) { tensor_named(archive, "replica.0.tally")[i].fill_(value); };
}

std::string warnings(const TrainedRank& rank) {
  std::string all;
  for (const Warning& warning : rank.all<Warning>()) all += warning.message + "\n";
  return all;
}

}  // namespace

class TestResumeDamage : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(stopped_dir_.isValid());
    const auto whole = train({.spec = spec_text}, 1);
    QVERIFY2(whole[0].outcome == "finished", whole[0].text().c_str());
    weights_sha256_ = whole[0].weights_sha256;
    const auto stopped = train({.spec = spec_text, .run_dir = stopped_dir_.path().toStdString(), .stop_before = 12}, 1);
    QVERIFY2(stopped[0].outcome == "stopped", stopped[0].text().c_str());
    QVERIFY(fs::exists(stopped_dir_.path().toStdString() + "/checkpoints/step-2+3/manifest.json"));
    QVERIFY(fs::exists(stopped_dir_.path().toStdString() + "/checkpoints/step-2+2/manifest.json"));
  }

  void tensors_that_cannot_be_are_refused_by_name_data() {
    QTest::addColumn<std::function<void(Archive&)>>("damage");
    QTest::addColumn<QString>("words");
    const auto add = [](const char* row, const std::function<void(Archive&)>& damage, const char* words) {
      QTest::newRow(row) << damage << words;
    };
    add("tally of nothing", replaced("replica.0.tally", at::zeros({0}, at::kDouble)), "replica.0.tally is Double [0]");
    add("tally of one", replaced("replica.0.tally", at::zeros({1}, at::kDouble)), "replica.0.tally is Double [1]");
    add("tally of another type", retyped("replica.0.tally", at::kFloat), "replica.0.tally is Float [15]");
    add("tally of whole numbers", retyped("replica.0.tally", at::kLong), "replica.0.tally is Long [15]");
    add("tally of another version", replaced("replica.0.tally", at::zeros({9}, at::kDouble)),
        "step-2+3 was refused: tensors: the checkpoint was taken inside a window by another version of Accrue "
        "(replica.0.tally is Double [9] there and Double [15] here). Resume from a checkpoint between two windows "
        "(step-N).");
    add("tally without", removed("replica.0.tally"), "replica.0.tally is not in the checkpoint");
    add("tally beyond all numbers", tally_set(0, 1e300), "replica.0.tally counts");
    add("tally of nan samples", tally_set(1, std::numeric_limits<double>::quiet_NaN()), "replica.0.tally counts");
    add("tally of half a micro-step", tally_set(2, 0.5), "replica.0.tally counts");
    add("tally of a negative count", tally_set(14, -1.0), "replica.0.tally counts");
    add("gradients of another type", retyped("replica.0.gradients.", at::kDouble), "replica.0.gradients.");
    add("gradients of another shape", reshaped("replica.0.gradients."), "replica.0.gradients.");
    add("gradients without", removed("replica.0.gradients."), "replica.0.gradients.");
    add("compensation of another type", retyped("replica.0.compensation.", at::kHalf), "replica.0.compensation.");
    add("compensation of another shape", reshaped("replica.0.compensation."), "replica.0.compensation.");
    add("compensation without", removed("replica.0.compensation."), "replica.0.compensation.");
    add("parameter of another shape", reshaped("parameters."), "parameters.");
    add("parameter without", removed("parameters."), "is not in the checkpoint");
    add("moment of another type", retyped("optimizer.exp_avg.", at::kDouble), "optimizer.exp_avg.");
    add("moment without", removed("optimizer.exp_avg_sq."), "is not in the checkpoint");
    add("steps negative", replaced("optimizer.step.", at::full({1}, -1, at::kLong)), "is -1 after 2 optimizer steps");
    add("steps beyond", replaced("optimizer.step.", at::full({1}, 3, at::kLong)), "is 3 after 2 optimizer steps");
    add("steps of nothing", replaced("optimizer.step.", at::zeros({0}, at::kLong)), "optimizer.step.");
    add("steps of two", replaced("optimizer.step.", at::zeros({2}, at::kLong)), "is Long [2] there and Long [1] here");
    add("steps of another type", retyped("optimizer.step.", at::kDouble), "is Double [1] there and Long [1] here");
    add("generator too short", replaced("rank.0.rng.cpu", at::zeros({8}, at::kByte)), "rank.0.rng.cpu is Byte [8]");
    add("generator of zeros", replaced("rank.0.rng.cpu", at::zeros({5056}, at::kByte)), "no state of the generator");
  }
  void tensors_that_cannot_be_are_refused_by_name() {
    QFETCH(std::function<void(Archive&)>, damage);
    QFETCH(QString, words);
    refused([&](const fs::path& newest) { rewrite_shard(newest, "shard-0.safetensors", damage); }, words);
  }

  /// A rank that holds no part of a parameter counts its steps none the less.
  void steps_that_another_rank_counts_are_refused_by_name_data() {
    const Rows<std::function<void(Archive&)>, QString> row;
    row("two", replaced("optimizer.step.", at::zeros({2}, at::kLong)), "is Long [2] there and Long [1] here");
    row("none", replaced("optimizer.step.", at::zeros({0}, at::kLong)), "is Long [0] there and Long [1] here");
    row("no list", replaced("optimizer.step.", at::zeros({}, at::kLong)), "is Long [] there and Long [1] here");
    row("another type", retyped("optimizer.step.", at::kFloat), "is Float [1] there and Long [1] here");
  }
  void steps_that_another_rank_counts_are_refused_by_name() {
    const auto [damage, words] = current_row<std::function<void(Archive&)>, QString>();
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [8]\ninputs = 4\noutputs = 2\n[data]\nkind = \"synthetic\"\n"
        "samples = 32\n[optimizer]\nkind = \"adamw\"\n[accumulation]\nsteps = 2\nmicro_batch = 2\n"
        "[parallel]\ndata = 2\nzero = 1\n[run]\nupdates = 4\n[checkpoint]\nevery_updates = 1\n";
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto stopped = train({.spec = spec, .run_dir = dir, .stop_before = 5}, 2);
    QVERIFY2(stopped[0].outcome == "stopped", stopped[0].text().c_str());
    for (const char* shard : {"shard-0.safetensors", "shard-1.safetensors"})
      rewrite_shard(fs::path(dir) / "checkpoints" / "step-2", shard, [&](Archive& archive) {
        const auto counts = [](const auto& named) { return named.first.starts_with("optimizer.step."); };
        if (std::ranges::any_of(archive.tensors, counts)) damage(archive);
      });
    const auto resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    const std::string said = warnings(resumed[0]);
    QVERIFY2(said.find("step-2 was refused") != std::string::npos, said.c_str());
    QVERIFY2(said.find(words.toStdString()) != std::string::npos, said.c_str());
  }

  void places_that_the_plan_does_not_have_are_refused_by_name_data() {
    QTest::addColumn<QString>("key");
    QTest::addColumn<qlonglong>("value");
    QTest::newRow("after the run's last update") << "updates" << qlonglong{6};
    QTest::newRow("long after it") << "updates" << (qlonglong{1} << 31);
    QTest::newRow("after the epoch's last batch") << "batch" << qlonglong{25};
    QTest::newRow("before its first") << "batch" << qlonglong{-1};
    QTest::newRow("far before its first") << "batch" << qlonglong{-1'000'000'000};
    QTest::newRow("a window that can never close") << "counter" << qlonglong{4};
    QTest::newRow("a window of no length") << "steps" << qlonglong{0};
    QTest::newRow("beyond all epochs") << "epoch_length" << qlonglong{25};
    QTest::newRow("no window is so long") << "next_steps" << std::numeric_limits<qlonglong>::max();
  }
  void places_that_the_plan_does_not_have_are_refused_by_name() {
    QFETCH(QString, key);
    QFETCH(qlonglong, value);
    const std::string name = key.toStdString();
    refused(
        [&](const fs::path& newest) {
          resign_manifest(newest, [&](auto& json) {
            json["window"][name] = value;
            if (name != "updates") return;
            json["window"]["micro_step"] = value * 4;  // as a forger would
          });
          if (name == "updates") fs::rename(newest, newest.parent_path() / ("step-" + std::to_string(value) + "+3"));
        },
        "window." + key);
  }

  /// Logits of the second head so far apart that its loss is infinite wherever the label says otherwise.
  void a_loss_that_is_infinite_leaves_the_other_as_it_is() {
    const std::string bert =
        "accrue = 1\n[model]\nkind = \"bert\"\nlayers = 1\nwidth = 16\nheads = 4\ncontext = 16\nvocabulary = 44\n"
        "dtype = \"float64\"\n[data]\nkind = \"synthetic\"\nsamples = 64\n[optimizer]\nkind = \"adamw\"\nlr = 1e-3\n"
        "[accumulation]\nsteps = 2\nmicro_batch = 8\n[run]\nupdates = 2\non_non_finite = \"skip\"\n"
        "[checkpoint]\nevery_updates = 1\n";
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const auto stopped = train({.spec = bert, .run_dir = dir, .stop_before = 3}, 1);
    QVERIFY2(stopped[0].outcome == "stopped", stopped[0].text().c_str());
    rewrite_shard(fs::path(dir) / "checkpoints" / "step-1", "shard-0.safetensors", [](Archive& archive) {
      at::Tensor& bias = tensor_named(archive, "parameters.binary_head.bias");
      bias[0].fill_(1e308);
      bias[1].fill_(-1e308);
    });
    const auto resumed = train({.spec = bert, .run_dir = dir, .resume_from = "newest"}, 1);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    const Update update = resumed[0].all<Update>().front();
    QCOMPARE(update.update, 2);
    QVERIFY(std::isinf(update.loss));
    QVERIFY(std::isinf(update.losses.at("sop loss")));
    const double lm = update.losses.at("lm loss");
    QVERIFY2(lm > 0.0 && lm < 10.0, qPrintable(QString::number(lm)));  // of 44 tokens: about log 44
  }

 private:
  /// Damages the newest checkpoint of a copy of the stopped run and resumes it.
  void refused(const std::function<void(const fs::path&)>& damage, const QString& words) {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    fs::copy(stopped_dir_.path().toStdString(), dir, fs::copy_options::recursive);
    damage(fs::path(dir) / "checkpoints" / "step-2+3");
    const auto resumed = train({.spec = spec_text, .run_dir = dir, .resume_from = "newest"}, 1);
    QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
    const std::string said = warnings(resumed[0]);
    QVERIFY2(said.find("was refused") != std::string::npos, said.c_str());
    QVERIFY2(said.find(words.toStdString()) != std::string::npos, said.c_str());
    QCOMPARE(resumed[0].weights_sha256, weights_sha256_);
  }

  QTemporaryDir stopped_dir_;
  std::string weights_sha256_;
};

ACCRUE_RANK_TEST_MAIN(TestResumeDamage, {{"train", train_body}})

}  // namespace test_resume_damage
#include "test_resume_damage.moc"
