// SPDX-License-Identifier: Apache-2.0
// The byte GPT of the licence preset on every kind of layout: 50 updates have the losses of one rank, and a checkpoint
// goes on in any other. Narrower and on shorter sequences than the preset, so that eight ranks share two cores in
// seconds; layers, heads, text, optimizer, schedule and accumulation are the preset's. `--full` trains it as wide and
// on sequences as long as the preset says, which takes many minutes.
#include <QFile>
#include <QTest>
#include <cstring>
#include <map>

#include "support/layout.h"
#include "support/places.h"
#include "support/trained_losses.h"
#include "support/training_body.h"

namespace test_licence_layouts {

using namespace accrue;
using namespace accrue::test;

namespace {

bool full = false;  ///< the preset's own width and context

/// An update has 16 samples in every layout.
TrainingScript script_of(const Layout& layout, const std::string& dtype, int updates) {
  QFile preset(sourcePath("resources/presets/licence.accrue"));
  if (!preset.open(QFile::ReadOnly)) return {};
  TrainingScript script{.spec = preset.readAll().toStdString(),
                        .set = settings_of(layout, {"model.dtype=" + dtype, "launch.threads_per_rank=1",
                                                    setting("accumulation.micro_batch", 4 / layout.data),
                                                    setting("run.updates", updates)})};
  if (!full) script.set.insert(script.set.end(), {"model.width=32", "model.context=32"});
  return script;
}

std::vector<TrainedRank> trained(const TrainingScript& script, const Layout& layout) {
  return train(script, layout.world(), full ? 30min : 2min);
}

std::vector<double> losses_of(const TrainingScript& script, const Layout& layout) {
  return losses_of(trained(script, layout));
}

/// Of one rank alone, trained once for each number type.
const std::vector<double>& losses_alone(const std::string& dtype) {
  static std::map<std::string, std::vector<double>> known;
  std::vector<double>& losses = known[dtype];
  if (losses.empty()) losses = losses_of(script_of({}, dtype, 50), {});
  return losses;
}

}  // namespace

class TestLicenceLayouts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void fifty_updates_have_the_losses_of_one_rank_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<double>("tolerance");
    for (const auto& [name, layout] : std::initializer_list<std::pair<const char*, Layout>>{
             {"two by two by two", {.data = 2, .tensor = 2, .pipeline = 2}},
             {"four stages", {.pipeline = 4}},
             {"two stages of two chunks", {.pipeline = 2, .chunks = 2}},
             {"four ranks by rows", {.tensor = 4, .sequence = true}},
             {"four sharded replicas", {.data = 4, .zero = 1}}}) {
      QTest::addRow("%s, float64", name) << layout << "float64" << 1e-10;
      QTest::addRow("%s, float32", name) << layout << "float32" << 1e-5;
    }
  }
  void fifty_updates_have_the_losses_of_one_rank() {
    QFETCH(Layout, layout);
    QFETCH(QString, dtype);
    QFETCH(double, tolerance);
    const auto& expected = losses_alone(dtype.toStdString());
    QCOMPARE(expected.size(), std::size_t{50});
    const auto found = losses_of(script_of(layout, dtype.toStdString(), 50), layout);
    const double apart = largest_difference(found, expected);
    QVERIFY2(apart <= tolerance, qPrintable(QString::number(apart)));
    QVERIFY(found.back() < 0.75 * found.front());  // it learns
  }

  void a_checkpoint_of_four_ranks_goes_on_in_any_layout_data() {
    QTest::addColumn<Layout>("layout");
    QTest::newRow("four replicas") << Layout{.data = 4};
    QTest::newRow("four ranks") << Layout{.tensor = 4};
    QTest::newRow("two stages of two replicas") << Layout{.data = 2, .pipeline = 2};
    QTest::newRow("one rank") << Layout{};
  }
  void a_checkpoint_of_four_ranks_goes_on_in_any_layout() {
    QFETCH(Layout, layout);
    const auto& expected = losses_alone("float64");
    const Layout four{.tensor = 2, .pipeline = 2};
    const RunFolder folder;
    TrainingScript begin = script_of(four, "float64", 50), rest = script_of(layout, "float64", 50);
    begin.run_dir = rest.run_dir = folder;
    begin.stop_request = 25;
    const auto begun = trained(begin, four);
    QVERIFY2(begun[0].outcome == "stopped", begun[0].text().c_str());
    rest.resume_from = "newest";
    const auto found = losses_of(rest, layout);
    QCOMPARE(found.size(), std::size_t{25});
    const double apart = largest_difference(found, expected, 25);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
  }
};

namespace {

/// Takes its own argument from Qt's.
int run_tests(int argc, char** argv) {
  std::vector<char*> rest(argv, argv + argc);
  full = std::erase_if(rest, [](const char* word) { return std::strcmp(word, "--full") == 0; }) > 0;
  if (full) qputenv("QTEST_FUNCTION_TIMEOUT", "36000000");
  TestLicenceLayouts tests;
  return rank_test_main(static_cast<int>(rest.size()), rest.data(), tests, {{"train", train_body}});
}

const TestFile test_file(__FILE__, run_tests);

}  // namespace

}  // namespace test_licence_layouts
#include "test_licence_layouts.moc"
