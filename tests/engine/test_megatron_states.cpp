// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state() of an Accelerator: what goes on, and what is refused by name.
#include <ATen/Parallel.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "accrue/run/indexed_dataset_builder.h"
#include "support/megatron_cases.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_states {

using namespace accrue;
using namespace accrue::megatron;
using accrue::megatron::Batch;
using namespace accrue::test;
namespace fs = std::filesystem;

class TestMegatronStates : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  fs::path folder(const char* name) const { return fs::path(dir_.path().toStdString()) / name; }

 private Q_SLOTS:
  void initTestCase() { at::set_num_threads(1); }  // the tensors are small

  void a_state_goes_on_where_it_was_saved() {
    const QTemporaryDir folder;
    const std::filesystem::path state = std::filesystem::path(folder.path().toStdString()) / "state";
    const auto losses = [&](bool resumed) {
      Mesh mesh;
      MegatronLMPlugin plugin;
      plugin.num_micro_batches = 2;
      Accelerator accelerator(with(plugin), mesh);
      ModelSpec gpt = tiny_gpt();
      gpt.dropout = 0.1;
      auto loader = token_loader(16, 2);
      loader.options.shuffle = true;
      auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 8}, {loader});
      std::vector<double> seen;
      if (resumed) {
        const auto loaded = accelerator.load_state(state);
        if (!loaded) throw std::runtime_error(loaded.error().text());
      }
      while (accelerator.progress().iteration < 6) {
        auto batch = prepared.loaders[0].next();
        if (!batch) continue;
        seen.push_back(prepared.model(*batch).loss.item<double>());
        if (!resumed && accelerator.progress().iteration == 3 && !accelerator.save_state(state))
          throw std::runtime_error("the state was not saved");
      }
      return seen;
    };
    const auto straight = losses(false), after = losses(true);
    QCOMPARE(straight.size(), std::size_t{6});
    QCOMPARE(after, std::vector<double>(straight.begin() + 3, straight.end()));
  }

  void a_state_of_another_set_up_is_refused() {
    const QTemporaryDir folder;
    const std::filesystem::path state = std::filesystem::path(folder.path().toStdString()) / "state";
    Mesh mesh;
    Accelerator first(with(slope_plugin(1)), mesh);
    first.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
    QVERIFY(first.save_state(state).has_value());
    Accelerator second(with(slope_plugin(2)), mesh);
    auto& prepared = second.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
    prepared.model(*prepared.loaders[0].next());
    const double before = slope_of(prepared);
    const auto loaded = second.load_state(state);
    QVERIFY(!loaded.has_value());
    QVERIFY2(QString::fromStdString(loaded.error().text()).contains("global_batch_size is 4"),
             loaded.error().text().c_str());
    QCOMPARE(slope_of(prepared), before);
    QVERIFY(!second.load_state(state / "nowhere").has_value());
  }

  void a_constant_loss_scale_is_what_its_argument_says() {
    const fs::path state = folder("scale");
    Mesh mesh;
    const auto scaled = [&](const char* argument) {
      MegatronLMPlugin plugin = slope_plugin(1);
      plugin.other_megatron_args = {argument};
      auto accelerator = std::make_unique<Accelerator>(with(plugin), mesh);
      accelerator->prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
      return accelerator;
    };
    QVERIFY(scaled("initial_loss_scale = 16")->save_state(state).has_value());
    for (const auto& [argument, scale] :
         {std::pair("loss_scale = 8", 8.0), std::pair("initial_loss_scale = 8", 16.0)}) {
      const auto accelerator = scaled(argument);
      QVERIFY(accelerator->load_state(state).has_value());
      QCOMPARE(accelerator->progress().loss_scale, scale);
    }
  }

  // Saved with a linear rate from 0.1 to 0 and a decay of 0.01, after two of eight updates.
  void the_schedule_must_be_the_saved_one_unless_an_argument_says_whose_wins_data() {
    const Rows<QString, QString, double, double, QString> row;
    const QString either =
        ": set override_opt_param_scheduler to go on with what is set here, or use_checkpoint_opt_param_scheduler to "
        "go on with what was saved";
    row("alike", "", "", 0.1, 0.075, "");
    row("another rate", "", "", 0.2, 0.0, "lr is 0.2 here; the state was saved with 0.1" + either);
    row("the run's", "override_opt_param_scheduler = true", "", 0.2, 0.15, "");
    row("the state's", "use_checkpoint_opt_param_scheduler = true", "", 0.2, 0.075, "");
    row("neither, said", "override_opt_param_scheduler = false", "", 0.2, 0.0, "lr is 0.2 here");
    row("another style", "", "cosine", 0.1, 0.0, "lr_decay_style is cosine here; the state was saved with linear");
    row("the state's style", "use_checkpoint_opt_param_scheduler = true", "cosine", 0.1, 0.075, "");
    // At a quarter of a cosine.
    row("the run's style", "override_opt_param_scheduler = true", "cosine", 0.1,
        0.05 * (1.0 + std::cos(std::acos(-1.0) / 4.0)), "");
  }
  void the_schedule_must_be_the_saved_one_unless_an_argument_says_whose_wins() {
    const auto [argument, style, rate, expected, refused] = current_row<QString, QString, double, double, QString>();
    const fs::path state = folder("schedule");
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.lr_decay_style = "linear";
    {
      Accelerator first(with(plugin), mesh);
      auto& prepared = first.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
      for (const Batch& batch : prepared.loaders[0]) prepared.model(batch);
      QVERIFY(first.save_state(state).has_value());
    }
    if (!style.isEmpty()) plugin.lr_decay_style = style.toStdString();
    if (!argument.isEmpty()) plugin.other_megatron_args = {argument.toStdString()};
    Accelerator second(with(plugin), mesh);
    auto& prepared = second.prepare(ModelProvider{}, adamw(rate), {.total_num_steps = 8}, {slope_loader(4, 2)});
    const auto loaded = second.load_state(state);
    if (!refused.isEmpty()) {
      QVERIFY(!loaded.has_value());
      QVERIFY2(loaded.error().text().find(refused.toStdString()) != std::string::npos, loaded.error().text().c_str());
      QCOMPARE(prepared.scheduler.get_last_lr(), rate);
      return;
    }
    QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
    QVERIFY2(std::abs(prepared.scheduler.get_last_lr() - expected) < 1e-12,
             qPrintable(QString::number(prepared.scheduler.get_last_lr(), 'g', 15)));
  }

  /// Decay and embeddings have schedules of their own.
  void every_value_of_a_schedule_is_compared() {
    const fs::path state = folder("values");
    const auto prepare = [](Accelerator& accelerator, double weight_decay, const MegatronLMDummyScheduler& scheduler) {
      accelerator.prepare(tiny_gpt(), adamw(0.1, weight_decay), scheduler, {token_loader(8, 2)});
    };
    Mesh mesh;
    Accelerator first(with({}), mesh);
    prepare(first, 0.01, {.total_num_steps = 8});
    QVERIFY(first.save_state(state).has_value());
    const auto said = [&](const std::function<void(MegatronLMPlugin&)>& change, double weight_decay = 0.01,
                          const MegatronLMDummyScheduler& scheduler = {.total_num_steps = 8}) {
      MegatronLMPlugin plugin;
      change(plugin);
      Accelerator second(with(plugin), mesh);
      prepare(second, weight_decay, scheduler);
      const auto loaded = second.load_state(state);
      return loaded ? QString() : QString::fromStdString(loaded.error().text());
    };
    const auto nothing = [](MegatronLMPlugin&) {};
    QCOMPARE(said(nothing), QString());
    QVERIFY(said([](auto& p) { p.min_lr = 0.01; }).contains("min_lr is 0.01 here; the state was saved with 0"));
    QVERIFY(said(nothing, 0.01, {.total_num_steps = 8, .warmup_num_steps = 2}).contains("lr_warmup_samples is 4"));
    QVERIFY(said([](auto& p) { p.lr_decay_iters = 4; })
                .contains("lr_decay_samples is 8 here; the state was saved "
                          "with 16"));
    QVERIFY(said(nothing, 0.5).contains("start_weight_decay is 0.5"));
    QVERIFY(said([](auto& p) { p.other_megatron_args = {"decoupled_lr = 0.5"}; }).contains("decoupled_lr is 0.5"));
    QVERIFY(said([](auto& p) {
              p.lr_decay_iters = 8;
              p.train_iters = 16;
            }).contains("train_samples is 32 here; the state was saved with 16"));
  }

  void a_load_has_one_schedule() {
    QVERIFY(thrown_by<std::exception>([] {
              Mesh mesh;
              MegatronLMPlugin plugin = slope_plugin(1);
              plugin.other_megatron_args = {"use_checkpoint_opt_param_scheduler = true",
                                            "override_opt_param_scheduler = true"};
              Accelerator accelerator(with(plugin), mesh);
            }).contains("use_checkpoint_opt_param_scheduler and override_opt_param_scheduler exclude each other"));
  }

  // 180 tokens hold 22 samples of 8: they are passed over once for 4 or 5 updates of 4 samples, and twice for 8.
  void indexed_data_of_another_length_are_refused() {
    const fs::path prefix = folder("text"), state = folder("data");
    auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
    for (std::int64_t document = 0; document < 20; ++document) {
      std::vector<std::int64_t> tokens(9, document % 19);
      builder.add_item(tokens).value();
      builder.end_document().value();
    }
    builder.finalize().value();
    Mesh mesh;
    const auto prepare = [&](Accelerator& accelerator) {
      accelerator.prepare(
          tiny_gpt(), adamw(0.01), {},
          {MegatronLMDummyDataLoader{.data_path = {prefix.string()}, .split = "100,0,0", .micro_batch_size = 2}});
    };
    MegatronLMPlugin plugin;
    plugin.seq_length = 8;
    plugin.num_micro_batches = 2;
    plugin.train_iters = 4;
    Accelerator first(with(plugin), mesh);
    prepare(first);
    QVERIFY(first.save_state(state).has_value());
    const auto said = [&](std::int64_t iterations) {
      plugin.train_iters = iterations;
      plugin.other_megatron_args = {"override_opt_param_scheduler = true"};
      Accelerator second(with(plugin), mesh);
      prepare(second);
      const auto loaded = second.load_state(state);
      return loaded ? QString() : QString::fromStdString(loaded.error().text());
    };
    QCOMPARE(said(5), QString());  // one pass, too
    const QString other = said(8);
    QVERIFY2(other.contains("the samples of the training data are 44 here; the state was saved with 22: ") &&
                 other.contains("train_iters"),
             qPrintable(other));
  }
};

ACCRUE_TEST_MAIN(TestMegatronStates)

}  // namespace test_megatron_states
#include "test_megatron_states.moc"
