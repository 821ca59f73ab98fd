// SPDX-License-Identifier: Apache-2.0
// Training on CUDA devices, where there are any; elsewhere only that a rank which is told to compute on one ends with
// an error instead of training on the CPU.
#include <QTest>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "comm/device_loader.h"
#include "support/rank_checks.h"
#include "support/training_body.h"

namespace test_device_training {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string gpt_spec(int world, const std::string& rest = {}) {
  return "accrue = 1\n"
         "[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\nvocabulary = 48\n"
         "[data]\nkind = \"synthetic\"\nsamples = 256\nvalidation_fraction = 0.125\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay = 0.1\nclip_norm = 1.0\n"
         "[accumulation]\nsteps = 4\nmicro_batch = 2\n[evaluate]\nevery_updates = 5\n[parallel]\ndata = " +
         std::to_string(world) + "\n[run]\nupdates = 20\nseed = 7\n" + rest;
}

/// Reports "<devices>" or why there are none.
int probe(RankContext& rank) {
  const auto backend = load_device_backend();
  rank.report(backend ? std::to_string((*backend)->device_count()) : "0 " + backend.error().text());
  return 0;
}

double worst_difference(const TrainedRank& a, const TrainedRank& b) {
  const auto ours = a.all<Update>();
  const auto theirs = b.all<Update>();
  double worst = ours.size() == theirs.size() && !ours.empty() ? 0.0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    worst = std::max(worst, std::abs(ours[i].loss / theirs[i].loss - 1.0));
  return worst;
}

}  // namespace

class TestDeviceTraining : public QObject {
  Q_OBJECT

  std::string why_none_;
  int devices_ = 0;

  bool lacks(int devices) const { return devices_ < devices; }
  QByteArray why(int devices) const {
    if (devices_ > 0) return "needs " + QByteArray::number(devices) + " CUDA devices: there is one";
    return "no CUDA device: " +
           QByteArray::fromStdString(why_none_.size() > 2 ? why_none_.substr(2) : "the driver shows none");
  }

 private Q_SLOTS:
  void initTestCase() {
    const auto outcomes = RankGroup("probe", 1).finish(std::chrono::seconds(60));
    QVERIFY2(outcomes.at(0).ok(), outcomes.at(0).text().c_str());
    why_none_ = outcomes[0].lines.at(0);
    devices_ = std::stoi(why_none_);
  }

  void without_a_device_nothing_is_trained() {
    if (!lacks(1)) QSKIP("there is a CUDA device");
    const auto ranks = train({.spec = gpt_spec(1), .cuda = true}, 1);
    QCOMPARE(ranks[0].outcome, std::string("error device"));
    QVERIFY2(ranks[0].message.find("CUDA") != std::string::npos, ranks[0].text().c_str());
    QVERIFY2(ranks[0].message.find("launch.device = \"cpu\"") != std::string::npos, ranks[0].text().c_str());
    QVERIFY2(ranks[0].events.empty(), ranks[0].text().c_str());
  }

  void a_rank_on_the_cpu_says_what_makes_its_updates_and_products() {
    const auto ranks = train({.spec = gpt_spec(1), .set = {"run.updates=1"}}, 1);
    VERIFY_FINISHED(ranks);
    QCOMPARE(ranks[0].all<RankReady>().at(0).updates_by, std::string("kernels"));
    // Our tiles were measured to be the faster ones on AVX-512 that is not Intel's.
    std::ifstream file("/proc/cpuinfo");
    const std::string cpu{std::istreambuf_iterator<char>(file), {}};
    const bool tiles = cpu.find("avx512f") != std::string::npos && cpu.find("GenuineIntel") == std::string::npos;
    QCOMPARE(ranks[0].all<RankReady>().at(0).products_by, std::string(tiles ? "tiles" : "LibTorch"));
  }

  void a_device_trains_to_the_numbers_of_the_cpu() {
    if (lacks(1)) QSKIP(why(1));
    const auto on_cpu = train({.spec = gpt_spec(1)}, 1);
    const auto on_device = train({.spec = gpt_spec(1), .cuda = true}, 1);
    QVERIFY2(on_device[0].outcome == "finished", on_device[0].text().c_str());
    QVERIFY2(worst_difference(on_cpu[0], on_device[0]) < 1e-4, on_device[0].text().c_str());
    QCOMPARE(on_device[0].all<RankReady>().at(0).device, std::string("cuda:0"));
    const std::string by = on_device[0].all<RankReady>().at(0).updates_by;
    QVERIFY2(by == "CUDA kernels" || by == "operators", by.c_str());
    QCOMPARE(on_device[0].all<Evaluation>().size(), on_cpu[0].all<Evaluation>().size());
  }

  void spans_on_a_device_follow_each_other() {
    if (lacks(1)) QSKIP(why(1));
    const auto ranks = train({.spec = gpt_spec(1), .cuda = true}, 1);
    std::int64_t last_end = 0;
    for (const Operations& each : ranks[0].all<Operations>()) {
      for (std::size_t i = 0; i < each.begin_ns.size(); ++i) {
        QVERIFY(each.end_ns[i] > each.begin_ns[i]);
        QVERIFY(each.begin_ns[i] >= last_end - 100'000);  // of two anchors
        last_end = each.end_ns[i];
      }
    }
    QVERIFY(last_end > 0);
  }

  void dropout_and_half_precision_train_on_a_device_data() {
    QTest::addColumn<QString>("model");
    QTest::newRow("dropout") << "[model]\ndropout = 0.1\n";
    QTest::newRow("bfloat16") << "[model]\ndtype = \"bfloat16\"\n";
    QTest::newRow("float16") << "[model]\ndtype = \"float16\"\n";
  }
  void dropout_and_half_precision_train_on_a_device() {
    if (lacks(1)) QSKIP(why(1));
    QFETCH(QString, model);
    std::string spec = gpt_spec(1);
    spec.replace(spec.find("[model]\n"), 8, model.toStdString());
    const auto once = train({.spec = spec, .cuda = true}, 1);
    const auto again = train({.spec = spec, .cuda = true}, 1);
    QVERIFY2(once[0].outcome == "finished", once[0].text().c_str());
    QCOMPARE(once[0].weights_sha256, again[0].weights_sha256);
    QVERIFY(once[0].all<Update>().back().loss < once[0].all<Update>().front().loss);
  }

  void what_a_device_recomputes_has_the_same_bits() {
    if (lacks(1)) QSKIP(why(1));
    std::string spec = gpt_spec(1);
    spec.replace(spec.find("[model]\n"), 8, "[model]\ndropout = 0.1\n");
    const auto usual = train({.spec = spec, .cuda = true}, 1);
    VERIFY_FINISHED(usual);
    for (const char* kind : {"selective", "full"}) {
      const auto again = train({.spec = spec, .set = {std::string("parallel.recompute=") + kind}, .cuda = true}, 1);
      VERIFY_FINISHED(again);
      QCOMPARE(again[0].weights_sha256, usual[0].weights_sha256);
    }
  }

  void two_devices_train_to_the_numbers_of_two_cpu_ranks() {
    if (lacks(2)) QSKIP(why(2));
    const auto on_cpus = train({.spec = gpt_spec(2)}, 2);
    const auto two = train({.spec = gpt_spec(2), .cuda = true}, 2);
    QVERIFY2(two[0].outcome == "finished", two[0].text().c_str());
    QVERIFY2(worst_difference(on_cpus[0], two[0]) < 1e-4, two[0].text().c_str());
    QCOMPARE(two[0].weights_sha256, two[1].weights_sha256);
  }

  void two_devices_that_divide_a_run_train_to_the_numbers_of_the_cpu_data() {
    QTest::addColumn<QStringList>("layout");
    QTest::newRow("two ranks") << QStringList{"parallel.tensor=2"};
    QTest::newRow("two ranks by rows") << QStringList{"parallel.tensor=2", "parallel.sequence=true"};
    QTest::newRow("two stages") << QStringList{"parallel.pipeline=2"};
    QTest::newRow("two stages of two chunks")
        << QStringList{"parallel.pipeline=2", "parallel.virtual_pipeline=2", "model.layers=4"};
    QTest::newRow("two sharded replicas, overlapped")
        << QStringList{"parallel.data=2", "parallel.zero=1", "parallel.overlap_grad_reduce=true",
                       "parallel.overlap_param_gather=true", "parallel.bucket_mb=0.01"};
    QTest::newRow("two ranks that recompute") << QStringList{"parallel.tensor=2", "parallel.recompute=full"};
  }
  void two_devices_that_divide_a_run_train_to_the_numbers_of_the_cpu() {
    if (lacks(2)) QSKIP(why(2));
    QFETCH(QStringList, layout);
    TrainingScript script{.spec = gpt_spec(1)};
    for (const QString& each : layout) script.set.push_back(each.toStdString());
    const auto on_cpus = train(script, 2);
    VERIFY_FINISHED(on_cpus);
    script.cuda = true;
    const auto on_devices = train(script, 2);
    VERIFY_FINISHED(on_devices);
    QVERIFY2(worst_difference(on_cpus[0], on_devices[0]) < 1e-4, on_devices[0].text().c_str());
    QCOMPARE(on_devices[0].weights_sha256, on_devices[1].weights_sha256);
  }

  /// Each tensor rank draws the masks of its heads from a stream of its own, which is put back for the second forward.
  void what_two_devices_recompute_has_the_same_bits() {
    if (lacks(2)) QSKIP(why(2));
    TrainingScript script{.spec = gpt_spec(1), .set = {"parallel.tensor=2", "model.dropout=0.1"}, .cuda = true};
    const auto usual = train(script, 2);
    VERIFY_FINISHED(usual);
    for (const char* kind : {"selective", "full"}) {
      TrainingScript again = script;
      again.set.push_back(std::string("parallel.recompute=") + kind);
      const auto ranks = train(again, 2);
      VERIFY_FINISHED(ranks);
      QCOMPARE(ranks[0].weights_sha256, usual[0].weights_sha256);
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestDeviceTraining, {{"probe", probe}, {"train", train_body}})

}  // namespace test_device_training
#include "test_device_training.moc"
