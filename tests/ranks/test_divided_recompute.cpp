// SPDX-License-Identifier: Apache-2.0
// Recomputation and random masks of a GPT that ranks share: the same bits as without it, whatever is divided, and which
// masks the ranks have in common.
#include <ATen/ATen.h>

#include <QTest>

#include "accrue/comm/mesh.h"
#include "accrue/parallel/random_streams.h"
#include "models/gpt_model.h"
#include "pipeline/message_link.h"
#include "support/joined_rank.h"
#include "support/live_bytes.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/training_body.h"

namespace test_divided_recompute {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t positions = 8, width = 16;

ModelSpec small_gpt(std::int64_t layers, double dropout) {
  return {.kind = ModelKind::gpt,
          .layers = layers,
          .width = width,
          .heads = 4,
          .context = positions,
          .vocabulary = 24,
          .dropout = dropout};
}

std::vector<Batch> made_batches(std::int64_t count) {
  at::manual_seed(5);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < count; ++i)
    batches.push_back({at::randint(24, {2, positions}, at::kLong), at::randint(24, {2, positions}, at::kLong), 2, 16});
  return batches;
}

/// Masks are keyed before each forward, as the trainer does it.
struct Work final : WindowWork {
  explicit Work(const std::vector<Batch>& made, std::int64_t tensor_rank) : batches(made), rank(tensor_rank) {}
  bool begin(std::int64_t) override { return true; }
  const Batch& batch(std::int64_t micro_step) override { return batches[static_cast<std::size_t>(micro_step)]; }
  void starts(const PipelineOperation& operation) override {
    if (operation.action != PipelineAction::forward) return;
    const auto key = static_cast<std::uint64_t>(10 * operation.micro_step + operation.chunk);
    at::manual_seed(key);
    random_streams().seed(tensor_stream, at::kCPU, 1000 + 100 * static_cast<std::uint64_t>(rank) + key);
  }
  double weigh(std::int64_t, LossSum& sum) override {
    losses.push_back(sum.sum.detach());
    return 0.25;
  }
  void computed(const PipelineOperation&) override {}
  void finished(const PipelineOperation&) override {}
  const std::vector<Batch>& batches;
  std::int64_t rank;
  std::vector<at::Tensor> losses;
};

/// Losses and gradients of one window of four micro-steps.
std::vector<at::Tensor> trained(const Mesh& mesh, std::int64_t chunks, const TensorAxis& axis, double dropout,
                                const ParallelSpec& recompute) {
  const std::int64_t stages = mesh.grid().pipeline;
  std::vector<std::shared_ptr<ModelPart>> own;
  std::vector<ModelPart*> parts;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const ModelShare share{axis.size(), axis.rank(), stages * chunks, chunk * stages + mesh.at().pipeline};
    own.push_back(make_model_part(small_gpt(4, dropout), 3, share, axis, recompute));
    parts.push_back(own.back().get());
  }
  const auto batches = made_batches(4);
  MessageLink link(mesh.pipeline());
  WindowExecutor executor(parts, stages, mesh.at().pipeline, &link);
  Work work(batches, axis.rank());
  executor.run(executor.operations(pipeline_shape({.pipeline = stages, .virtual_pipeline = chunks}, 4)), work);
  std::vector<at::Tensor> all = work.losses;
  for (const auto& part : own)
    for (const at::Tensor& parameter : part->parameters()) all.push_back(parameter.grad());
  return all;
}

/// Arguments: tensor ranks, stages, chunks, "rows" under sequence parallelism.
int recomputed_bits_are_the_same(RankContext& rank) {
  at::set_num_threads(1);  // ranks share the cores
  const auto& words = rank.arguments;
  const std::int64_t tensor = std::stoi(words[0]), stages = std::stoi(words[1]), chunks = std::stoi(words[2]);
  const auto joined = join_ranks(rank);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.pipeline = stages, .tensor = tensor}));
  const TensorAxis axis(mesh.tensor(), words[3] == "rows");
  for (const double dropout : {0.0, 0.1}) {
    const auto usual = trained(mesh, chunks, axis, dropout, {});
    std::vector<ParallelSpec> ways{{.recompute = RecomputeKind::selective}};
    for (const auto method : {RecomputeMethod::uniform, RecomputeMethod::block})
      for (const std::int64_t layers : {1, 2})
        ways.push_back({.recompute = RecomputeKind::full, .recompute_method = method, .recompute_layers = layers});
    if (tensor > 1 && !axis.sequence())
      ways.push_back({.recompute = RecomputeKind::full, .recompute_layers = 2, .distribute_saved_activations = true});
    for (const ParallelSpec& way : ways) {
      const auto again = trained(mesh, chunks, axis, dropout, way);
      DEMAND(again.size() == usual.size());
      for (std::size_t i = 0; i < usual.size(); ++i) DEMAND(at::equal(again[i], usual[i]));
    }
  }
  return 0;
}

/// Bytes that a block keeps for backward, of plain operators, whose tensors are counted.
std::int64_t kept_by_a_block(const ParallelSpec& parallel, const TensorAxis& axis) {
  const auto kept = [&](std::int64_t layers) {
    const auto part = make_model_part(small_gpt(layers, 0.0), 3, {axis.size(), axis.rank()}, axis, parallel);
    dynamic_cast<GptModel&>(*part).use_plain_operators(true);
    const LiveBytes live;
    const at::Tensor outputs = part->forward(made_batches(1).front(), {});
    return live.now();
  };
  return (kept(6) - kept(2)) / 4;
}

int kept_inputs_are_shared(RankContext& rank) {
  const auto joined = join_ranks(rank);
  const TensorAxis axis(*joined.data);
  constexpr std::int64_t input_bytes = 2 * positions * width * 4;
  DEMAND(kept_by_a_block({.recompute = RecomputeKind::full}, axis) == input_bytes);
  DEMAND(kept_by_a_block({.recompute = RecomputeKind::full, .distribute_saved_activations = true}, axis) ==
         input_bytes / axis.size());
  return 0;
}

bool same_on_all_ranks(const at::Tensor& own, const TensorAxis& axis) {
  std::vector<std::int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), axis.size());
  at::Tensor all = at::empty(sizes, own.options());
  axis.ranks().all_gather(all, own.contiguous());
  return (all == own).all().item<bool>();
}

/// Attention of one head a rank, over values of one with equal weights: a row of the output shows how many positions
/// its query's mask has left. [rows, ranks], of all ranks.
at::Tensor left_by_masks(const TensorAxis& axis) {
  constexpr std::int64_t head = 16;
  const std::int64_t wide = head * axis.size(), rows = 2 * positions;
  GptBlockWeights weights;
  weights.norm_1_weight = weights.norm_1_bias = at::zeros({wide});
  weights.qkv_weight = at::zeros({3 * head, wide});
  weights.qkv_bias = at::cat({at::zeros({2 * head}), at::ones({head})});
  weights.output_weight = at::eye(wide).narrow(1, axis.rank() * head, head).contiguous();
  weights.output_bias = at::zeros({wide});
  const at::Tensor x = axis.sequence() ? at::zeros({rows / axis.size(), wide}) : at::zeros({2, positions, wide});
  const at::Tensor y =
      attention_half(x, weights, {.heads = 1, .positions = positions, .axis = axis}, 0.5).view({-1, wide});
  const at::Tensor all = axis.sequence() ? axis.gather_rows(y) : y;
  // Hidden dropout leaves at least one of a head's sixteen equal numbers, but for one row in 65,536.
  return all.view({rows, axis.size(), head}).amax(2);
}

/// Hidden activations are whole on every rank, or this rank's rows; attention's weights are of its own heads.
int masks_follow_what_a_rank_holds(RankContext& rank) {
  const auto joined = join_ranks(rank);
  for (const bool sequence : {false, true}) {
    const TensorAxis axis(*joined.data, sequence);
    at::manual_seed(11);
    random_streams().seed(tensor_stream, at::kCPU, 100 + static_cast<std::uint64_t>(axis.rank()));
    DEMAND(same_on_all_ranks(dropped(at::ones({16, 16}), 0.5, axis), axis) != sequence);
    const at::Tensor left = left_by_masks(axis);
    DEMAND(same_on_all_ranks(left, axis));
    for (std::int64_t other = 1; other < axis.size(); ++other)
      DEMAND(!at::equal(left.select(1, 0), left.select(1, other)));
  }
  return 0;
}

const RankCases cases = {
    {"what is recomputed has the same bits", recomputed_bits_are_the_same, {"1 1 1 whole"}, {1}},
    {"what is recomputed has the same bits",
     recomputed_bits_are_the_same,
     {"2 1 1 whole", "2 1 1 rows", "1 2 1 whole", "1 2 2 whole"},
     {2}},
    {"what is recomputed has the same bits",
     recomputed_bits_are_the_same,
     {"4 1 1 whole", "4 1 1 rows", "2 2 1 whole", "2 2 2 rows", "1 4 1 whole"},
     {4}},
    {"kept inputs are shared by the ranks that hold them", kept_inputs_are_shared, {""}, {2, 4}},
    {"masks follow what a rank holds", masks_follow_what_a_rank_holds, {""}, {2, 4}},
};

std::string spec_text(const std::string& parallel) {
  return "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 16\nheads = 2\ncontext = 8\nvocabulary = 24\n"
         "dropout = 0.1\n[data]\nkind = \"synthetic\"\nsamples = 64\n[accumulation]\nsteps = 2\nmicro_batch = 2\n"
         "[run]\nupdates = 4\n[parallel]\n" +
         parallel;
}

}  // namespace

class TestDividedRecompute : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }

  /// Replicas reduce buckets while backward, which computes forwards again, still runs.
  void a_run_ends_at_the_same_weights_data() {
    QTest::addColumn<QString>("parallel");
    QTest::newRow("two replicas") << "data = 2\nbucket_mb = 0.001\n";
    QTest::newRow("two stages") << "pipeline = 2\n";
  }
  void a_run_ends_at_the_same_weights() {
    QFETCH(QString, parallel);
    const auto usual = train({.spec = spec_text(parallel.toStdString())}, 2);
    VERIFY_FINISHED(usual);
    for (const char* recompute : {"recompute = \"selective\"\n", "recompute = \"full\"\n"}) {
      const auto again = train({.spec = spec_text(parallel.toStdString() + recompute)}, 2);
      VERIFY_FINISHED(again);
      QCOMPARE(again[0].weights_sha256, usual[0].weights_sha256);
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestDividedRecompute, (bodies_of(cases, {{"train", train_body}})))

}  // namespace test_divided_recompute
#include "test_divided_recompute.moc"
