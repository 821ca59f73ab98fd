// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state() of an Accelerator: restored state, and refusals by name.
#include <ATen/Parallel.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <torch/optim/sgd.h>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/run/data/indexed_dataset_builder.h"
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

/// Flips the last byte of a file.
void rewrite_byte(const fs::path& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end).put(last);
}

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

  /// As a run's checkpoint: the newest that is whole is read, and what is not is named.
  void a_damaged_state_is_passed_over_data() {
    const Rows<QString, qint64> row;
    row("whole", "", 2);
    row("a flipped byte", "flip", 1);
    row("a file cut short", "cut", 1);
    row("no manifest", "manifest", 1);
    row("a save that was killed", "part", 2);
    row("none that is whole", "all", 0);
  }
  void a_damaged_state_is_passed_over() {
    const auto [damage, goes_on_at] = current_row<QString, qint64>();
    const fs::path state = folder(qPrintable("damaged" + damage)), steps = state / "checkpoints";
    Mesh mesh;
    Accelerator first(with(slope_plugin(1)), mesh);
    auto& prepared = first.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
    std::vector<double> slopes{0.5};
    for (int update = 0; update < 2; ++update) {
      prepared.model(*prepared.loaders[0].next());
      slopes.push_back(slope_of(prepared));
      QVERIFY(first.save_state(state).has_value());
    }
    const fs::path newest = steps / "step-2", shard = newest / "shard-0.safetensors";
    if (damage == "flip") rewrite_byte(shard);
    if (damage == "cut") fs::resize_file(shard, fs::file_size(shard) - 8);
    if (damage == "manifest" || damage == "all") fs::remove(newest / "manifest.json");
    if (damage == "all") fs::remove(steps / "step-1" / "manifest.json");
    if (damage == "part") fs::copy(newest, steps / ".step-3.0.part");
    Accelerator second(with(slope_plugin(1)), mesh);
    auto& read = second.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
    const auto loaded = second.load_state(state);
    QCOMPARE(loaded.has_value(), damage != "all");
    if (!loaded)
      QVERIFY2(QString::fromStdString(loaded.error().text())
                   .contains("no state can be used: step-2 was refused: manifest.json: it cannot be read"),
               loaded.error().text().c_str());
    QCOMPARE(second.progress().iteration, std::int64_t{goes_on_at});
    QCOMPARE(slope_of(read), slopes[static_cast<std::size_t>(goes_on_at)]);
    if (damage != "part") return;
    QVERIFY(second.save_state(state).has_value());
    QVERIFY(!fs::exists(steps / ".step-3.0.part"));
  }

  void another_course_sets_later_states_aside() {
    const fs::path state = folder("courses");
    Mesh mesh;
    const auto saved_after = [&](int updates) {
      Accelerator accelerator(with(slope_plugin(1)), mesh);
      auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
      for (int update = 0; update < updates; ++update) prepared.model(*prepared.loaders[0].next());
      QVERIFY(accelerator.save_state(state).has_value());
    };
    saved_after(2);
    saved_after(1);
    QVERIFY(fs::exists(state / "checkpoints" / "abandoned-step-2"));
    Accelerator accelerator(with(slope_plugin(1)), mesh);
    accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
    QVERIFY(accelerator.load_state(state).has_value());
    QCOMPARE(accelerator.progress().iteration, std::int64_t{1});
  }

  void what_is_no_state_of_this_set_up_is_refused_by_name() {
    const fs::path state = folder("set-up");
    Mesh mesh;
    const auto prepared_with = [&](const torch::optim::Optimizer& optimizer, const ModelSource& model) {
      auto accelerator = std::make_unique<Accelerator>(with({}), mesh);
      accelerator->prepare(model, optimizer, {.total_num_steps = 8}, {token_loader(8, 2)});
      return accelerator;
    };
    const auto said = [&](const torch::optim::Optimizer& optimizer, const ModelSpec& model) {
      const auto loaded = prepared_with(optimizer, model)->load_state(state);
      return loaded ? QString() : QString::fromStdString(loaded.error().text());
    };
    fs::create_directories(state);
    QVERIFY(said(adamw(0.1), tiny_gpt()).contains("there is no state"));
    QVERIFY(write_archive(state / "rank-0.safetensors", {}, {{"format", "accrue-megatron-state-2"}}).has_value());
    QVERIFY(said(adamw(0.1), tiny_gpt()).contains("of the format \"accrue-megatron-state-2\""));
    QVERIFY(prepared_with(adamw(0.1), tiny_gpt())->save_state(state).has_value());
    QCOMPARE(said(adamw(0.1), tiny_gpt()), QString());
    ModelSpec wide = tiny_gpt(), deep = tiny_gpt();
    wide.context = 16;
    deep.layers = 5;
    const auto none = std::vector<at::Tensor>{};
    const QString other = said(torch::optim::SGD(none, torch::optim::SGDOptions(0.1).weight_decay(0.01)), tiny_gpt());
    QVERIFY2(other.contains("optimizer is SGD here; the state was saved with AdamW"), qPrintable(other));
    const QString betas =
        said(torch::optim::AdamW(none, torch::optim::AdamWOptions(0.1).betas({0.8, 0.999})), tiny_gpt());
    QVERIFY2(betas.contains("optimizer's betas is 0.8, 0.999 here; the state was saved with 0.9, 0.999"),
             qPrintable(betas));
    const QString shape = said(adamw(0.1), wide);
    QVERIFY2(shape.contains("position_embedding.weight is Double [8, 16] there and Double [16, 16] here"),
             qPrintable(shape));
    ModelSpec shallow = tiny_gpt();
    shallow.layers = 1;
    const QString fewer = said(adamw(0.1), shallow);
    QVERIFY2(fewer.contains(" parameters here; the state was saved with "), qPrintable(fewer));
    const QString missing = said(adamw(0.1), deep);
    QVERIFY2(missing.contains(" is not in the checkpoint"), qPrintable(missing));
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
