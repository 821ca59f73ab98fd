// SPDX-License-Identifier: Apache-2.0
// The Accelerator with the Megatron-LM plug-in on 1, 2 and 4 ranks: every layout trains a GPT to the losses, the norms
// and the weights of one rank, in float64; evaluation, logits, and sums over tokens.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <QTest>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <torch/optim/sgd.h>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/data_parallel_groups.h"
#include "accrue/megatron/text_generation.h"
#include "accrue/run/cost/model_flops.h"
#include "accrue/run/fields/spec_io.h"
#include "support/joined_rank.h"
#include "support/megatron_layouts.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_megatron_ranks {

using namespace accrue;
using namespace accrue::megatron;
using accrue::megatron::Batch;
using namespace accrue::test;

namespace {

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance;
}

struct Course {
  std::vector<double> losses;  ///< on the last stage, else zeros
  std::vector<double> norms;
  std::set<std::string> timers;
  std::map<std::string, at::Tensor> weights;  ///< this rank's
};

Course train(Mesh& mesh, const MegatronLayout& layout, int updates = 3) {
  Accelerator accelerator(options_of(layout, mesh.grid().data), mesh);
  auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {.total_num_steps = 6, .warmup_num_steps = 1},
                                       {token_loader(layout.samples, 2)});
  Course course;
  while (std::ssize(course.losses) < updates) {
    const auto batch = prepared.loaders[0].next();
    if (!batch) continue;
    course.losses.push_back(prepared.model(*batch).loss.item<double>());
    course.norms.push_back(*accelerator.progress().grad_norm);
  }
  for (const auto& [name, seconds] : accelerator.timers().seconds()) course.timers.insert(name);
  for (const auto& chunk : prepared.model.chunks())
    for (const auto& each : chunk->named_parameters()) course.weights[each.key()] = each.value().detach().clone();
  return course;
}

/// Replicas take stretches of rows, and the mean of equally many is one mean: the layouts' rows are the same eight.
int every_layout_is_one_rank(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  const Course got = train(mesh, layout);
  Mesh alone;
  const Course one = train(alone, {.samples = layout.samples});
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    const double expected = mesh.last_stage() ? one.losses[i] : 0.0;
    DEMAND(near(got.losses[i], expected, 1e-10));
    // Of the first update the weights are still the same bits.
    DEMAND(near(got.norms[i], one.norms[i], (i == 0 ? 1e-12 : 1e-10) * one.norms[i]));
    DEMAND(one.norms[i] > 0.05);
  }
  // Exchanges that these ranks make have a timer, others have none.
  DEMAND(got.timers.contains("layernorm-grads-all-reduce") == layout.sequence);
  DEMAND(got.timers.contains("embedding-grads-all-reduce") == (layout.pipeline > 1 && mesh.has(Axis::embedding)));
  DEMAND(got.timers.contains("params-all-gather") == (layout.sharded && mesh.grid().data > 1));
  for (const char* name : {"optimizer-copy-to-main-grad", "optimizer-inner-step", "optimizer-clip-main-grad"})
    DEMAND(got.timers.contains(name));
  if (layout.tensor > 1) return 0;
  for (const auto& [name, weight] : got.weights) {
    DEMAND(one.weights.contains(name));
    DEMAND(at::allclose(weight, one.weights.at(name), 1e-9, 1e-11));
  }
  return 0;
}

/// A sampler's samples of epoch 0, as Megatron-LM's: with sharding each replica shuffles its own part of them, without
/// it all are shuffled together and dealt out in turn.
int a_cyclic_loader_shares_its_samples(RankContext& rank) {
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, {});
  const std::int64_t replica = mesh.at().data;
  const auto shuffled = [](std::int64_t samples) {
    return at::randperm(samples, at::detail::createCPUGenerator(0), at::TensorOptions(at::kLong));
  };
  for (const bool sharding : {true, false}) {
    AcceleratorOptions options = options_of({}, rank.world);
    options.megatron_lm_plugin.train_iters = 3;
    options.megatron_lm_plugin.custom_megatron_datasets_provider_function = [](const std::vector<std::int64_t>&) {
      const auto numbers = [](const std::vector<std::int64_t>& rows) {
        return Batch{{"text", at::tensor(rows, at::kLong)}};
      };
      return std::vector<MegatronDataset>(3, MegatronDataset{30, numbers});
    };
    Accelerator accelerator(options, mesh);
    MegatronLMDummyDataLoader data;
    data.micro_batch_size = 2;
    data.dataloader_type = "cyclic";
    data.data_sharding = sharding;
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, {data});
    // 30 samples are 7 micro-batches of 2 a replica, and 15 in all.
    const at::Tensor expected =
        sharding ? shuffled(14) + 14 * replica : shuffled(30).slice(0, replica, std::nullopt, 2);
    for (std::int64_t step = 0; step < 2; ++step)
      DEMAND(prepared.loaders[0].next()->at("text").equal(expected.narrow(0, 4 * step, 4)));
  }
  return 0;
}

/// A BERT or a T5 of two micro-batches an update.
std::vector<double> sentence_losses(Mesh& mesh, const MegatronLayout& layout, const ModelSpec& model) {
  AcceleratorOptions options = options_of(layout, mesh.grid().data);
  Accelerator accelerator(std::move(options), mesh);
  auto& prepared = accelerator.prepare(model, adamw(0.01), {.total_num_steps = 30}, {sentence_loader(model, false, 2)});
  std::vector<double> losses;
  while (losses.size() < 6) {
    const auto batch = prepared.loaders[0].next();
    if (!batch) continue;
    losses.push_back(prepared.model(*batch).loss.item<double>());
  }
  return losses;
}

int a_bert_and_a_t5_are_those_of_one_rank(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  at::set_num_threads(1);
  auto rendezvous = taken(Rendezvous::join(taken(rank_identity(accrue::test::environment, rank.store_fd)),
                                           {.timeout = std::chrono::seconds(30), .run_id = "test"}));
  ModelSpec no_pairs = tiny_bert();
  no_pairs.binary_head = false;
  for (const ModelSpec& model : {tiny_bert(), no_pairs, tiny_t5()}) {
    const auto options = options_of(layout, rank.world / (layout.tensor * layout.pipeline));
    Mesh mesh = taken(Mesh::build(
        *rendezvous, taken(Accelerator::grid_of(options.megatron_lm_plugin, rank.world, model, empty_environment()))));
    const auto got = sentence_losses(mesh, layout, model);
    Mesh alone;
    const auto one = sentence_losses(alone, {}, model);
    for (std::size_t i = 0; i < one.size(); ++i) DEMAND(near(got[i], mesh.last_stage() ? one[i] : 0.0, 1e-9));
    DEMAND(one.back() < one.front());
  }
  return 0;
}

int a_classifier_is_that_of_one_rank(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  const auto losses_of = [](Mesh& ranks, const MegatronLayout& of) {
    AcceleratorOptions options = options_of(of, ranks.grid().data);
    options.num_labels = 3;
    Accelerator accelerator(std::move(options), ranks);
    auto loader = sentence_loader(tiny_bert(), false, 2);
    loader.fetch = [fetch = loader.fetch](const std::vector<std::int64_t>& rows) {
      Batch batch = fetch(rows);
      batch["labels"] = at::tensor(rows, at::kLong).remainder(3);
      return batch;
    };
    auto& prepared = accelerator.prepare(tiny_bert(), adamw(0.01), {.total_num_steps = 6}, {loader});
    std::vector<double> losses;
    while (losses.size() < 3) losses.push_back(prepared.model(*prepared.loaders[0].next()).loss.item<double>());
    return losses;
  };
  const auto got = losses_of(mesh, layout);
  Mesh alone;
  const auto one = losses_of(alone, {});
  for (std::size_t i = 0; i < one.size(); ++i) DEMAND(near(got[i], one[i], 1e-9));
  DEMAND(one.back() != one.front());
  return 0;
}

/// The sum of the encoder's and the decoder's bfloat16 gradients has more digits than bfloat16. True on a stage without
/// positions.
bool positions_are_summed_in_float32(Mesh& mesh, const MegatronLayout& layout) {
  AcceleratorOptions options = options_of(layout, mesh.grid().data);
  options.mixed_precision = MixedPrecision::bf16;
  Accelerator accelerator(std::move(options), mesh);
  auto& prepared =
      accelerator.prepare(tiny_t5(), adamw(0.01), {.total_num_steps = 30}, {sentence_loader(tiny_t5(), false, 2)});
  prepared.model(*prepared.loaders[0].next());
  for (const auto& each : prepared.model.chunks().at(0)->named_parameters()) {
    if (each.key().find("position_embedding") == std::string::npos) continue;
    const at::Tensor& gradient = each.value().grad();
    if (gradient.scalar_type() != at::kFloat || gradient.equal(gradient.to(at::kBFloat16).to(at::kFloat))) return false;
  }
  return true;
}

/// The decoder begins at the field's stage, and the losses do not change.
int a_t5_is_split_where_the_plugin_says(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  at::set_num_threads(1);
  auto rendezvous = taken(Rendezvous::join(taken(rank_identity(accrue::test::environment, rank.store_fd)),
                                           {.timeout = std::chrono::seconds(30), .run_id = "test"}));
  const auto options = options_of(layout, 1);
  Mesh mesh = taken(Mesh::build(*rendezvous, taken(Accelerator::grid_of(options.megatron_lm_plugin, rank.world,
                                                                        tiny_t5(), empty_environment()))));
  DEMAND(mesh.grid().split == layout.split);
  Accelerator accelerator(options_of(layout, 1), mesh);
  const auto& prepared =
      accelerator.prepare(tiny_t5(), adamw(0.01), {.total_num_steps = 30}, {sentence_loader(tiny_t5(), false, 2)});
  bool decodes = false;
  for (const auto& each : prepared.model.chunks().at(0)->named_parameters())
    decodes = decodes || each.key().find("decoder") != std::string::npos;
  DEMAND(decodes == (mesh.at().pipeline >= layout.split));
  DEMAND(positions_are_summed_in_float32(mesh, layout));
  const auto got = sentence_losses(mesh, layout, tiny_t5());
  Mesh alone;
  const auto one = sentence_losses(alone, {}, tiny_t5());
  for (std::size_t i = 0; i < one.size(); ++i) DEMAND(near(got[i], mesh.last_stage() ? one[i] : 0.0, 1e-9));
  return 0;
}

int logits_are_whole(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  const auto logits = [dtype = layout.dtype](Mesh& ranks, const MegatronLayout& of) {
    AcceleratorOptions options = options_of(of, 1);
    options.megatron_lm_plugin.return_logits = true;
    Accelerator accelerator(options, ranks);
    ModelSpec gpt = tiny_gpt();
    gpt.dtype = dtype;
    gpt.vocabulary = 19;  // one column of padding where ranks divide it
    gpt.vocabulary_multiple = 4;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 6}, {token_loader(8, 2)});
    prepared.model.eval();
    return prepared.model(*prepared.loaders[0].next()).logits;
  };
  const at::Tensor got = logits(mesh, layout);
  Mesh alone;
  const at::Tensor one = logits(alone, {});
  DEMAND((one.sizes() == at::IntArrayRef{8, 8, 19}));
  DEMAND(got.defined() == mesh.last_stage());
  DEMAND(one.scalar_type() == (layout.dtype == Dtype::float64 ? at::kDouble : at::kFloat));
  const double tolerance = layout.dtype == Dtype::float64 ? 1e-10 : 1e-6;
  if (got.defined()) DEMAND((got - one).norm().item<double>() <= tolerance * one.norm().item<double>());
  return 0;
}

/// Every rank gets all logits, and writes what one rank writes; one column of padding where two ranks divide them.
int a_text_is_generated_on_every_rank(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  struct Written {
    at::Tensor logits;
    GeneratedRow row;
  };
  const auto written = [](Mesh& ranks, const MegatronLayout& of) {
    Accelerator accelerator(options_of(of, 1), ranks);
    ModelSpec gpt = tiny_gpt();
    gpt.vocabulary = 19;
    gpt.vocabulary_multiple = 4;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 6}, {token_loader(8, 2)});
    prepared.model.eval();
    const auto logits = [&](const at::Tensor& tokens) { return prepared.model.logits({{"tokens", tokens}}); };
    return Written{logits(at::arange(16, at::kLong).view({2, 8})),
                   generate(logits, {{5, 3, 2}}, {.tokens_to_generate = 5, .top_k = 1, .longest = 8}).front()};
  };
  const Written got = written(mesh, layout);
  Mesh alone;
  const Written one = written(alone, {});
  DEMAND((one.logits.sizes() == at::IntArrayRef{2, 8, 19}));
  DEMAND(got.logits.defined() && at::allclose(got.logits, one.logits, 1e-10, 1e-12));
  DEMAND(one.row.tokens.size() == 8);
  DEMAND(got.row.tokens == one.row.tokens);
  DEMAND(near(got.row.log_probability, one.row.log_probability, 1e-10));
  return 0;
}

/// Different batches are refused, whether a function, a train step or data sets make them; equal ones are accepted.
int batches_that_differ_are_refused(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  /// The mask of a GPT times a factor.
  struct Weighted final : AbstractTrainStep {
    Weighted(const TrainStepArgs& args, double weight) : AbstractTrainStep("Weighted"), own(args), factor(weight) {}
    Batch get_batch(DataIter& data) override {
      Batch batch = own.get_batch(data);
      batch["loss_mask"] = batch.at("loss_mask") * factor;
      return batch;
    }
    LossOut loss_func(const Batch& batch, const Tensors& outputs) override { return own.loss_func(batch, outputs); }
    GPTTrainStep own;
    double factor;
  };
  const auto refusal = [&](const std::string& way, double factor) -> std::string {
    AcceleratorOptions options = options_of(layout, 1);
    MegatronLMPlugin& plugin = options.megatron_lm_plugin;
    plugin.train_iters = 2;
    LoaderSource loader = token_loader(8, 2);
    if (way == "function")
      plugin.custom_get_batch_function = [factor](DataIter& data) { return Weighted({}, factor).get_batch(data); };
    if (way == "step")
      plugin.custom_train_step_class = [factor](const TrainStepArgs& args, const StepKeywords&) {
        return std::make_shared<Weighted>(args, factor);
      };
    if (way == "data sets") {
      plugin.custom_megatron_datasets_provider_function = [factor](const std::vector<std::int64_t>&) {
        const MegatronDataset rows{8, [factor](const std::vector<std::int64_t>& which) {
                                     const at::Tensor text = at::full({std::ssize(which), 9}, factor, at::kLong);
                                     return Batch{{"text", text}};
                                   }};
        return std::vector{rows, rows, rows};
      };
      loader = MegatronLMDummyDataLoader{.micro_batch_size = 2};
    }
    Accelerator accelerator(options, mesh);
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {}, {loader});
    try {
      prepared.model(*prepared.loaders[0].next());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  for (const char* way : {"function", "step", "data sets"}) {
    const std::string said = refusal(way, 1.0 + static_cast<double>(mesh.at().tensor));
    DEMAND(said.starts_with("rank 1 (data 0, stage 0, tensor 1) has another batch than rank 0"));
    DEMAND(refusal(way, 2.0).empty());
  }
  return 0;
}

/// Replicas with unlike numbers of tokens that count: the sum over all of them is divided once.
int sums_over_tokens(RankContext& rank) {
  const MegatronLayout layout = layout_of(rank.arguments);
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, layout);
  const auto norm = [](Mesh& ranks, const MegatronLayout& of, std::int64_t micro_batches) {
    AcceleratorOptions options = options_of(of, ranks.grid().data);
    options.megatron_lm_plugin.num_micro_batches = micro_batches;
    options.megatron_lm_plugin.other_megatron_args = {"calculate_per_token_loss = true"};
    Accelerator accelerator(options, ranks);
    auto loader = token_loader(8, 8 / (ranks.grid().data * micro_batches));
    const auto tokens = loader.fetch;
    loader.fetch = [tokens](const std::vector<std::int64_t>& rows) {
      Batch batch = tokens(rows);
      at::Tensor labels = batch.at("input_ids").clone();
      for (std::size_t i = 0; i < rows.size(); ++i)  // row r counts 8 - r labels at most
        labels[static_cast<std::int64_t>(i)].narrow(0, 0, rows[i]).fill_(-100);
      batch["labels"] = labels;
      return batch;
    };
    auto& prepared = accelerator.prepare(tiny_gpt(), adamw(0.01), {.total_num_steps = 6}, {loader});
    const double loss = prepared.model(*prepared.loaders[0].next()).loss.template item<double>();
    return std::pair(loss, *accelerator.progress().grad_norm);
  };
  const auto got = norm(mesh, layout, 2);
  Mesh alone;
  const auto one = norm(alone, {}, 1);
  DEMAND(near(got.second, one.second, 1e-10));
  DEMAND(near(got.first, mesh.last_stage() ? one.first : 0.0, 1e-10));
  return 0;
}

int losses_and_trees_of_replicas(RankContext& rank) {
  auto axis = join_ranks(rank);
  const double own = rank.rank;
  const at::Tensor mean =
      avg_losses_across_data_parallel_group({at::full({}, own), at::full({1}, 2.0 * own)}, *axis.data);
  const double expected = (rank.world - 1) / 2.0;
  DEMAND(at::allclose(mean, at::tensor({expected, 2.0 * expected}, mean.options())));
  const TensorTree tree(TensorTree::Table{{"a", at::full({2, 3}, own)}, {"b", TensorTree::List{at::full({}, own)}}});
  const TensorTree all = gather_across_data_parallel_groups(tree, *axis.data);
  DEMAND((all.at("a").tensor().sizes() == at::IntArrayRef{2 * rank.world, 3}));
  DEMAND((all.at("b").at(0).tensor().sizes() == at::IntArrayRef{rank.world}));
  for (std::int64_t each = 0; each < rank.world; ++each) {
    DEMAND(all.at("a").tensor()[2 * each + 1][2].item<double>() == static_cast<double>(each));
    DEMAND(all.at("b").at(0).tensor()[each].item<double>() == static_cast<double>(each));
  }
  return 0;
}

/// The main process is the last one, and the mesh must be the plug-in's.
int who_is_main(RankContext& rank) {
  std::unique_ptr<Rendezvous> rendezvous;
  Mesh mesh = mesh_of(rank, rendezvous, {.pipeline = 2});
  Accelerator accelerator(options_of({.pipeline = 2}, 1), mesh);
  DEMAND(accelerator.is_main_process() == (rank.rank == rank.world - 1));
  bool refused = false;
  try {
    Accelerator other(options_of({.tensor = 2}, 1), mesh);
  } catch (const std::invalid_argument& error) {
    refused = std::string(error.what()).find("tp_degree") != std::string::npos;
  }
  DEMAND(refused);
  return 0;
}

const RankCases cases = {
    {"two ranks train as one", every_layout_is_one_rank, {"t2", "t2 s", "p2", "p2 c1", "d", "d z"}, {2}},
    {"four ranks train as one", every_layout_is_one_rank, {"t2 p2", "t2 p2 s z", "p2 z", "t2 z", "p4", "p2 c1 z"}, {4}},
    {"one rank is one rank", every_layout_is_one_rank, {"", "z"}, {1}},
    {"two ranks fill up as one", every_layout_is_one_rank, {"d n19", "d z n17", "p2 n18", "t2 n21"}, {2}},
    {"a BERT and a T5 train as one", a_bert_and_a_t5_are_those_of_one_rank, {"t2", "t2 s", "p2", "d z"}, {2}},
    {"a BERT and a T5 of four train as one", a_bert_and_a_t5_are_those_of_one_rank, {"t2 p2", "p2 z"}, {4}},
    {"a T5 is split", a_t5_is_split_where_the_plugin_says, {"p3 r1", "p3 r2"}, {3}},
    {"logits", logits_are_whole, {"t2", "p2", "p2 c1", "t2 f", "p2 f"}, {2}},
    {"logits of four", logits_are_whole, {"t4", "t4 s", "t4 f", "t4 s f", "t2 p2"}, {4}},
    {"generation", a_text_is_generated_on_every_rank, {"t2", "p2", "p2 c1"}, {2}},
    {"batches that differ", batches_that_differ_are_refused, {"t2"}, {2}},
    {"a classifier", a_classifier_is_that_of_one_rank, {"t2", "t2 s", "d", "d z"}, {2}},
    {"a cyclic loader", a_cyclic_loader_shares_its_samples, {"d"}, {2}},
    {"sums over tokens", sums_over_tokens, {"d", "p2", "d z", "t2 s"}, {2}},
    {"losses and trees of replicas", losses_and_trees_of_replicas, {""}, {1, 2, 4}},
    {"who is main", who_is_main, {""}, {2}},
};

}  // namespace

namespace {

/// Two micro-batches of two samples an update, on one rank.
std::string spec_of(const char* kind, const char* dtype, const char* optimizer = "adamw", double lr = 0.01) {
  return std::string("accrue = 1\n[model]\nkind = \"") + kind + "\"\ndtype = \"" + dtype +
         "\"\nlayers = 2\nwidth = 16\nheads = 4\ncontext = 16\nvocabulary = 40\n[data]\nkind = \"synthetic\"\nsamples "
         "= "
         "24\nshuffle = false\n[optimizer]\nkind = \"" +
         optimizer + "\"\nlr = " + std::to_string(lr) +
         (std::string_view(dtype) == "float16" ? "\nloss_scale = 1024.0" : "") +
         "\nweight_decay = 0.0\nclip_norm = 0.0\n"
         "[schedule]\nkind = \"constant\"\n[accumulation]\nsteps = 2\nmicro_batch = 2\nnormalizer = \"true_size\"\n"
         "[run]\nupdates = 5\nseed = 1234\n";
}

std::vector<double> under_the_plugin(const RunSpec& spec, MixedPrecision precision) {
  const auto facts = scan_data(spec, ".").value();
  const std::shared_ptr<DataSource> source = open_data(spec, facts, ".").value();
  const auto rows = [source, &spec](const std::vector<std::int64_t>& which) {
    return named_batch(source->batch(Split::train, which), spec.model.kind);
  };
  Mesh mesh;
  AcceleratorOptions options;
  options.environment = empty_environment();
  options.mixed_precision = precision;
  options.megatron_lm_plugin.num_micro_batches = 2;
  options.megatron_lm_plugin.gradient_clipping = 0.0;
  options.megatron_lm_plugin.lr_decay_style = "constant";
  options.megatron_lm_plugin.megatron_dataset_flag = true;
  if (spec.optimizer.loss_scale)
    options.megatron_lm_plugin.other_megatron_args = {"initial_loss_scale = " +
                                                      std::to_string(*spec.optimizer.loss_scale)};
  Accelerator accelerator(std::move(options), mesh);
  ModelSpec model = spec.model;
  if (precision != MixedPrecision::no) model.dtype = Dtype::float32;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (spec.optimizer.kind == OptimizerKind::sgd)
    optimizer =
        std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{}, torch::optim::SGDOptions(spec.optimizer.lr));
  else
    optimizer = std::make_unique<torch::optim::AdamW>(adamw(spec.optimizer.lr, 0.0));
  auto& prepared = accelerator.prepare(model, *optimizer, {.total_num_steps = 8},
                                       {accelerate::map_loader(24, rows, {.batch_size = 2})});
  std::vector<double> losses;
  for (const Batch& batch : prepared.loaders[0]) {
    losses.push_back(prepared.model(batch).loss.item<double>());
    if (losses.size() == 5) break;
  }
  return losses;
}

}  // namespace

class TestMegatronRanks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }

  /// The numbers that follow from the spec are those of the record; of the others, that they are there.
  void a_run_writes_what_megatron_writes() {
    const RunFolder folder;
    const std::string board = folder / "board";
    const auto tags_of_run = [&](const std::vector<std::string>& more) {
      TrainingScript script{.spec = spec_of("gpt", "float32"),
                            .set = {"run.tensorboard_dir=" + board, "parallel.pipeline=2"}};
      script.set.insert(script.set.end(), more.begin(), more.end());
      std::filesystem::remove_all(board);
      const auto ranks = accrue::test::train(script, 2);
      if (ranks.back().outcome != "finished") return ranks.back().text();
      std::string bytes;
      for (const auto& each : std::filesystem::directory_iterator(board)) {
        std::ifstream file(each.path(), std::ios::binary);
        bytes.append(std::istreambuf_iterator<char>(file), {});
      }
      return bytes;
    };
    const auto has = [](const std::string& tags, const char* tag) { return tags.find(tag) != std::string::npos; };
    // The last stage receives inputs and sends gradients.
    const std::string all = tags_of_run({"run.parameter_norm=true", "run.gradient_zeros=true", "run.update_norm=true"});
    for (const char* tag : {"lm loss", "throughput", "forward-compute-time", "backward-compute-time",
                            "optimizer-inner-step-time", "forward-recv-time", "backward-send-time", "params-norm",
                            "num-zeros", "update-norm", "mem-reserved-bytes", "mem-max-allocated-bytes"})
      QVERIFY2(has(all, tag), tag);
    QVERIFY(!has(all, "forward-send-time"));
    for (const char* tag : {"batch-generator-time", "embedding-grads-all-reduce-time", "optimizer-count-zeros-time"})
      QVERIFY2(has(all, tag), tag);
    // float32 parameters are updated in place.
    for (const char* tag : {"optimizer-copy-to-main-grad-time", "optimizer-copy-main-to-model-params-time",
                            "optimizer-clip-main-grad-time", "optimizer-unscale-and-check-inf-time"})
      QVERIFY2(!has(all, tag), tag);
    const std::string half = tags_of_run({"model.dtype=float16", "optimizer.loss_scale=16", "optimizer.clip_norm=1",
                                          "parallel.pipeline=1", "parallel.tensor=2", "parallel.sequence=true"});
    for (const char* tag :
         {"optimizer-copy-to-main-grad-time", "optimizer-unscale-and-check-inf-time", "optimizer-inner-step-time",
          "optimizer-copy-main-to-model-params-time", "layernorm-grads-all-reduce-time"})
      QVERIFY2(has(half, tag), tag);
    QVERIFY(!has(half, "optimizer-clip-main-grad-time"));
    const std::string shared =
        tags_of_run({"optimizer.clip_norm=1", "parallel.pipeline=1", "parallel.data=2", "parallel.zero=1"});
    for (const char* tag : {"all-grads-sync-time", "optimizer-clip-main-grad-time", "params-all-gather-time"})
      QVERIFY2(has(shared, tag), tag);
    const std::string few = tags_of_run({"run.timer_level=1"});
    QVERIFY(has(few, "optimizer-inner-step-time"));
    for (const char* tag : {"forward-compute-time", "forward-recv-time", "params-norm", "num-zeros", "update-norm"})
      QVERIFY2(!has(few, tag), tag);
    // By hand: 72 * 4 positions * 4 * (1 + 4 / 24) + 6 * 4 * 2 * 3.
    const ModelSpec small{.kind = ModelKind::gpt, .layers = 1, .width = 2, .heads = 1, .context = 4, .vocabulary = 3};
    QVERIFY(near(model_flops(small, 1), 1488.0, 1e-9));
  }

  /// Half precision: float32 copies of the parameters are updated, and float16's losses are scaled, in both. An update
  /// of SGD is as large as its gradient, so one that is scaled or summed otherwise shows; tolerance: two spacings of
  /// the type between 2 and 4, where these losses are.
  void losses_are_those_of_the_trainer_data() {
    const Rows<QString, QString, int, double> row;
    row("GPT", "gpt", "float64", 0, 1e-10);
    row("BERT", "bert", "float64", 0, 1e-10);
    row("T5", "t5", "float64", 0, 1e-10);
    row("GPT, fp16", "gpt", "float16", 1, std::ldexp(1.0, -8));
    row("GPT, bf16", "gpt", "bfloat16", 2, std::ldexp(1.0, -5));
  }
  void losses_are_those_of_the_trainer() {
    const auto [kind, dtype, precision, tolerance] = current_row<QString, QString, int, double>();
    const bool half = precision != 0;
    const std::string text =
        half ? spec_of(qPrintable(kind), qPrintable(dtype), "sgd", 0.5) : spec_of(qPrintable(kind), qPrintable(dtype));
    const auto ranks = accrue::test::train({.spec = text}, 1);
    VERIFY_FINISHED(ranks);
    const auto losses = under_the_plugin(parse_spec(text, "spec").spec, static_cast<MixedPrecision>(precision));
    const auto updates = ranks.front().all<Update>();
    QCOMPARE(updates.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      QVERIFY2(
          near(updates[i].loss, losses[i], tolerance),
          qPrintable(QStringLiteral("%1: %2, %3").arg(i).arg(updates[i].loss, 0, 'g', 12).arg(losses[i], 0, 'g', 12)));
    QVERIFY2(!half || losses.back() < losses.front() - 2.0 * tolerance,
             qPrintable(QStringLiteral("from %1 to %2").arg(losses.front()).arg(losses.back())));
  }
};

ACCRUE_RANK_TEST_MAIN(TestMegatronRanks, (bodies_of(cases, {{"train", train_body}})))

}  // namespace test_megatron_ranks
#include "test_megatron_ranks.moc"
