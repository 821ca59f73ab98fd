// SPDX-License-Identifier: Apache-2.0
// States of an Accelerator with the Megatron-LM plug-in: written in one layout and read in another, every parameter,
// moment, master and step is the same to the bit, and training goes on to the losses of one rank that was never
// interrupted. In the layout that wrote it, dropout included, it goes on to the same bits.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <unistd.h>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "support/gathered_state.h"
#include "support/megatron_layouts.h"
#include "support/rank_cases.h"
#include "support/training_body.h"

namespace test_megatron_state_layouts {

using namespace accrue;
using namespace accrue::megatron;
using namespace accrue::test;

namespace {

struct NamedLayout {
  const char* name;
  int world;
  std::vector<std::string> words;
};

const std::vector<NamedLayout> layouts{
    {"one rank", 1, {}},
    {"two tensor ranks", 2, {"t2"}},
    {"two stages", 2, {"p2"}},
    {"two replicas", 2, {}},
    {"two sharded replicas", 2, {"z"}},
    {"two stages of two ranks by rows", 4, {"t2", "p2", "s"}},
    {"two sharded replicas of two stages of two chunks", 4, {"p2", "c1", "z"}},
};

/// One token in five rows of four is padding, so a rank of two has it.
ModelSpec padded_gpt() {
  ModelSpec gpt = tiny_gpt();
  gpt.vocabulary = 19;
  gpt.vocabulary_multiple = 4;
  return gpt;
}

struct Trained {
  Trained(Mesh& mesh, const MegatronLayout& layout, bool half) {
    AcceleratorOptions options = options_of(layout, mesh.grid().data);
    if (half) options.mixed_precision = MixedPrecision::bf16;
    accelerator = std::make_unique<Accelerator>(std::move(options), mesh);
    prepared = &accelerator->prepare(padded_gpt(), adamw(0.01), {.total_num_steps = 6}, {token_loader(24, 2)});
  }
  /// Loss and norm of each update until so many were made.
  std::vector<double> until(std::int64_t updates) {
    std::vector<double> numbers;
    while (accelerator->progress().iteration < updates) {
      const auto batch = prepared->loaders[0].next();
      if (!batch) continue;
      numbers.push_back(prepared->model(*batch).loss.item<double>());
      numbers.push_back(*accelerator->progress().grad_norm);
    }
    return numbers;
  }
  std::unique_ptr<Accelerator> accelerator;
  Prepared* prepared = nullptr;
};

/// Arguments: the number type, a folder to read from or "-" to train two updates, one to write to, the layout.
int goes_on(RankContext& rank) {
  const std::vector<std::string>& words = rank.arguments;
  const bool half = words.at(0) == "bfloat16";
  const MegatronLayout layout = layout_of({words.begin() + 3, words.end()});
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  Trained trained(mesh, layout, half);
  if (words[1] == "-")
    trained.until(2);
  else
    trained.accelerator->load_state(words[1]).value();
  DEMAND(trained.accelerator->progress().iteration == 2);
  trained.accelerator->save_state(words[2]).value();
  if (half) return 0;
  const auto got = trained.until(5);
  Mesh alone;
  Trained straight(alone, {}, half);
  straight.until(2);
  const auto expected = straight.until(5);
  DEMAND(got.size() == expected.size() && got.size() == 6);
  for (std::size_t i = 0; i < got.size(); i += 2) {
    DEMAND(std::abs(got[i] - (mesh.last_stage() ? expected[i] : 0.0)) <= 1e-10);
    DEMAND(std::abs(got[i + 1] - expected[i + 1]) <= 1e-10 * expected[i + 1]);
  }
  return 0;
}

int a_state_of_every_rank(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  // A place that all ranks know: the first one's process.
  at::Tensor first = at::full({1}, static_cast<double>(::getpid()), at::kDouble);
  mesh.world().broadcast(first);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("accrue-megatron-" + std::to_string(static_cast<std::int64_t>(first.item<double>())));
  const auto run = [&](bool resumed) {
    Accelerator accelerator(options_of(layout, mesh.grid().data), mesh);
    ModelSpec gpt = tiny_gpt();
    gpt.dropout = 0.1;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 6}, {token_loader(24, 2)});
    if (resumed) {
      const auto loaded = accelerator.load_state(folder);
      if (!loaded) throw std::runtime_error(loaded.error().text());
    }
    std::vector<double> losses;
    while (accelerator.progress().iteration < 5) {
      const auto batch = prepared.loaders[0].next();
      if (!batch) continue;
      losses.push_back(prepared.model(*batch).loss.item<double>());
      losses.push_back(*accelerator.progress().grad_norm);
      if (!resumed && accelerator.progress().iteration == 2)
        if (const auto saved = accelerator.save_state(folder); !saved) throw std::runtime_error(saved.error().text());
    }
    return losses;
  };
  const auto straight = run(false), after = run(true);
  mesh.world().barrier();
  if (rank.rank == 0) std::filesystem::remove_all(folder);
  DEMAND((after == std::vector<double>(straight.begin() + 4, straight.end())));
  return 0;
}

const RankCases cases = {
    {"a state goes on", a_state_of_every_rank, {"t2", "p2", "d z"}, {2}},
    {"a state of four goes on", a_state_of_every_rank, {"t2 p2", "p2 z"}, {4}},
};

}  // namespace

class TestMegatronStateLayouts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }

  void every_layout_goes_on_with_what_another_wrote_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<std::size_t>("first");
    QTest::addColumn<std::size_t>("second");
    for (std::size_t first = 0; first < layouts.size(); ++first)
      for (std::size_t second = 0; second < layouts.size(); ++second)
        for (const char* dtype : {"float64", "bfloat16"}) {
          if (first == second) continue;
          if (QString(dtype) == "bfloat16" && first + second != layouts.size() - 1) continue;  // each once
          QTest::addRow("%s, %s, then %s", dtype, layouts[first].name, layouts[second].name)
              << dtype << first << second;
        }
  }
  void every_layout_goes_on_with_what_another_wrote() {
    QFETCH(QString, dtype);
    QFETCH(std::size_t, first);
    QFETCH(std::size_t, second);
    auto [found, fresh] = folders_.try_emplace({dtype.toStdString(), first});
    if (fresh) {
      found->second = std::make_unique<RunFolder>();
      ACCRUE_ALL_RANKS_OK(ranks_of(first, dtype, "-", *found->second));
    }
    const RunFolder to;
    ACCRUE_ALL_RANKS_OK(ranks_of(second, dtype, *found->second, to));
    auto written = gathered_state(std::string(*found->second)), again = gathered_state(std::string(to));
    QVERIFY(written.erase("accelerator.layout") == 1 && again.erase("accelerator.layout") == 1);
    QCOMPARE(QString::fromStdString(first_difference(written, again)), QString());
    // Of each of 52 parameters: itself, two moments and a step; and the master of a bfloat16 one.
    const auto others = std::ranges::count_if(written, [](const auto& each) { return each.first.starts_with("acc"); });
    QCOMPARE(std::ssize(written) - others, std::ptrdiff_t{52} * (dtype == "bfloat16" ? 5 : 4));
  }

 private:
  static std::vector<RankOutcome> ranks_of(std::size_t layout, const QString& dtype, const std::string& from,
                                           const std::string& to) {
    std::vector<std::string> arguments{dtype.toStdString(), from, to};
    for (const std::string& word : layouts[layout].words) arguments.push_back(word);
    return RankGroup("goes_on", layouts[layout].world, {.arguments = arguments}).finish(60s);
  }

  std::map<std::pair<std::string, std::size_t>, std::unique_ptr<RunFolder>> folders_;  ///< written by a layout, once
};

ACCRUE_RANK_TEST_MAIN(TestMegatronStateLayouts, (bodies_of(cases, {RANK_BODY(goes_on)})))

}  // namespace test_megatron_state_layouts
#include "test_megatron_state_layouts.moc"
