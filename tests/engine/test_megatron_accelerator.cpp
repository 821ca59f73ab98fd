// SPDX-License-Identifier: Apache-2.0
// The Accelerator with the Megatron-LM plug-in in one process: a train step against a loop written out, its schedule,
// what it refuses, evaluation, TensorBoard.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "accrue/run/data/indexed_dataset_builder.h"
#include "support/megatron_cases.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_accelerator {

using namespace accrue;
using namespace accrue::megatron;
using accrue::megatron::Batch;
using accrue::megatron::Evaluation;
using namespace accrue::test;

namespace {

bool near(double a, double b, double tolerance = 1e-12) {
  return std::abs(a - b) <= tolerance;
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const QString& kind, double weight_decay,
                                                      const std::vector<at::Tensor>& parameters) {
  using namespace torch::optim;
  if (kind == "AdamW") return std::make_unique<AdamW>(parameters, AdamWOptions(0.1).weight_decay(weight_decay));
  if (kind == "Adam") return std::make_unique<Adam>(parameters, AdamOptions(0.1).weight_decay(weight_decay));
  const SGDOptions sgd = SGDOptions(0.1).momentum(0.9).weight_decay(weight_decay);
  if (kind == "nesterov") return std::make_unique<SGD>(parameters, SGDOptions(sgd).nesterov(true));
  return std::make_unique<SGD>(parameters, SGDOptions(sgd).dampening(0.25));
}

QString refused_plugin(const std::function<void(AcceleratorOptions&)>& change, const ModelSource& model = tiny_gpt(),
                       const MegatronLMDummyScheduler& scheduler = {.total_num_steps = 4}) {
  return thrown_by<std::exception>([&] {
    Mesh mesh;
    AcceleratorOptions options = with({});
    change(options);
    Accelerator accelerator(std::move(options), mesh);
    accelerator.prepare(model, adamw(0.01), scheduler, {token_loader(8, 2)});
  });
}

/// The scalars' tags of a file of events, as they stand in its bytes.
bool has_tag(const std::filesystem::path& folder, const std::string& tag) {
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(each.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.find(tag) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

class TestMegatronAccelerator : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { at::set_num_threads(1); }  // the tensors are small

  /// Two updates of four rows in two micro-batches, beside LibTorch's optimizer in a loop: the clip, the rate of the
  /// update, and the weight decay, which a vector does not have unless no_wd_decay_cond says so.
  void a_call_is_a_train_step_data() {
    const Rows<QString, bool> row;
    row("AdamW, a vector", "AdamW", false);
    row("AdamW", "AdamW", true);
    row("Adam, whose decay is part of the gradient", "Adam", true);
    row("SGD with nesterov", "nesterov", true);
    row("SGD with dampening", "dampening", true);
  }
  void a_call_is_a_train_step() {
    const auto [kind, decays] = current_row<QString, bool>();
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(2);
    plugin.lr_decay_style = "linear";
    plugin.gradient_clipping = 3.0;
    if (decays) plugin.no_wd_decay_cond = [](const std::string&, const at::Tensor&) { return false; };
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, *optimizer_of(kind, 0.5, {}), {.total_num_steps = 4},
                                         {slope_loader(8, 2)});
    auto& [model, optimizer, scheduler, loaders] = prepared;
    at::Tensor w = at::full({1}, 0.5, at::kDouble).requires_grad_();
    const auto own = optimizer_of(kind, decays ? 0.5 : 0.0, {w});
    torch::optim::Optimizer& reference = *own;
    QCOMPARE(loaders[0].length(), std::int64_t{2});
    model.train();
    std::int64_t update = 0;
    for (const Batch& batch : loaders[0]) {
      const double rate = 0.1 * (1.0 - static_cast<double>(update) / 4.0);
      QVERIFY(near(scheduler.get_last_lr(), rate));
      const at::Tensor missed = batch.at("x") * w - batch.at("y");
      const at::Tensor loss = missed.square().mean() * 0.5;
      reference.zero_grad();
      loss.backward();
      const double norm = w.grad().norm().item<double>();
      QVERIFY(norm > 3.0);
      w.mutable_grad() = w.grad() * (3.0 / (norm + 1e-6));
      reference.param_groups()[0].options().set_lr(rate);
      reference.step();

      const auto out = model(batch);
      accelerator.backward(out.loss);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      QVERIFY(near(out.loss.item<double>(), loss.item<double>()));
      QVERIFY(near(*accelerator.progress().grad_norm, norm, 1e-10));
      ++update;
      QCOMPARE(scheduler.num_steps(), 4 * update);
    }
    QVERIFY(near(slope_of(prepared), w.item<double>(), 1e-12));
    QCOMPARE(accelerator.progress().iteration, std::int64_t{2});
    QCOMPARE(accelerator.progress().consumed_train_samples, std::int64_t{8});
    QVERIFY(accelerator.is_main_process());
    QVERIFY(accelerator.timers().seconds().contains("forward-compute"));
  }

  /// A second pass of the loader is a second epoch.
  void eval_mode_changes_nothing() {
    Mesh mesh;
    Accelerator accelerator(with(slope_plugin(1)), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 4}, {slope_loader(4, 4)});
    prepared.model.eval();
    for (const Batch& batch : prepared.loaders[0])
      QVERIFY(near(prepared.model(batch).loss.item<double>(), 0.5 * 1.5 * 1.5 * (1 + 4 + 9 + 16) / 4.0));
    QCOMPARE(slope_of(prepared), 0.5);
    QCOMPARE(accelerator.progress().iteration, std::int64_t{0});
    QCOMPARE(prepared.loaders[0].epoch(), std::int64_t{1});
  }

  /// U2: the horizon is counted in updates. Warm-up over 2 of 10 updates of 4 samples.
  void the_horizon_is_that_of_updates() {
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(2);
    plugin.min_lr = 0.01;
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 10, .warmup_num_steps = 2},
                                         {slope_loader(8, 2)});
    QCOMPARE(prepared.scheduler.curve().total, std::int64_t{40});
    QCOMPARE(prepared.scheduler.curve().warmup, 8.0);
    std::vector<double> rates;
    for (int pass = 0; pass < 6; ++pass)
      for (const Batch& batch : prepared.loaders[0]) {
        rates.push_back(prepared.scheduler.get_last_lr());
        prepared.model(batch);
      }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const auto n = static_cast<double>(4 * i);
      const double expected = n <= 8 ? 0.1 * n / 8 : n > 40 ? 0.01 : 0.01 + 0.09 * (1 - (n - 8) / 32);
      QVERIFY2(near(rates[i], expected), qPrintable(QString::number(rates[i])));
    }
  }

  void groups_by_condition() {
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.lr_mult = 0.5;
    plugin.no_wd_decay_cond = [](const std::string&, const at::Tensor&) { return false; };
    plugin.scale_lr_cond = [](const std::string& name, const at::Tensor&) { return name == "weight"; };
    plugin.gradient_clipping = 0.0;
    plugin.lr_decay_style = "constant";
    Accelerator accelerator(with(plugin), mesh);
    torch::optim::SGD sgd(std::vector<at::Tensor>{}, torch::optim::SGDOptions(0.1).weight_decay(0.2));
    auto& prepared = accelerator.prepare(ModelProvider{}, sgd, {.total_num_steps = 4}, {slope_loader(4, 4)});
    prepared.model(*prepared.loaders[0].next());
    // w - 0.05 ((w - 2) mean x^2 + 0.2 w)
    QVERIFY(near(slope_of(prepared), 0.5 - 0.05 * (-1.5 * 7.5 + 0.2 * 0.5)));
    QVERIFY(!accelerator.progress().grad_norm);
  }

  void a_last_batch_is_dropped_or_padded() {
    for (const LastBatch last : {LastBatch::drop, LastBatch::pad}) {
      Mesh mesh;
      AcceleratorOptions options = with({});
      options.megatron_lm_plugin.num_micro_batches = 2;
      options.last_batch = last;
      Accelerator accelerator(options, mesh);
      auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {.total_num_steps = 4}, {token_loader(7, 2)});
      QCOMPARE(prepared.loaders[0].length(), std::int64_t{last == LastBatch::drop ? 1 : 2});
      int batches = 0;
      for (const Batch& batch : prepared.loaders[0]) {
        ++batches;
        QCOMPARE(batch.at("input_ids").size(0), std::int64_t{4});
        QCOMPARE(batch.contains("row_mask"), batches == 2);
        if (batches == 2) QVERIFY(at::equal(batch.at("row_mask"), at::tensor({1, 1, 1, 0}, at::kLong)));
      }
      QCOMPARE(batches, last == LastBatch::drop ? 1 : 2);
    }
  }

  /// Rows 8 and on, by the mean of the losses that each has alone.
  void a_padded_batch_has_the_loss_of_its_real_rows_data() {
    const Rows<int> row;
    row("half a micro-batch", 9);
    row("a micro-batch of padding alone", 10);
    row("one and a half", 11);
  }
  void a_padded_batch_has_the_loss_of_its_real_rows() {
    const auto [samples] = current_row<int>();
    const auto last_of = [](std::int64_t rows, std::int64_t micro_batch, std::int64_t micro_batches,
                            std::int64_t skip) {
      Mesh mesh;
      AcceleratorOptions options = with({});
      options.megatron_lm_plugin.num_micro_batches = micro_batches;
      options.last_batch = LastBatch::pad;
      Accelerator accelerator(options, mesh);
      auto& prepared =
          accelerator.prepare(tiny_gpt(), adamw(0.0, 0.0), {.total_num_steps = 4}, {token_loader(rows, micro_batch)});
      while (skip-- > 0) prepared.loaders[0].next();
      const double loss = prepared.model(*prepared.loaders[0].next()).loss.item<double>();
      return std::pair(loss, *accelerator.progress().grad_norm);
    };
    const auto padded = last_of(samples, 2, 2, 2);
    double mean = 0.0;
    for (int row = 8; row < samples; ++row) mean += last_of(samples, 1, 1, row).first / (samples - 8);
    QVERIFY(near(padded.first, mean));
    if (samples == 10) QVERIFY(near(padded.second, last_of(samples, 2, 1, 4).second));
  }

  void logits_are_those_of_the_batch() {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.num_micro_batches = 2;
    plugin.return_logits = true;
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.0, 0.0), {.total_num_steps = 4}, {token_loader(8, 2)});
    prepared.model.eval();
    const Batch batch = *prepared.loaders[0].next();
    const ModelOutput out = prepared.model(batch);
    // U6: a train step concatenates its micro-batches' logits, too.
    prepared.model.train();
    const ModelOutput trained = prepared.model(batch);
    QCOMPARE(accelerator.progress().iteration, std::int64_t{1});
    QVERIFY(trained.logits.sizes() == out.logits.sizes());
    QVERIFY(at::allclose(trained.logits, out.logits, 1e-12, 1e-14));
    QVERIFY((out.logits.sizes() == at::IntArrayRef{4, 8, 20}));
    const at::Tensor tokens = batch.at("input_ids");
    at::Tensor labels = at::full({4, 8}, 19, at::kLong);
    labels.narrow(1, 0, 7).copy_(tokens.narrow(1, 1, 7));
    const at::Tensor mean = at::cross_entropy_loss(out.logits.reshape({-1, 20}), labels.reshape({-1}));
    QVERIFY(near(out.loss.item<double>(), mean.item<double>()));
  }

  /// Of a data loader's fields, or of other_megatron_args: a document ends at token 3, and the one after it counts its
  /// positions anew, does not see what came before, or has no loss at its end. The losses are those of the model given
  /// this by hand.
  void documents_begin_again_as_the_data_loader_says_data() {
    const Rows<bool, bool, bool, bool> row;
    row("neither", false, false, false, false);
    row("positions", true, false, false, false);
    row("attention", false, true, false, false);
    row("no loss at the end", false, false, true, false);
    row("all", true, true, true, false);
    row("positions, by an argument", true, false, false, true);
    row("attention, by an argument", false, true, false, true);
    row("all, by arguments", true, true, true, true);
  }
  void documents_begin_again_as_the_data_loader_says() {
    const auto [positions, attention, masks, arguments] = current_row<bool, bool, bool, bool>();
    const at::Tensor text =
        at::tensor({5, 6, 3, 7, 8, 9, 3, 2, 4, 3, 5, 7, 11, 13, 3, 17, 2, 6}, at::kLong).view({2, 9});
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.num_micro_batches = 1;
    const auto set = [](const char* name, bool on) { return std::string(name) + (on ? " = true" : " = false"); };
    if (arguments)
      plugin.other_megatron_args = {set("reset_position_ids", positions), set("reset_attention_mask", attention),
                                    set("eod_mask_loss", masks)};
    plugin.custom_megatron_datasets_provider_function = [text](const std::vector<std::int64_t>&) {
      const MegatronDataset rows{2, [text](const std::vector<std::int64_t>& which) {
                                   return Batch{{"text", text.index_select(0, at::tensor(which, at::kLong))}};
                                 }};
      return std::vector{rows, rows, rows};
    };
    AcceleratorOptions options = with(plugin);
    options.eod_token = 3;
    Accelerator accelerator(std::move(options), mesh);
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {.total_num_steps = 1},
                                         {MegatronLMDummyDataLoader{.reset_position_ids = positions && !arguments,
                                                                    .reset_attention_mask = attention && !arguments,
                                                                    .eod_mask_loss = masks && !arguments,
                                                                    .micro_batch_size = 2}});
    prepared.model.eval();
    const double loss = prepared.model(*prepared.loaders[0].next()).loss.item<double>();
    std::vector<std::int64_t> place, first;
    std::vector<double> counts;
    for (std::int64_t r = 0; r < 2; ++r) {
      std::int64_t begin = 0;
      for (std::int64_t i = 0; i < 8; ++i) {
        place.push_back(positions ? i - begin : i);
        first.push_back(attention ? begin : 0);
        const bool ends = text[r][i].item<std::int64_t>() == 3;
        counts.push_back(masks && ends ? 0.0 : 1.0);
        if (ends) begin = i + 1;
      }
    }
    const at::Tensor weights = at::tensor(counts, at::kDouble);
    const at::Tensor losses =
        prepared.model.chunks().at(0)->forward({{"tokens", text.narrow(1, 0, 8).contiguous()},
                                                {"labels", text.narrow(1, 1, 8).contiguous()},
                                                {"positions", at::tensor(place, at::kLong).view({2, 8})},
                                                {"document_starts", at::tensor(first, at::kLong).view({2, 8})}})[0];
    const double expected = ((losses.reshape({-1}) * weights).sum() / weights.sum()).item<double>();
    QVERIFY2(near(loss, expected, 1e-9), qPrintable(QStringLiteral("%1, by hand %2").arg(loss).arg(expected)));
  }

  /// Each argument of other_megatron_args says so for one tag; with set_all_logging_options, against it.
  void arguments_choose_what_is_logged() {
    const auto tags = [](const std::vector<std::string>& arguments, bool all) {
      const QTemporaryDir folder;
      const std::filesystem::path board = std::filesystem::path(folder.path().toStdString()) / "board";
      Mesh mesh;
      MegatronLMPlugin plugin = slope_plugin(1);
      plugin.tensorboard_dir = board.string();
      plugin.set_all_logging_options = all;
      plugin.other_megatron_args = arguments;
      Accelerator accelerator(with(plugin), mesh);
      auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
      prepared.model(*prepared.loaders[0].next());
      QStringList found;
      for (const char* tag : {"params-norm", "num-zeros", "all-grads-sync-time", "forward-compute-time",
                              "mem-reserved-bytes", "mem-max-allocated-bytes"})
        if (has_tag(board, tag)) found << tag;
      return found;
    };
    QCOMPARE(tags({}, false), QStringList());
    QCOMPARE(tags({"log_params_norm = true", "timing_log_level = 1"}, false),
             (QStringList{"params-norm", "all-grads-sync-time"}));
    QCOMPARE(tags({"log_num_zeros_in_grad = true"}, false), QStringList{"num-zeros"});
    QCOMPARE(tags({"log_num_zeros_in_grad = false", "timing_log_level = 1"}, true),
             (QStringList{"params-norm", "all-grads-sync-time", "mem-reserved-bytes", "mem-max-allocated-bytes"}));
  }

  void evaluations_come_by_themselves() {
    const QTemporaryDir folder;
    const std::filesystem::path board = std::filesystem::path(folder.path().toStdString()) / "board";
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.eval_interval = 2;
    plugin.eval_iters = 3;
    plugin.tensorboard_dir = board.string();
    plugin.set_all_logging_options = true;
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8},
                                         {slope_loader(4, 2), slope_loader(4, 2), slope_loader(4, 2)});
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& batch : prepared.loaders[0]) prepared.model(batch);
    QCOMPARE(accelerator.evaluations().size(), std::size_t{2});
    QCOMPARE(accelerator.evaluations()[1].iteration, std::int64_t{4});
    QCOMPARE(accelerator.progress().consumed_valid_samples, std::int64_t{12});
    // The first took the batches 1 2, 3 4 and 1 2, this one 3 4, 1 2 and 3 4; half the mean square of what is missing.
    const double miss = slope_of(prepared) - 2.0;
    const double expected = 0.5 * miss * miss * (12.5 + 2.5 + 12.5) / 3.0;
    QVERIFY(near(accelerator.evaluations()[1].losses.at(0).second, expected));
    for (const char* tag : {"learning-rate", "slope loss vs samples", "slope loss validation ppl", "params-norm",
                            "num-zeros", "grad-norm", "batch-size", "forward-compute-time", "all-grads-sync-time"})
      QVERIFY2(has_tag(board, tag), tag);
    // Nothing is known of what a provider's model computes.
    QVERIFY(!has_tag(board, "throughput"));
    QVERIFY(!has_tag(board, "loss-scale"));
  }

  void both_losses_of_a_bert_are_written_apart() {
    const QTemporaryDir folder;
    const std::filesystem::path board = std::filesystem::path(folder.path().toStdString()) / "board";
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.tensorboard_dir = board.string();
    plugin.set_all_logging_options = true;
    AcceleratorOptions options = with(plugin);
    options.mixed_precision = MixedPrecision::fp16;
    Accelerator accelerator(std::move(options), mesh);
    ModelSpec bert = tiny_bert();
    bert.dtype = Dtype::float32;
    auto& prepared = accelerator.prepare(bert, adamw(0.01), {.total_num_steps = 8}, {sentence_loader(bert, false, 2)});
    const ModelOutput out = prepared.model(*prepared.loaders[0].next());
    QCOMPARE(out.losses.size(), std::size_t{2});
    QVERIFY(near(out.loss.item<double>(), out.losses[0].second + out.losses[1].second));
    for (const char* tag : {"lm loss", "sop loss", "throughput", "loss-scale"}) QVERIFY2(has_tag(board, tag), tag);
  }

  void indexed_text_trains() {
    const QTemporaryDir folder;
    const std::filesystem::path prefix = std::filesystem::path(folder.path().toStdString()) / "text";
    write_indexed(prefix);
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.seq_length = 8;
    plugin.train_iters = 3;
    plugin.eval_iters = 1;
    plugin.num_micro_batches = 2;
    Accelerator accelerator(with(plugin), mesh);
    const MegatronLMDummyDataLoader data{.data_path = {prefix.string()}, .split = "80,20,0", .micro_batch_size = 2};
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, {data, data});
    const auto batch = prepared.loaders[0].next();
    QVERIFY((batch->at("text").sizes() == at::IntArrayRef{4, 9}));
    QVERIFY(std::isfinite(prepared.model(*batch).loss.item<double>()));
    QVERIFY(thrown_by<std::exception>([&] {
              Accelerator other(with({}), mesh);
              other.prepare(tiny_gpt(), adamw(0.01), {.total_num_steps = 3}, {data});
            }).contains("seq_length"));
  }

  void what_cannot_be_is_refused_by_name() {
    QVERIFY(refused_plugin([](auto& o) { o.gradient_accumulation_steps = 2; }).contains("num_micro_batches"));
    QVERIFY(refused_plugin([](auto& o) { o.megatron_lm_plugin.tp_degree = 2; }).contains("tp_degree"));
    QVERIFY(refused_plugin([](auto& o) { o.megatron_lm_plugin.num_micro_batches = 0; }).contains("num_micro_batches"));
    QVERIFY(refused_plugin([](auto&) {}, tiny_gpt(), {}).contains("total_num_steps"));
    QVERIFY(refused_plugin([](auto& o) {
              o.megatron_lm_plugin.other_megatron_args = {"hidden_dropuot = 0.1"};
            }).contains("hidden_dropout"));
    for (const char* argument : {"timing_log_level = -1", "timing_log_level = 7", "hysteresis = 0"}) {
      const QString said = refused_plugin([&](auto& o) { o.megatron_lm_plugin.other_megatron_args = {argument}; });
      QVERIFY2(said.contains("other_megatron_args: " + QString(argument).section(' ', 0, 0)) &&
                   said.contains("is out of range"),
               qPrintable(said));
    }
    QVERIFY(refused_plugin([](auto& o) { o.megatron_lm_plugin.num_micro_batches = 8; }).contains("one batch of all"));
    QVERIFY(refused_plugin([](auto& o) { o.megatron_lm_plugin.min_lr = 1.0; }).contains("min_lr"));
    QVERIFY(refused_plugin([](auto& o) {
              static_cast<MegatronSpec&>(o.megatron_lm_plugin).custom_loss_function = "name";
            }).contains("no plug-in library registers"));
    QVERIFY(refused_plugin([](auto& o) {
              o.megatron_lm_plugin.custom_get_batch_function = [](DataIter& data) { return data.next(); };
              o.megatron_lm_plugin.custom_train_step_class = [](const TrainStepArgs& args, const StepKeywords&) {
                return std::make_shared<GPTTrainStep>(args);
              };
            }).contains("custom_get_batch_function and custom_train_step_class"));
    QVERIFY(thrown_by<std::exception>([] {
              Mesh mesh;
              Accelerator accelerator(with(slope_plugin(1)), mesh);
              torch::optim::Adagrad adagrad(std::vector<at::Tensor>{}, torch::optim::AdagradOptions(0.1));
              accelerator.prepare(ModelProvider{}, adagrad, {.total_num_steps = 4}, {slope_loader(4, 2)});
            }).contains("AdamW, Adam or SGD"));
    MegatronLMPlugin four;
    four.tp_degree = 4;
    QVERIFY(!Accelerator::grid_of(four, 6, empty_environment()).has_value());
    QCOMPARE(Accelerator::grid_of(four, 8, empty_environment())->data, std::int64_t{2});
  }

  /// The name gives what the member gives.
  void a_registry_fills_what_the_plug_in_names() {
    Registry registry;
    registry.custom_loss_function.add("slope", slope_loss);
    registry.custom_model_provider_function.add("slope", [](const ChunkPlace&) { return std::make_shared<Slope>(); });
    registry.custom_get_batch_function.add("plain", [](DataIter& data) { return data.next(); });
    registry.custom_prepare_model_function.add("all", [](const ModelProvider& provider, const auto& places) {
      std::vector<std::shared_ptr<ModelChunk>> chunks;
      for (const ChunkPlace& place : places) chunks.push_back(provider(place));
      return chunks;
    });
    const auto slope_after = [&](const MegatronLMPlugin& plugin) {
      Mesh mesh;
      AcceleratorOptions options = with(plugin);
      options.registry = &registry;
      Accelerator accelerator(std::move(options), mesh);
      auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(8, 2)});
      for (const Batch& batch : prepared.loaders[0]) prepared.model(batch);
      return slope_of(prepared);
    };
    MegatronLMPlugin named;
    named.num_micro_batches = 2;
    MegatronSpec& spec = named;
    spec.custom_loss_function = spec.custom_model_provider_function = "slope";
    spec.custom_get_batch_function = "plain";
    spec.custom_prepare_model_function = "all";
    QCOMPARE(slope_after(named), slope_after(slope_plugin(2)));
    QVERIFY(
        thrown_by<std::exception>([&] { registry.custom_loss_function.add("slope", slope_loss); }).contains("twice"));
    spec.custom_loss_function = "slop";
    QVERIFY(thrown_by<std::exception>([&] { slope_after(named); }).contains("\"slope\""));
  }

  /// Wherever it lies, the loss is the same whatever tokens stand for it.
  void padding_is_seen_by_no_token() {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.gradient_clipping = 0.0;
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.0, 0.0), {.total_num_steps = 3}, {token_loader(4, 2)});
    prepared.model.eval();
    const auto loss_of = [&](const std::vector<std::int64_t>& mask, std::int64_t pad) {
      const at::Tensor row = at::tensor(mask, at::kLong).unsqueeze(0).expand({2, 8}).contiguous();
      const at::Tensor tokens = at::arange(1, 9, at::kLong).unsqueeze(0).expand({2, 8});
      return prepared.model({{"input_ids", tokens.masked_fill(row == 0, pad)}, {"attention_mask", row}})
          .loss.item<double>();
    };
    for (const std::vector<std::int64_t>& mask :
         {std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 0, 0}, {0, 0, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 0}})
      QVERIFY(near(loss_of(mask, 15), loss_of(mask, 17)));
    QVERIFY(!near(loss_of({1, 1, 1, 1, 1, 1, 1, 1}, 15), loss_of({0, 0, 1, 1, 1, 1, 1, 1}, 15)));
    // A batch of one's own has to say what each token sees.
    const at::Tensor hidden = at::ones({8, 8}, at::kBool).triu(1);
    hidden.narrow(1, 0, 2).fill_(true);
    const at::Tensor tokens = at::ones({2, 8}, at::kLong);
    const auto chunk = gpt_chunk(tiny_gpt(), 1, {}, {});
    QVERIFY(thrown_by<std::exception>([&] {
              chunk->forward({{"tokens", tokens}, {"labels", tokens}, {"attention_mask", hidden.view({1, 1, 8, 8})}});
            }).contains("document_starts"));
  }

  void a_loss_that_no_gradient_leads_back_from_is_refused() {
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.custom_loss_function = [](const Batch& batch, const Tensors& outputs) {
      LossOut out = slope_loss(batch, outputs);
      out.loss = out.loss.detach();
      return out;
    };
    Accelerator accelerator(with(plugin), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
    QVERIFY(thrown_by<std::exception>([&] { prepared.model(*prepared.loaders[0].next()); }).contains("detached"));
    QVERIFY(thrown_by<std::exception>([&] { prepared.model({{"x", at::ones({3})}}); }).contains("3 rows"));
  }

 private:
  /// Twenty documents of ten tokens.
  static void write_indexed(const std::filesystem::path& prefix) {
    auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16);
    if (!builder) throw std::runtime_error(builder.error().text());
    for (std::int64_t document = 0; document < 20; ++document) {
      std::vector<std::int64_t> tokens;
      for (std::int64_t i = 0; i < 10; ++i) tokens.push_back((document + i) % 19);
      if (!builder->add_item(tokens)) throw std::runtime_error("a document was not written");
      if (!builder->end_document()) throw std::runtime_error("a document was not ended");
    }
    if (!builder->finalize()) throw std::runtime_error("the dataset was not finished");
  }
};

ACCRUE_TEST_MAIN(TestMegatronAccelerator)

}  // namespace test_megatron_accelerator
#include "test_megatron_accelerator.moc"
