// SPDX-License-Identifier: Apache-2.0
// A GPT's checkpoint of one layout, read in another and saved at once: every parameter, moment, master and step of the
// two checkpoints is the same to the bit. A new run that starts from its weights has the same parameters.
#include <ATen/Parallel.h>

#include <QTest>
#include <fstream>
#include <map>

#include "accrue/data/data_source.h"
#include "accrue/run/fields/spec_io.h"
#include "support/gathered_state.h"
#include "support/joined_rank.h"
#include "support/layout.h"
#include "support/quiet_channel.h"
#include "support/training_body.h"
#include "train/checkpointing.h"

namespace test_resharded_state {

using namespace accrue;
using namespace accrue::test;

namespace {

struct NamedLayout {
  const char* name;
  Layout layout;
};

const std::vector<NamedLayout> layouts{
    {"one rank", {}},
    {"two stages of two ranks", {.tensor = 2, .pipeline = 2}},
    {"four sharded replicas", {.data = 4, .zero = 1}},
    {"two stages of two chunks", {.pipeline = 2, .chunks = 2}},
    {"four ranks by rows", {.tensor = 4, .sequence = true}},
    {"two sharded replicas of two stages of two ranks", {.data = 2, .tensor = 2, .pipeline = 2, .zero = 1}},
};

/// An update has 8 samples in every layout. A vocabulary of 50 is padded to 52.
TrainingScript script_of(const Layout& layout, const std::string& dtype, const std::string& run_dir) {
  return {.spec =
              "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 16\nheads = 4\ncontext = 8\nvocabulary = 50\n"
              "vocabulary_multiple = 4\n[data]\nkind = \"synthetic\"\nsamples = 200\n[optimizer]\nkind = \"adamw\"\n"
              "lr = 3e-3\n[accumulation]\nsteps = 2\n[parallel]\nbucket_mb = 0.004\n[launch]\nthreads_per_rank = 1\n"
              "[run]\nupdates = 6\n",
          .set = settings_of(layout, {"model.dtype=" + dtype, setting("accumulation.micro_batch", 4 / layout.data)}),
          .run_dir = run_dir};
}

/// Saves to a folder what a run has before its first update, or after what it resumed.
void save_unchanged(RankContext& rank, RunOrder order, const std::string& to) {
  QuietChannel channel;
  const JoinedRank joined = join_ranks(rank, order.plan.backend);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, order.plan.grid));
  at::set_num_threads(1);
  Training training(order, mesh, channel, at::kCPU, RunHooks(order.plan, mesh, {}),
                    taken(open_data(order.plan.spec, order.plan.data, order.plan.base_dir)));
  if (auto resumed = resume(training); !resumed) throw std::runtime_error(resumed.error().text());
  order.run_dir = to;
  training.saved.reset();
  save(training, true);
}

/// Reads the newest checkpoint of one folder and saves what it has read to another. Arguments: the layout's place in
/// the list, the number type, both folders.
int saves_what_it_reads(RankContext& rank) {
  const auto& words = rank.arguments;
  RunOrder order = order_for(script_of(layouts.at(std::stoul(words[0])).layout, words[1], words[2]));
  order.resume_from = "newest";
  save_unchanged(rank, std::move(order), words[3]);
  return 0;
}

/// Starts a new run from the weights of one folder, a run's, and saves it to another. Arguments as above.
int saves_what_it_starts_from(RankContext& rank) {
  const auto& words = rank.arguments;
  TrainingScript script = script_of(layouts.at(std::stoul(words[0])).layout, words[1], words[3]);
  script.set.insert(script.set.end(), {"model.init=checkpoint", "model.weights=" + words[2]});
  save_unchanged(rank, order_for(script), words[3]);
  return 0;
}

/// Goes on with a recorded run and saves what it has to another folder. Arguments: the run's folder, the other.
int saves_what_it_goes_on_from(RankContext& rank) {
  RunOrder order = taken(read_run_order(std::filesystem::path(rank.arguments[0]) / "plan.json"));
  order.resume_from = "newest";
  save_unchanged(rank, std::move(order), rank.arguments[1]);
  return 0;
}

}  // namespace

class TestReshardedState : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_layout_saves_what_it_has_read_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<int>("first");
    QTest::addColumn<int>("second");
    for (int first = 0; first < static_cast<int>(layouts.size()); ++first)
      for (int second = 0; second < static_cast<int>(layouts.size()); ++second)
        for (const char* dtype : {"float32", "bfloat16"}) {
          if (first == second) continue;
          if (QString(dtype) == "bfloat16" && first + second != 5) continue;  // each once
          QTest::addRow("%s, %s, then %s", dtype, layouts[static_cast<std::size_t>(first)].name,
                        layouts[static_cast<std::size_t>(second)].name)
              << dtype << first << second;
        }
  }
  void every_layout_saves_what_it_has_read() {
    QFETCH(QString, dtype);
    QFETCH(int, first);
    QFETCH(int, second);
    const RunFolder to;
    const std::string from = trained(dtype.toStdString(), first);
    const Layout& layout = layouts[static_cast<std::size_t>(second)].layout;
    RankGroup ranks("saves_what_it_reads", layout.world(),
                    {.arguments = {std::to_string(second), dtype.toStdString(), from, to}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
    const auto written = gathered_state(from), again = gathered_state(std::string(to));
    // Of each of 52 parameters: itself, two moments and a step; and the master of a bfloat16 one.
    QCOMPARE(written.size(), std::size_t{52} * (dtype == "bfloat16" ? 5 : 4));
    QCOMPARE(QString::fromStdString(first_difference(written, again)), QString());
  }

  void a_new_run_starts_from_the_weights_of_every_layout_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<int>("first");
    QTest::addColumn<int>("second");
    for (int first = 0; first < static_cast<int>(layouts.size()); ++first)
      for (const char* dtype : {"float32", "bfloat16"})
        QTest::addRow("%s, %s", dtype, layouts[static_cast<std::size_t>(first)].name) << dtype << first << 5 - first;
  }
  void a_new_run_starts_from_the_weights_of_every_layout() {
    QFETCH(QString, dtype);
    QFETCH(int, first);
    QFETCH(int, second);
    const RunFolder to;
    const std::string from = trained(dtype.toStdString(), first);
    const Layout& layout = layouts[static_cast<std::size_t>(second)].layout;
    std::ofstream(from + "/spec.toml") << write_spec(order_for(script_of(layout, dtype.toStdString(), {})).plan.spec);
    RankGroup ranks("saves_what_it_starts_from", layout.world(),
                    {.arguments = {std::to_string(second), dtype.toStdString(), from, to}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
    const auto is_other = [](const auto& each) { return !each.first.starts_with("parameters."); };
    auto written = gathered_state(from), started = gathered_state(std::string(to));
    std::erase_if(written, is_other);
    std::erase_if(started, is_other);
    QCOMPARE(written.size(), std::size_t{52});
    QCOMPARE(QString::fromStdString(first_difference(written, started)), QString());
  }

  void a_new_run_does_not_start_from_a_damaged_checkpoint() {
    const RunFolder from, to;
    std::filesystem::copy(trained("float32", 2), std::string(from), std::filesystem::copy_options::recursive);
    std::ofstream(from / "spec.toml") << write_spec(order_for(script_of({}, "float32", {})).plan.spec);
    std::fstream shard(from / "checkpoints/step-3/shard-2.safetensors",
                       std::ios::in | std::ios::out | std::ios::binary);
    shard.seekg(-1, std::ios::end);
    const char flipped = static_cast<char>(shard.peek() ^ 1);
    shard.seekp(-1, std::ios::end);
    shard.put(flipped).flush();
    const auto ranks = RankGroup("saves_what_it_starts_from", 1, {.arguments = {"0", "float32", from, to}}).finish(60s);
    const QString said = QString::fromStdString(ranks[0].text());
    QVERIFY2(!ranks[0].ok() && said.contains("step-3/shard-2.safetensors: its content hash is "), qPrintable(said));
  }

  void a_run_goes_on_without_the_weights_it_started_from() {
    namespace fs = std::filesystem;
    const RunFolder weights, run, again;
    fs::copy(trained("float32", 0), std::string(weights), fs::copy_options::recursive);
    TrainingScript script = script_of({}, "float32", run);
    std::ofstream(weights / "spec.toml") << write_spec(order_for(script).plan.spec);
    script.set.insert(script.set.end(), {"model.init=checkpoint", "model.weights=" + std::string(weights)});
    const RunOrder order = order_for(script);
    QVERIFY(!order.plan.weights_fingerprint.empty());
    QVERIFY(write_plan_file(to_json(order), run / "plan.json").has_value());
    ACCRUE_ALL_RANKS_OK(
        RankGroup("saves_what_it_starts_from", 1, {.arguments = {"0", "float32", weights, run}}).finish(60s));
    fs::remove_all(std::string(weights));
    ACCRUE_ALL_RANKS_OK(RankGroup("saves_what_it_goes_on_from", 1, {.arguments = {run, again}}).finish(60s));
    QCOMPARE(
        QString::fromStdString(first_difference(gathered_state(std::string(run)), gathered_state(std::string(again)))),
        QString());
  }

 private:
  /// The folder of three updates in a layout, trained once.
  std::string trained(const std::string& dtype, int index) {
    auto [found, fresh] = folders_.try_emplace({dtype, index});
    if (fresh) {
      found->second = std::make_unique<RunFolder>();
      const Layout& layout = layouts[static_cast<std::size_t>(index)].layout;
      TrainingScript script = script_of(layout, dtype, *found->second);
      script.stop_request = 3;
      const auto ranks = train(script, layout.world());
      if (ranks[0].outcome != "stopped") qWarning("%s", ranks[0].text().c_str());
    }
    return *found->second;
  }

  std::map<std::pair<std::string, int>, std::unique_ptr<RunFolder>> folders_;
};

ACCRUE_RANK_TEST_MAIN(TestReshardedState, {{"train", train_body},
                                           RANK_BODY(saves_what_it_reads),
                                           RANK_BODY(saves_what_it_starts_from),
                                           RANK_BODY(saves_what_it_goes_on_from)})

}  // namespace test_resharded_state
#include "test_resharded_state.moc"
