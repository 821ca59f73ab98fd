// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's optimizers in the ranks: every layout trains as one rank does, also those whose steps are scaled by
// norms of parameters that ranks hold parts of; and runs go on from a checkpoint to the same bits.
#include <ATen/ATen.h>

#include <QTest>
#include <csignal>
#include <filesystem>

#include "accrue/checkpoint/tensor_archive.h"
#include "support/training_body.h"

namespace test_optimizer_layouts {

using namespace accrue;
using namespace accrue::test;

namespace {

const char* const all_kinds[] = {"CPUAdam", "FusedAdam", "FusedLAMB", "FusedSGD", "HybridAdam", "Lamb", "Lars"};

std::string spec_text(const std::string& kind, const std::string& dtype = "float64") {
  const bool sgd = kind == "FusedSGD" || kind == "Lars";
  const std::string rate = kind == "Lars"                          ? "1.0"
                           : sgd                                   ? "0.1"
                           : kind == "Lamb" || kind == "FusedLAMB" ? "0.01"
                                                                   : "0.003";
  // FusedLAMB clips by itself, and the others by clip_norm, so that every norm has a part in it.
  return "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 16\nheads = 4\ncontext = 8\nvocabulary = 48\n"
         "dtype = \"" +
         dtype + "\"\n[data]\nkind = \"synthetic\"\nsamples = 200\n[optimizer]\nkind = \"" + kind + "\"\nlr = " + rate +
         "\nweight_decay = 0.1\n" + (sgd ? "momentum = 0.9\n" : "") +
         (kind == "FusedLAMB" ? "max_grad_norm = 0.2\n" : "clip_norm = 0.5\n") +
         "[accumulation]\nsteps = 4\nmicro_batch = 2\n[parallel]\nbucket_mb = 0.004\n[run]\nupdates = 6\n";
}

std::vector<TrainedRank> trained(const TrainingScript& script) {
  return train(script, static_cast<int>(order_for(script).plan.grid.world()));
}

NamedTensors weights_in(const RunFolder& folder) {
  const auto read = read_archive(folder / "final" / "model.safetensors");
  return read ? read->tensors : NamedTensors();
}

/// Largest difference of a tensor relative to its norm; infinite where names or shapes differ.
double difference(const NamedTensors& a, const NamedTensors& b) {
  double most = a.size() == b.size() && !a.empty() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && most < INFINITY; ++i) {
    const bool alike = a[i].first == b[i].first && a[i].second.sizes() == b[i].second.sizes();
    most = alike ? std::max(most, ((a[i].second - b[i].second).norm() / b[i].second.norm()).item<double>()) : INFINITY;
  }
  return most;
}

}  // namespace

class TestOptimizerLayouts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_layout_trains_as_one_rank_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QStringList>("layout");
    const QStringList tensor{"parallel.tensor=2"}, rows{"parallel.tensor=2", "parallel.sequence=true"};
    const QStringList zero{"parallel.data=2", "parallel.zero=1"}, stages{"parallel.pipeline=2"};
    for (const char* kind : {"FusedLAMB", "Lamb", "Lars"}) {
      QTest::addRow("%s, two ranks", kind) << kind << tensor;
      QTest::addRow("%s, two ranks by rows", kind) << kind << rows;
      QTest::addRow("%s, two sharded replicas", kind) << kind << zero;
      QTest::addRow("%s, two stages", kind) << kind << stages;
      QTest::addRow("%s, two sharded replicas of two stages", kind) << kind << zero + stages;
    }
    QTest::addRow("FusedLAMB, two sharded replicas of two ranks") << "FusedLAMB" << zero + tensor;
    for (const char* kind : {"CPUAdam", "FusedAdam", "FusedSGD", "HybridAdam"})
      QTest::addRow("%s, two sharded replicas", kind) << kind << zero;
  }
  void every_layout_trains_as_one_rank() {
    QFETCH(QString, kind);
    QFETCH(QStringList, layout);
    const bool copies = layout.contains("parallel.data=2");
    const RunFolder alone_dir, divided_dir;
    TrainingScript alone{.spec = spec_text(kind.toStdString()), .run_dir = alone_dir}, divided = alone;
    divided.run_dir = divided_dir;
    if (copies) alone.set.push_back("parallel.data=2");
    for (const QString& each : layout) divided.set.push_back(each.toStdString());
    VERIFY_FINISHED(trained(alone));
    const auto ranks = trained(divided);
    VERIFY_FINISHED(ranks);
    for (const TrainedRank& rank : ranks) QCOMPARE(rank.weights_sha256, ranks.front().weights_sha256);
    const double off = difference(weights_in(divided_dir), weights_in(alone_dir));
    QVERIFY2(off < 1e-12, qPrintable(QString::number(off)));
  }

  void a_run_goes_on_to_the_same_bits_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<QStringList>("layout");
    for (const char* kind : all_kinds) {
      QTest::addRow("%s", kind) << kind << "float32" << QStringList();
      QTest::addRow("%s, bfloat16, two sharded replicas", kind)
          << kind << "bfloat16" << QStringList{"parallel.data=2", "parallel.zero=1"};
    }
    QTest::addRow("Lamb, float16, two ranks") << "Lamb"
                                              << "float16" << QStringList{"parallel.tensor=2"};
  }
  void a_run_goes_on_to_the_same_bits() {
    QFETCH(QString, kind);
    QFETCH(QString, dtype);
    QFETCH(QStringList, layout);
    const RunFolder whole_dir, halves_dir, files;
    TrainingScript script{.spec = spec_text(kind.toStdString(), dtype.toStdString()), .run_dir = whole_dir};
    for (const QString& each : layout) script.set.push_back(each.toStdString());
    const auto whole = trained(script);
    VERIFY_FINISHED(whole);
    // In the interrupted run, states that may be in files are in files.
    if (kind == "CPUAdam" || kind == "HybridAdam") {
      script.set.emplace_back("optimizer.nvme_offload_fraction=0.5");
      script.set.push_back("optimizer.nvme_offload_dir=\"" + std::string(files) + "\"");
    }
    script.run_dir = halves_dir;
    script.stop_request = 3;
    const auto stopped = trained(script);
    QVERIFY2(stopped.front().outcome == "stopped", stopped.front().text().c_str());
    script.stop_request = 0;
    script.resume_from = "newest";
    const auto ended = trained(script);
    VERIFY_FINISHED(ended);
    QCOMPARE(ended.front().weights_sha256, whole.front().weights_sha256);
    QVERIFY(std::filesystem::is_empty(std::string(files)));
  }

  void a_killed_run_goes_on_from_states_in_files_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QStringList>("layout");
    for (const char* kind : {"CPUAdam", "HybridAdam"}) {
      QTest::addRow("%s", kind) << kind << QStringList();
      QTest::addRow("%s, two sharded replicas", kind) << kind << QStringList{"parallel.data=2", "parallel.zero=1"};
    }
  }
  void a_killed_run_goes_on_from_states_in_files() {
    QFETCH(QString, kind);
    QFETCH(QStringList, layout);
    const RunFolder whole_dir, killed_dir, files;
    TrainingScript script{.spec = spec_text(kind.toStdString(), "float32"), .run_dir = whole_dir};
    for (const QString& each : layout) script.set.push_back(each.toStdString());
    const auto whole = trained(script);
    VERIFY_FINISHED(whole);
    script.set.insert(script.set.end(),
                      {"optimizer.nvme_offload_fraction=0.5",
                       "optimizer.nvme_offload_dir=\"" + std::string(files) + "\"", "checkpoint.every_updates=2"});
    script.run_dir = killed_dir;
    // Within the last of six updates.
    script.kill_before = 22;
    const auto killed = trained(script);
    QCOMPARE(killed.back().process.signal, SIGKILL);
    QVERIFY(std::filesystem::is_empty(std::string(files)));
    script.kill_before = 0;
    script.resume_from = "newest";
    const auto ended = trained(script);
    VERIFY_FINISHED(ended);
    QVERIFY(ended.front().all<Update>().front().update > 1);  // from a checkpoint
    QCOMPARE(ended.front().weights_sha256, whole.front().weights_sha256);
    QVERIFY(std::filesystem::is_empty(std::string(files)));
  }

  void a_folder_that_is_not_there_ends_the_run_in_words() {
    TrainingScript script{.spec = spec_text("CPUAdam")};
    script.set = {"optimizer.nvme_offload_fraction=0.5", "optimizer.nvme_offload_dir=\"/nowhere/states\""};
    const auto ranks = trained(script);
    QVERIFY2(ranks.front().text().find("/nowhere/states") != std::string::npos, ranks.front().text().c_str());
  }
};

ACCRUE_RANK_TEST_MAIN(TestOptimizerLayouts, {{"train", train_body}})

}  // namespace test_optimizer_layouts
#include "test_optimizer_layouts.moc"
