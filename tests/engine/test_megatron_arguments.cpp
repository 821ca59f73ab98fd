// SPDX-License-Identifier: Apache-2.0
// Effects of fields, arguments and names of data on an Accelerator: each test changes one and checks a step.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <sys/stat.h>

#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "accrue/megatron/step_keywords.h"
#include "accrue/run/data/indexed_dataset_builder.h"
#include "accrue/run/data/torch_random.h"
#include "support/licence_corpus.h"
#include "support/megatron_cases.h"
#include "support/places.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_arguments {

using namespace accrue;
using namespace accrue::megatron;
using accrue::megatron::Batch;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;
using Loaders = std::vector<LoaderSource>;

/// Samples of one token, so that every row shows its origin.
void write_tokens(const fs::path& prefix, std::int64_t documents,
                  const std::function<std::int64_t(std::int64_t)>& token) {
  auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
  for (std::int64_t document = 0; document < documents; ++document) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t i = 0; i < 9; ++i) tokens.push_back(token(document * 9 + i));
    builder.add_item(tokens).value();
    builder.end_document().value();
  }
  builder.finalize().value();
}

MegatronLMPlugin reading_plugin() {
  MegatronLMPlugin plugin;
  plugin.seq_length = 8;
  plugin.train_iters = 4;
  plugin.eval_iters = 1;
  plugin.num_micro_batches = 2;
  return plugin;
}

/// The tokens of so many batches of each loader.
std::vector<std::vector<at::Tensor>> texts(const Loaders& loaders, std::size_t batches,
                                           const MegatronLMPlugin& plugin = reading_plugin()) {
  Mesh mesh;
  Accelerator accelerator(with(plugin), mesh);
  auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, loaders);
  std::vector<std::vector<at::Tensor>> read;
  for (PreparedLoader& loader : prepared.loaders) {
    auto& mine = read.emplace_back();
    while (mine.size() < batches)
      if (const auto batch = loader.next()) mine.push_back(batch->at("text"));
  }
  return read;
}

/// Of GPTs with dropout: losses and parameters after three train steps.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, at::Tensor> parameters;
  std::map<std::string, int> calls;  ///< of operators
};

std::map<std::string, int>* counted_calls = nullptr;

Trained trained(const Arguments& arguments, double dropout, const std::function<void(MegatronLMPlugin&)>& more = {},
                std::int64_t steps = 3, double lr = 0.01) {
  Mesh mesh;
  MegatronLMPlugin plugin;
  plugin.num_micro_batches = 2;
  plugin.lr_decay_style = "constant";
  plugin.gradient_clipping = 0.0;
  plugin.other_megatron_args = arguments;
  if (more) more(plugin);
  Accelerator accelerator(with(plugin), mesh);
  ModelSpec gpt = tiny_gpt();
  gpt.dropout = dropout;
  auto& prepared = accelerator.prepare(gpt, adamw(lr, 0.0), {.total_num_steps = 8}, {token_loader(16, 2)});
  Trained result;
  counted_calls = &result.calls;
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                                              if (counted_calls != nullptr) ++(*counted_calls)[function.name()];
                                              return std::unique_ptr<at::ObserverContext>();
                                            }).scopes({at::RecordScope::FUNCTION}));
  for (std::int64_t step = 0; step < steps; ++step)
    result.losses.push_back(prepared.model(*prepared.loaders[0].next()).loss.item<double>());
  at::removeCallback(handle);
  counted_calls = nullptr;
  for (const auto& each : prepared.model.chunks().at(0)->named_parameters())
    result.parameters[each.key()] = each.value().detach().clone();
  return result;
}

/// Rates of the train steps of a slope, before each.
std::vector<double> rates(const std::function<void(MegatronLMPlugin&)>& change, int steps,
                          const MegatronLMDummyScheduler& scheduler = {.total_num_steps = 10}) {
  Mesh mesh;
  MegatronLMPlugin plugin = slope_plugin(2);
  change(plugin);
  Accelerator accelerator(with(plugin), mesh);
  auto& prepared = accelerator.prepare(ModelProvider{}, adamw(1e-3), scheduler, {slope_loader(80, 2)});
  std::vector<double> all;
  for (int i = 0; i < steps; ++i) {
    all.push_back(prepared.scheduler.get_last_lr());
    prepared.model(*prepared.loaders[0].next());
  }
  return all;
}

QString refusal(const Arguments& arguments, const ModelSource& model = tiny_gpt()) {
  return thrown_by<std::exception>([&] {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.other_megatron_args = arguments;
    Accelerator accelerator(with(plugin), mesh);
    accelerator.prepare(model, adamw(0.01), {.total_num_steps = 10}, {token_loader(8, 2)});
  });
}

bool near(double a, double b, double tolerance = 1e-12) {
  return std::abs(a - b) <= tolerance;
}

}  // namespace

class TestMegatronArguments : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  fs::path folder() const { return fs::path(dir_.path().toStdString()); }
  std::string prefix(const char* name) const { return (folder() / name).string(); }

 private Q_SLOTS:
  void initTestCase() {
    at::set_num_threads(1);  // the tensors are small
    write_tokens(prefix("one"), 30, [](std::int64_t i) { return i % 19; });
    write_tokens(prefix("twos"), 30, [](std::int64_t) { return 2; });
    write_tokens(prefix("threes"), 30, [](std::int64_t) { return 3; });
  }

  void what_a_registered_hook_throws_has_its_name() {
    Registry registry;
    registry.custom_loss_function.add("broken", [](const Batch& batch, const Tensors&) -> LossOut {
      return {batch.at("nowhere"), std::nullopt, {}};
    });
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(2);
    plugin.custom_loss_function = {};
    static_cast<MegatronSpec&>(plugin).custom_loss_function = "broken";
    AcceleratorOptions options = with(plugin);
    options.registry = &registry;
    Accelerator accelerator(std::move(options), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
    const QString said = thrown_by<std::exception>([&] { prepared.model(*prepared.loaders[0].next()); });
    QVERIFY2(said.startsWith("custom_loss_function \"broken\" threw: "), qPrintable(said));
  }

  void what_a_run_refuses_an_accelerator_refuses() {
    Mesh mesh;
    const auto said = [&mesh](const MegatronLMPlugin& plugin) {
      return thrown_by<std::exception>([&] { const Accelerator accelerator(with(plugin), mesh); });
    };
    MegatronLMPlugin prepares;
    prepares.custom_prepare_model_function = [](const ModelProvider& provider, const auto& places) {
      return std::vector{provider(places.front())};
    };
    QVERIFY(said(prepares).contains("needs custom_model_provider_function"));
    MegatronLMPlugin keywords;
    keywords.custom_train_step_kwargs = {{"alpha", "0.25"}};
    QVERIFY(said(keywords).contains("needs custom_train_step_class"));
  }

  void names_that_mean_nothing_here_are_refused_data() {
    const Rows<MegatronLMDummyDataLoader, QString> row;
    const auto loader = [this](auto change) {
      MegatronLMDummyDataLoader made{.data_path = {prefix("one")}};
      change(made);
      return made;
    };
    row("num_workers", loader([](auto& l) { l.num_workers = 2; }), "num_workers must be 0");
    row("mock_data", loader([](auto& l) { l.mock_data = true; }), "mock_data makes no data");
    row("mmap_bin_files", loader([](auto& l) { l.mmap_bin_files = false; }), "mmap_bin_files must be true");
    row("vocab_file", loader([](auto& l) { l.vocab_file = "v"; }), "vocab_file and merge_file");
    row("merge_file", loader([](auto& l) { l.merge_file = "m"; }), "vocab_file and merge_file");
    row("external", loader([](auto& l) { l.dataloader_type = "external"; }), "data of your own");
    row("a type", loader([](auto& l) { l.dataloader_type = "round"; }), "none of single, cyclic");
    row("two sources", loader([](auto& l) { l.train_data_path = {"x"}; }), "give one or the others");
    row("no source", loader([](auto& l) { l.data_path.clear(); }), "data_path names no data set");
    row("no weight", loader([](auto& l) {
          l.data_path.clear();
          l.valid_data_path = {"0.5", "a", "b", "c"};
        }),
        "valid_data_path has a path where a weight should stand (\"b\")");
  }
  void names_that_mean_nothing_here_are_refused() {
    const auto [loader, said] = current_row<MegatronLMDummyDataLoader, QString>();
    const QString found = thrown_by<std::exception>([&loader = loader] { texts({loader}, 1); });
    QVERIFY2(found.contains(said), qPrintable(found));
  }

  void a_step_may_leave_a_keyword_out_but_none_that_it_does_not_know_is_given() {
    const StepKeywords keywords(StepKeywords::Values{{"alpha", "0.5"}, {"beta", "high"}});
    QVERIFY(keywords.find("alpha") == "0.5");
    QVERIFY(!keywords.find("gamma"));
    const auto refused = [](const StepKeywords& given) {
      return thrown_by<ResultError>([&] { given.demand_all_read("the step"); });
    };
    QVERIFY2(refused(keywords).contains("beta is none of the arguments of the step, which are alpha, gamma"),
             qPrintable(refused(keywords)));
    const StepKeywords copy = keywords;  // as a step may keep one
    QVERIFY(copy.find("beta") == "high");
    QCOMPARE(refused(keywords), QString());
  }

  void each_split_may_have_data_of_its_own() {
    const MegatronLMDummyDataLoader data{.train_data_path = {prefix("twos")},
                                         .valid_data_path = {"0.5", prefix("threes"), "0.5", prefix("threes")},
                                         .test_data_path = {prefix("one")},
                                         .micro_batch_size = 2};
    const auto read = texts({data, data, data}, 1);
    QVERIFY(read[0][0].eq(2).all().item<bool>());
    QVERIFY(read[1][0].eq(3).all().item<bool>());
    QVERIFY(!read[2][0].eq(read[2][0][0][0]).all().item<bool>());
  }

  /// By Megatron-LM's rule: each counts by its 33 samples, once, so sets of equal size take turns.
  void prefixes_without_weights_give_all_their_samples_data() {
    const Rows<std::vector<std::string>, std::vector<std::int64_t>, std::int64_t> row;
    row("two", {prefix("twos"), prefix("threes")}, {2, 3, 2, 3}, 66 / 4);
    row("three", {prefix("twos"), prefix("threes"), prefix("twos")}, {2, 3, 2, 2}, 99 / 4);
  }
  void prefixes_without_weights_give_all_their_samples() {
    const auto [prefixes, first, batches] =
        current_row<std::vector<std::string>, std::vector<std::int64_t>, std::int64_t>();
    MegatronLMDummyDataLoader data{.data_path = prefixes, .split = "100,0,0", .micro_batch_size = 2};
    MegatronLMPlugin plugin = reading_plugin();
    plugin.train_iters = 1000;
    for (const char* cache : {"", "cache", "cache"}) {
      if (*cache != '\0') data.data_cache_path = (folder() / QTest::currentDataTag() / cache).string();
      Mesh mesh;
      Accelerator accelerator(with(plugin), mesh);
      auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, {data});
      QCOMPARE(prepared.loaders[0].length(), batches);
      const at::Tensor text = prepared.loaders[0].next()->at("text");
      for (std::int64_t row = 0; row < 4; ++row)
        QVERIFY(text[row].eq(first[static_cast<std::size_t>(row)]).all().item<bool>());
    }
  }

  void indices_are_kept_where_data_cache_path_says() {
    const fs::path cache = folder() / "cache";
    MegatronLMDummyDataLoader data{.data_path = {prefix("one")}, .split = "80,20,0", .micro_batch_size = 2};
    const auto plain = texts({data, data}, 2);
    data.data_cache_path = cache.string();
    const mode_t before = ::umask(0027);
    const auto set_back = qScopeGuard([before] { ::umask(before); });
    for (int pass = 0; pass < 2; ++pass) {
      const auto kept = texts({data, data}, 2);
      for (std::size_t split = 0; split < 2; ++split)
        for (std::size_t i = 0; i < 2; ++i) QVERIFY(kept[split][i].equal(plain[split][i]));
    }
    std::set<std::string> splits;
    fs::path shuffled;
    for (const auto& each : fs::directory_iterator(cache)) {
      const std::string name = each.path().filename().string();
      QCOMPARE(fs::status(each).permissions(), fs::perms(0640));
      if (name.ends_with("-description.txt")) splits.insert(name.substr(name.find('-')));
      if (name.ends_with("-GPTDataset-train-shuffle_index.npy")) shuffled = each.path();
    }
    QCOMPARE(splits, (std::set<std::string>{"-GPTDataset-train-description.txt", "-GPTDataset-valid-description.txt"}));
    // It is read: one that is cut short is found.
    fs::resize_file(shuffled, 40);
    QVERIFY(!thrown_by<std::exception>([&] { texts({data}, 1); }).isEmpty());
  }

  // 4 rows a step, and samples of which one is left over: the order of each epoch is torch.randperm of the others.
  void a_cyclic_loader_shuffles_each_epoch() {
    MegatronLMDummyDataLoader data{.data_path = {prefix("one")}, .split = "100,0,0", .micro_batch_size = 2};
    Mesh mesh;
    Accelerator accelerator(with(reading_plugin()), mesh);
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, {data});
    const std::int64_t batches = prepared.loaders[0].length();
    const auto single = texts({data}, static_cast<std::size_t>(batches));
    const at::Tensor in_order = at::cat(single[0]);
    data.dataloader_type = "cyclic";
    MegatronLMPlugin later = reading_plugin();
    later.consumed_samples = {batches * 4 + 4};  // the second batch of the second epoch
    const auto cyclic = texts({data}, static_cast<std::size_t>(2 * batches));
    const auto resumed = texts({data}, 1, later);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const auto order = torch_randperm(batches * 4, static_cast<std::uint64_t>(epoch));
      for (std::int64_t batch = 0; batch < batches; ++batch) {
        const auto from = order.begin() + batch * 4;
        const at::Tensor expected =
            in_order.index_select(0, at::tensor(std::vector<std::int64_t>(from, from + 4), at::kLong));
        QVERIFY(cyclic[0][static_cast<std::size_t>(epoch * batches + batch)].equal(expected));
        if (epoch == 1 && batch == 1) QVERIFY(resumed[0][0].equal(expected));
      }
    }
  }

  // 30 samples in micro-batches of 2, four a step: an epoch has all 30, and turns within the fourth step.
  void epochs_of_a_cyclic_loader_turn_within_a_step() {
    MegatronLMPlugin plugin = reading_plugin();
    plugin.num_micro_batches = 4;
    plugin.custom_megatron_datasets_provider_function = [](const std::vector<std::int64_t>&) {
      const auto numbers = [](const std::vector<std::int64_t>& rows) {
        return Batch{{"text", at::tensor(rows, at::kLong)}};
      };
      return std::vector<MegatronDataset>(3, MegatronDataset{30, numbers});
    };
    const auto order = [](std::uint64_t epoch) {
      return at::randperm(30, at::detail::createCPUGenerator(epoch), at::TensorOptions(at::kLong));
    };
    MegatronLMDummyDataLoader data;
    data.micro_batch_size = 2;
    data.dataloader_type = "cyclic";
    const at::Tensor expected = at::cat({order(0), order(1)});
    const at::Tensor read = at::cat(texts({data}, 7, plugin)[0]);
    QVERIFY(read.equal(expected.narrow(0, 0, 56)));
    plugin.consumed_samples = {32};
    QVERIFY(texts({data}, 1, plugin)[0][0].equal(expected.narrow(0, 32, 8)));
  }

  // Four blocks, two micro-batches, three steps: what is computed again is called twice, and changes no bit, dropout
  // on.
  void recomputation_changes_no_bit_data() {
    const Rows<Arguments, bool, int, int> row;
    row("none", Arguments{}, false, 1, 1);
    row("the field", Arguments{}, true, 1, 2);
    row("selective", Arguments{"recompute_granularity = selective"}, false, 1, 2);
    row("all blocks", Arguments{"recompute_granularity = full"}, false, 2, 2);
    row("two by two",
        Arguments{"recompute_granularity = full", "recompute_method = uniform", "recompute_num_layers = 2"}, false, 2,
        2);
    row("all of block",
        Arguments{"recompute_granularity = full", "recompute_method = block", "recompute_num_layers = 4"}, false, 2, 2);
  }
  void recomputation_changes_no_bit() {
    const auto [arguments, field, blocks, cores] = current_row<Arguments, bool, int, int>();
    const Trained plain = trained({}, 0.1);
    const Trained again =
        trained(arguments, 0.1, [field = field](MegatronLMPlugin& p) { p.recompute_activations = field; });
    QCOMPARE(again.losses, plain.losses);
    for (const auto& [name, parameter] : plain.parameters)
      QVERIFY2(again.parameters.at(name).equal(parameter), name.c_str());
    const auto calls = [&](const char* name) { return again.calls.count(name) > 0 ? again.calls.at(name) : 0; };
    QCOMPARE(calls("aten::gelu"), blocks * 4 * 2 * 3);
    QCOMPARE(calls("aten::scaled_dot_product_attention"), cores * 4 * 2 * 3);
  }

  // 4 samples an update, 10 updates; by hand at 24 and 32 of 40: 1e-4 + 9e-4 * (1 - 4/20) and (1 - 12/20).
  void a_wsd_schedule_has_the_rates_of_its_arguments() {
    const auto wsd = [](Arguments arguments) {
      return [arguments = std::move(arguments)](MegatronLMPlugin& plugin) {
        plugin.lr_decay_style = "WSD";
        plugin.min_lr = 1e-4;
        plugin.other_megatron_args = arguments;
      };
    };
    for (const char* length : {"lr_wsd_decay_iters = 5", "lr_wsd_decay_samples = 20"}) {
      const auto linear = rates(
          [&](MegatronLMPlugin& plugin) {
            wsd({"lr_wsd_decay_style = linear", length})(plugin);
            if (std::string_view(length).starts_with("lr_wsd_decay_samples")) {
              plugin.train_samples = 40;
            }
          },
          9);
      QVERIFY(near(linear[0], 1e-3) && near(linear[5], 1e-3));
      QVERIFY2(near(linear[6], 8.2e-4), qPrintable(QString::number(linear[6], 'g', 12)));
      QVERIFY2(near(linear[8], 4.6e-4), qPrintable(QString::number(linear[8], 'g', 12)));
    }
    const auto root = rates(wsd({"lr_wsd_decay_style = minus_sqrt", "lr_wsd_decay_iters = 5"}), 8);
    QVERIFY(near(root[7], 1e-4 + 9e-4 * (1.0 - std::sqrt(8.0 / 20.0))));
    const auto usual = rates(wsd({"lr_wsd_decay_iters = 5"}), 9);
    QVERIFY(near(usual[8], 1e-4 + 9e-4 * (2.0 * std::pow(0.5, 0.6) - 1.0)));
    QVERIFY(refusal({"lr_wsd_decay_iters = 11"}).contains("from 1 to 10"));
    QVERIFY(refusal({"lr_wsd_decay_style = round"}).contains("schedule.decay_tail"));
    QVERIFY(refusal({"lr_wsd_decay_iters = 2", "lr_wsd_decay_samples = 2"}).contains("exclude each other"));
    for (const char* tail : {"lr_wsd_decay_iters = 2", "lr_wsd_decay_samples = 8", "lr_wsd_decay_style = cosine"})
      QVERIFY2(refusal({tail}).contains("needs lr_decay_style \"WSD\""), tail);
  }

  void a_warm_up_begins_where_lr_warmup_init_says() {
    const auto warm = rates(
        [](MegatronLMPlugin& plugin) {
          plugin.lr_warmup_iters = 2;
          plugin.lr_decay_style = "constant";
          plugin.other_megatron_args = {"lr_warmup_init = 2e-4"};
        },
        4);
    QVERIFY(near(warm[0], 2e-4) && near(warm[1], 6e-4) && near(warm[2], 1e-3) && near(warm[3], 1e-3));
    QVERIFY(refusal({"lr_warmup_init = 1"}).contains("above the optimizer's rate"));
    QVERIFY(refusal({"lr_warmup_init = 1e-3"}).contains("needs a warm-up"));
  }

  /// The first update of an Adam is as large as its rate unless the gradient is small.
  void embeddings_have_the_decoupled_rate() {
    const Trained before = trained({}, 0.0, {}, 1, 0.0);
    const Trained after = trained({"decoupled_lr = 0.05", "decoupled_min_lr = 0.01"}, 0.0, {}, 1);
    double embedding = 0.0, others = 0.0;
    for (const auto& [name, parameter] : after.parameters) {
      const double moved = (parameter - before.parameters.at(name)).abs().max().item<double>();
      (name.ends_with("token_embedding.weight") ? embedding : others) =
          std::max(name.ends_with("token_embedding.weight") ? embedding : others, moved);
    }
    QVERIFY2(near(embedding, 0.05, 1e-5), qPrintable(QString::number(embedding)));
    QVERIFY2(near(others, 0.01, 1e-5), qPrintable(QString::number(others)));
    QVERIFY(refusal({"decoupled_min_lr = 0.1"}).contains("needs decoupled_lr"));
  }

  void dropout_arguments_are_the_models() {
    const auto plain = trained({}, 0.0).losses, dropped = trained({}, 0.5).losses;
    QVERIFY(plain != dropped);
    QCOMPARE(trained({"hidden_dropout = 0.5"}, 0.0).losses, dropped);
    QCOMPARE(trained({"attention_dropout = 0.5", "hidden_dropout = 0.5"}, 0.1).losses, dropped);
    QVERIFY(refusal({"attention_dropout = 0.5", "hidden_dropout = 0.1"}).contains("equal values"));
    QVERIFY(refusal({"hidden_dropout = 0.5"}, [](const ChunkPlace&) {
              return std::make_shared<Slope>();
            }).contains("need a ModelSpec"));
  }

  void what_only_a_run_does_says_so() {
    QVERIFY(refusal({"overlap_grad_reduce = true"}).contains("after the last micro-batch"));
    QVERIFY(refusal({"overlap_param_gather = true"}).contains("at the end of a train step"));
    QCOMPARE(refusal({"overlap_grad_reduce = false", "attention_softmax_in_fp32 = true"}), QString());
    QVERIFY(refusal({"num_layers = 3"}).contains("belongs to the model"));
    QVERIFY(refusal({"recompute_granularity = full", "recompute_method = round"}).contains("recompute_method"));
  }

  /// On both ways that the attention takes: without dropout, and with (here so little that none is dropped). Scores
  /// that are rounded to the type before the softmax, as the written-out one does, miss by far more.
  void the_softmax_of_a_half_type_is_computed_in_float32_data() {
    const Rows<int, double> row;
    row("bfloat16", int(at::kBFloat16), 0.0);
    row("float16", int(at::kHalf), 0.0);
    row("bfloat16, with dropout", int(at::kBFloat16), 1e-9);
    row("float16, with dropout", int(at::kHalf), 1e-9);
  }
  void the_softmax_of_a_half_type_is_computed_in_float32() {
    const auto [type, dropout] = current_row<int, double>();
    at::manual_seed(3);
    const auto scalar = static_cast<at::ScalarType>(type);
    const auto drawn = [&] { return at::randn({2, 4, 33, 16}, at::kDouble).mul_(4.0).to(scalar); };
    const at::Tensor q = drawn(), k = drawn(), v = drawn();
    const at::Tensor exact =
        at::scaled_dot_product_attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), {}, 0.0, true);
    const auto missed = [&](const at::Tensor& found) {
      return (found.to(at::kDouble) - exact).square().mean().sqrt().item<double>();
    };
    const at::Tensor hidden = at::ones({33, 33}, at::kBool).tril().logical_not();
    const at::Tensor scores = q.matmul(k.transpose(-2, -1)).mul(0.25).masked_fill(hidden, -HUGE_VAL);
    const double wide = missed(at::scaled_dot_product_attention(q, k, v, {}, dropout, /*is_causal=*/true));
    const double narrow = missed(at::softmax(scores, -1).matmul(v));
    QVERIFY2(wide < narrow / 3, qPrintable(QStringLiteral("%1, in the type itself %2").arg(wide).arg(narrow)));
  }

  void timers_have_megatrons_names() {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.num_micro_batches = 2;
    plugin.tensorboard_dir = prefix("board");
    plugin.set_all_logging_options = true;
    plugin.other_megatron_args = {"initial_loss_scale = 16"};
    AcceleratorOptions options = with(plugin);
    options.mixed_precision = MixedPrecision::fp16;
    Accelerator accelerator(std::move(options), mesh);
    ModelSpec gpt = tiny_gpt();
    gpt.dtype = Dtype::float32;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 8}, {token_loader(16, 2)});
    prepared.model(*prepared.loaders[0].next());
    std::set<std::string> names;
    for (const auto& [name, seconds] : accelerator.timers().seconds()) {
      names.insert(name);
      QVERIFY2(seconds >= 0.0, name.c_str());
    }
    // Of one rank: nothing is sent, and neither rows nor embeddings nor parameters are exchanged.
    const std::set<std::string> always{"forward-backward",     "forward-compute", "backward-compute",
                                       "batch-generator",      "all-grads-sync",  "optimizer-unscale-and-check-inf",
                                       "optimizer-count-zeros"};
    for (const std::string& name : always) QVERIFY2(names.contains(name), name.c_str());
  }

  void timers_of_an_update_are_those_of_its_parts() {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.num_micro_batches = 2;
    plugin.other_megatron_args = {"initial_loss_scale = 16"};
    AcceleratorOptions options = with(plugin);
    options.mixed_precision = MixedPrecision::fp16;
    Accelerator accelerator(std::move(options), mesh);
    ModelSpec gpt = tiny_gpt();
    gpt.dtype = Dtype::float32;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 8}, {token_loader(16, 2)});
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(!prepared.optimizer.step_was_skipped());
    std::set<std::string> names;
    for (const auto& [name, seconds] : accelerator.timers().seconds())
      if (name.starts_with("optimizer-")) names.insert(name);
    QCOMPARE(names, (std::set<std::string>{"optimizer-clip-main-grad", "optimizer-copy-main-to-model-params",
                                           "optimizer-copy-to-main-grad", "optimizer-inner-step",
                                           "optimizer-unscale-and-check-inf"}));
  }

  void the_micro_batch_is_the_least_or_the_largest() {
    for (const bool least : {true, false}) {
      Mesh mesh;
      MegatronLMPlugin plugin = slope_plugin(2);
      plugin.is_train_batch_min = least;
      Accelerator accelerator(with(plugin), mesh);
      auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 4},
                                           {slope_loader(16, 4), slope_loader(16, 2)});
      const std::int64_t rows = least ? 4 : 8;
      for (PreparedLoader& loader : prepared.loaders) QCOMPARE(loader.next()->at("x").size(0), rows);
    }
  }

  void an_encoders_length_is_that_of_its_samples() {
    const fs::path licence = folder() / "licence";
    write_licence_corpus(sourcePath("LICENSE-Apache-2.0.txt").toStdString(), licence);
    ModelSpec model = tiny_bert();
    model.vocabulary = licence_vocabulary;
    model.context = 64;
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.encoder_seq_length = 48;
    plugin.train_iters = 4;
    Accelerator accelerator(with(plugin), mesh);
    const MegatronLMDummyDataLoader data{.data_path = {licence.string()}, .split = "100,0,0", .micro_batch_size = 2};
    auto& prepared = accelerator.prepare(model, adamw(0.01), {}, {data});
    QCOMPARE(prepared.loaders[0].next()->at("text").size(1), std::int64_t{48});
  }

  // One part of the licence is a sample of 64 tokens. 15 or 50 of 100 are masked, rounded, and whole words of a BERT at
  // that; a target length that is always drawn cuts a sample to half of its length on average.
  void a_dummy_loader_masks_and_cuts_as_its_fields_say() {
    const fs::path licence = folder() / "sentences";
    write_licence_corpus(sourcePath("LICENSE-Apache-2.0.txt").toStdString(), licence);
    ModelSpec model = tiny_bert();
    model.vocabulary = licence_vocabulary;
    model.context = 128;
    const auto batches_of = [&](const std::function<void(MegatronLMDummyDataLoader&)>& change) {
      Mesh mesh;
      MegatronLMPlugin plugin;
      plugin.seq_length = 128;
      plugin.train_iters = 6;
      Accelerator accelerator(with(plugin), mesh);
      MegatronLMDummyDataLoader data{.data_path = {licence.string()}, .split = "100,0,0", .micro_batch_size = 4};
      change(data);
      auto& prepared = accelerator.prepare(model, adamw(0.01), {}, {data});
      std::vector<Batch> batches;
      for (const Batch& batch : prepared.loaders[0]) batches.push_back(batch);
      return batches;
    };
    const auto sum_of = [](const std::vector<Batch>& batches, const char* name) {
      double sum = 0.0;
      for (const Batch& batch : batches) sum += batch.at(name).sum().item<double>();
      return sum / static_cast<double>(batches.size());
    };
    const auto masked = [&](double share) {
      const auto batches = batches_of([share](auto& data) { data.mask_prob = share; });
      return sum_of(batches, "loss_mask") / sum_of(batches, "padding_mask");
    };
    for (const double share : {0.15, 0.5})
      QVERIFY2(near(masked(share), share, 0.02), qPrintable(QString::number(masked(share))));
    const auto length = [&](double share) {
      return sum_of(batches_of([share](auto& data) { data.short_seq_prob = share; }), "padding_mask");
    };
    QVERIFY2(length(1.0) < 0.8 * length(0.0), qPrintable(QStringLiteral("%1 %2").arg(length(1.0)).arg(length(0.0))));
    const auto first = [&](std::uint32_t seed) {
      return batches_of([seed](auto& data) { data.seed = seed; }).front().at("text");
    };
    QVERIFY(first(1234).equal(batches_of([](auto&) {}).front().at("text")));
    QVERIFY(!first(7).equal(first(1234)));
  }

  void the_split_rank_is_where_the_decoder_begins() {
    MegatronLMPlugin plugin;
    plugin.pp_degree = 4;
    const auto split = [&] { return Accelerator::grid_of(plugin, 4, tiny_t5(), empty_environment()).value().split; };
    QCOMPARE(split(), std::int64_t{2});
    plugin.pipeline_model_parallel_split_rank = 1;
    QCOMPARE(split(), std::int64_t{1});
  }

  void the_data_begin_after_consumed_samples() {
    MegatronLMPlugin plugin = reading_plugin();
    const MegatronLMDummyDataLoader data{.data_path = {prefix("one")}, .split = "80,20,0", .micro_batch_size = 2};
    const auto all = texts({data, data}, 2);
    plugin.consumed_samples = {4, 0, 0};
    QVERIFY(texts({data, data}, 1, plugin)[0][0].equal(all[0][1]));
    plugin.consumed_samples = {5};
    QVERIFY(thrown_by<std::exception>([&] { texts({data}, 1, plugin); }).contains("no multiple of a batch"));
    plugin.consumed_samples = {4000};
    QVERIFY(thrown_by<std::exception>([&] {
              texts({data}, 1, plugin);
            }).contains("consumed_samples[0] = 4000 leaves nothing of data loader 1, which has "));
  }

  void a_sequence_has_no_more_tokens_than_the_model_has_positions() {
    MegatronLMPlugin plugin = reading_plugin();
    plugin.seq_length = 9;
    const MegatronLMDummyDataLoader data{.data_path = {prefix("one")}, .split = "80,20,0", .micro_batch_size = 2};
    QVERIFY(thrown_by<std::exception>([&] {
              texts({data}, 1, plugin);
            }).contains("is longer than the positions that the model has (found 9, expected at most 8)"));
  }

  /// U18: the place comes from the state. A field with another place is refused.
  void a_state_says_how_many_samples_are_consumed() {
    const fs::path state = folder() / "state";
    Mesh mesh;
    const auto prepared_with = [&](Accelerator& accelerator) -> Prepared& {
      return accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(16, 2)});
    };
    MegatronLMPlugin plugin = slope_plugin(2);
    Accelerator first(with(plugin), mesh);
    auto& trained_once = prepared_with(first);
    trained_once.model(*trained_once.loaders[0].next());
    QVERIFY(first.save_state(state).has_value());
    for (const std::int64_t consumed : {8, 4}) {
      plugin.consumed_samples = {consumed};
      Accelerator second(with(plugin), mesh);
      auto& prepared = prepared_with(second);
      const auto loaded = second.load_state(state);
      QCOMPARE(loaded.has_value(), consumed == 4);
      if (!loaded)
        QVERIFY(QString::fromStdString(loaded.error().text())
                    .contains("consumed_samples begins with 8 here; the state "
                              "was saved after 4"));
      QCOMPARE(prepared.loaders[0].position(), std::int64_t{consumed / 4});
    }
    Accelerator third(with(slope_plugin(2)), mesh);
    auto& prepared = prepared_with(third);
    QVERIFY(third.load_state(state).has_value());
    QCOMPARE(prepared.loaders[0].position(), std::int64_t{1});
  }

  // 4 samples an update; linear from 1e-3 to 0.
  void lengths_in_samples_and_iterations_make_the_schedule_data() {
    const Rows<QString, QVector<double>> row;
    row("train_samples", "samples", {1e-3, 1e-3 * 15 / 16, 1e-3 * 14 / 16});
    row("lr_decay_iters", "decay_iters", {1e-3, 1e-3 * 4 / 5, 1e-3 * 3 / 5});
    row("lr_decay_samples", "decay_samples", {1e-3, 1e-3 * 28 / 32, 1e-3 * 24 / 32});
    row("lr_warmup_fraction", "fraction", {0, 1e-3 * 4 / 20, 1e-3 * 8 / 20});
    row("lr_warmup_samples", "warmup_samples", {0, 1e-3 * 4 / 8, 1e-3});
  }
  void lengths_in_samples_and_iterations_make_the_schedule() {
    const auto [what, expected] = current_row<QString, QVector<double>>();
    const auto found = rates(
        [what = what](MegatronLMPlugin& plugin) {
          if (what == "decay_iters") {
            plugin.lr_decay_iters = 5;
            return;
          }
          if (what == "fraction") {
            plugin.lr_warmup_fraction = 0.5;
            return;
          }
          plugin.train_samples = 64;
          if (what == "decay_samples") plugin.lr_decay_samples = 32;
          if (what == "warmup_samples") plugin.lr_warmup_samples = 8;
        },
        3);
    for (std::size_t i = 0; i < 3; ++i)
      QVERIFY2(near(found[i], expected[static_cast<qsizetype>(i)]), qPrintable(QString::number(found[i], 'g', 12)));
  }
};

ACCRUE_TEST_MAIN(TestMegatronArguments)

}  // namespace test_megatron_arguments
#include "test_megatron_arguments.moc"
