// SPDX-License-Identifier: Apache-2.0
// States of an Accelerator with the Megatron-LM plug-in: written in one layout and read in another, every parameter,
// moment, master and step is the same to the bit, and training continues to the losses of one rank that was never
// interrupted. In the layout that wrote it, dropout included, it continues to the same bits.
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

/// One row of the vocabulary's twenty is padding.
ModelSpec model_named(const std::string& name) {
  if (name == "t5") return tiny_t5();
  if (name != "gpt") return tiny_bert();
  ModelSpec gpt = tiny_gpt();
  gpt.vocabulary = 19;
  gpt.vocabulary_multiple = 4;
  return gpt;
}

accelerate::MapLoader<megatron::Batch> loader_of(const std::string& model) {
  if (model == "gpt") return token_loader(24, 2);
  auto loader = sentence_loader(model_named(model), false, 2);
  if (model == "classifier")
    loader.fetch = [fetch = loader.fetch](const std::vector<std::int64_t>& rows) {
      megatron::Batch batch = fetch(rows);
      batch["labels"] = at::tensor(rows, at::kLong).remainder(3);
      return batch;
    };
  return loader;
}

struct Trained {
  Trained(Mesh& mesh, const MegatronLayout& layout, const std::string& model, bool half) {
    AcceleratorOptions options = options_of(layout, mesh.grid().data);
    if (half) options.mixed_precision = MixedPrecision::bf16;
    if (model == "classifier") options.num_labels = 3;
    accelerator = std::make_unique<Accelerator>(std::move(options), mesh);
    prepared = &accelerator->prepare(model_named(model), adamw(0.01), {.total_num_steps = 6}, {loader_of(model)});
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

/// Arguments: the model, the number type, a folder to read from or "-" to train two updates, one to write to, the
/// layout.
int goes_on(RankContext& rank) {
  const std::vector<std::string>& words = rank.arguments;
  const bool half = words.at(1) == "bfloat16";
  const MegatronLayout layout = layout_of({words.begin() + 4, words.end()});
  at::set_num_threads(1);
  const JoinedRank joined = join_ranks(rank);
  const RankGrid grid = Accelerator::grid_of(options_of(layout, 1).megatron_lm_plugin, rank.world,
                                             model_named(words[0]), empty_environment())
                            .value();
  Mesh mesh = taken(Mesh::build(*joined.rendezvous, grid));
  Trained trained(mesh, layout, words[0], half);
  if (words[2] == "-")
    trained.until(2);
  else
    trained.accelerator->load_state(words[2]).value();
  DEMAND(trained.accelerator->progress().iteration == 2);
  trained.accelerator->save_state(words[3]).value();
  if (half) return 0;
  const auto got = trained.until(5);
  Mesh alone;
  Trained straight(alone, {}, words[0], half);
  straight.until(2);
  const auto expected = straight.until(5);
  DEMAND(got.size() == expected.size() && got.size() == 6);
  for (std::size_t i = 0; i < got.size(); i += 2) {
    DEMAND(std::abs(got[i] - (mesh.last_stage() ? expected[i] : 0.0)) <= 1e-9);
    DEMAND(std::abs(got[i + 1] - expected[i + 1]) <= 1e-9 * expected[i + 1]);
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

/// Two stages of a custom model: y = w_1 w_0 x. Only the program knows the place of a weight.
struct Factor final : ModelChunk {
  explicit Factor(double value) : weight(register_parameter("weight", at::full({1}, value, at::kDouble))) {}
  Tensors forward(const megatron::Batch& batch) override {
    return {(input_tensor().defined() ? input_tensor() : batch.at("x")) * weight};
  }
  at::Tensor empty_input(const megatron::Batch& batch) const override { return at::empty_like(batch.at("x")); }
  at::Tensor weight;
};

/// The parts of a provider's model can be read if it is divided alike, with other replicas too; otherwise the error
/// says so.
int a_provider_s_state(RankContext& rank) {
  const JoinedRank joined = join_ranks(rank);
  Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.data = rank.world / 2, .pipeline = 2}));
  at::Tensor first = at::full({1}, static_cast<double>(::getpid()), at::kDouble);
  mesh.world().broadcast(first);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("accrue-provider-" + std::to_string(static_cast<std::int64_t>(first.item<double>())));
  const auto prepared_on = [](Mesh& ranks, bool sharded) {
    MegatronLMPlugin plugin = slope_plugin(4 / ranks.grid().data);
    plugin.pp_degree = ranks.grid().pipeline;
    plugin.use_distributed_optimizer = sharded;
    plugin.custom_model_provider_function = [](const ChunkPlace& place) {
      return std::make_shared<Factor>(place.pre_process() ? 0.5 : 2.0);
    };
    auto accelerator = std::make_unique<Accelerator>(with(plugin), ranks);
    auto& prepared = accelerator->prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
    return std::pair(std::move(accelerator), &prepared);
  };
  const auto [accelerator, prepared] = prepared_on(mesh, true);
  prepared->model(*prepared->loaders[0].next());
  DEMAND(slope_of(*prepared) != (mesh.first_stage() ? 0.5 : 2.0));
  accelerator->save_state(folder).value();
  const auto again = prepared_on(mesh, false);
  again.first->load_state(folder).value();
  DEMAND(slope_of(*again.second) == slope_of(*prepared));
  Mesh alone;
  const auto other = prepared_on(alone, false).first->load_state(folder);
  DEMAND(!other && other.error().text().find("parameters.weight is not in the checkpoint") != std::string::npos);
  mesh.world().barrier();
  if (rank.rank == 0) std::filesystem::remove_all(folder);
  return 0;
}

const RankCases cases = {
    {"a provider's state", a_provider_s_state, {""}, {2, 4}},
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
    QTest::addColumn<QString>("what");
    QTest::addColumn<std::size_t>("first");
    QTest::addColumn<std::size_t>("second");
    const auto row = [](const char* what, std::size_t first, std::size_t second) {
      QTest::addRow("%s, %s, then %s", what, layouts[first].name, layouts[second].name) << what << first << second;
    };
    const std::size_t all = layouts.size();
    for (std::size_t first = 0; first < all; ++first)
      for (std::size_t second = 0; second < all; ++second)
        if (first != second) row("gpt float64", first, second);
    for (std::size_t first = 0; first < all; ++first)
      if (first != all - 1 - first) row("gpt bfloat16", first, all - 1 - first);
    for (const char* what : {"bert float64", "t5 float64"})
      for (const auto& [first, second] : {std::pair(0, 2), {2, 0}, {1, 4}, {4, 2}, {2, 1}, {5, 0}})
        row(what, first, second);
    for (const auto& [first, second] : {std::pair(0, 1), {1, 4}, {4, 0}}) row("classifier float64", first, second);
  }
  void every_layout_goes_on_with_what_another_wrote() {
    QFETCH(QString, what);
    QFETCH(std::size_t, first);
    QFETCH(std::size_t, second);
    auto [found, fresh] = folders_.try_emplace({what.toStdString(), first});
    if (fresh) {
      found->second = std::make_unique<RunFolder>();
      ACCRUE_ALL_RANKS_OK(ranks_of(first, what, "-", *found->second));
    }
    const RunFolder to;
    ACCRUE_ALL_RANKS_OK(ranks_of(second, what, *found->second, to));
    auto written = gathered_state(std::string(*found->second)), again = gathered_state(std::string(to));
    QVERIFY(written.erase("accelerator.layout") == 1 && again.erase("accelerator.layout") == 1);
    QCOMPARE(QString::fromStdString(first_difference(written, again)), QString());
    const auto count = [&written = written](const char* prefix) {
      return std::ranges::count_if(written, [prefix](const auto& each) { return each.first.starts_with(prefix); });
    };
    // Of each parameter: two moments and a step; and the master of a bfloat16 one.
    QVERIFY(!what.startsWith(u"gpt") || count("parameters.") == 52);
    // No update reaches the seven of BERT's heads that a classifier does without.
    const auto reached = count("parameters.") - (what.startsWith(u"classifier") ? 7 : 0);
    QCOMPARE(count("optimizer."), reached * (what.endsWith(u"bfloat16") ? 4 : 3));
  }

 private:
  static std::vector<RankOutcome> ranks_of(std::size_t layout, const QString& what, const std::string& from,
                                           const std::string& to) {
    std::vector<std::string> arguments;
    for (const QString& word : what.split(u' ')) arguments.push_back(word.toStdString());
    arguments.insert(arguments.end(), {from, to});
    for (const std::string& word : layouts[layout].words) arguments.push_back(word);
    return RankGroup("goes_on", layouts[layout].world, {.arguments = arguments}).finish(60s);
  }

  std::map<std::pair<std::string, std::size_t>, std::unique_ptr<RunFolder>> folders_;  ///< written by a layout, once
};

ACCRUE_RANK_TEST_MAIN(TestMegatronStateLayouts, (bodies_of(cases, {RANK_BODY(goes_on)})))

}  // namespace test_megatron_state_layouts
#include "test_megatron_state_layouts.moc"
